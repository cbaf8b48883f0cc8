use super::*;
use crate::generate;

const GOOD: &str = r#"{"train":[{"input":[[1]],"output":[[2]]}],"test":[{"input":[[3]],"output":[[4]]}]}"#;

fn wrong(text: &str) -> String {
    Task::from_json("t", text).unwrap_err().to_string()
}

#[test]
fn mistakes_name_the_file_and_the_place() {
    assert!(wrong("{").starts_with("t: EOF while parsing"), "{}", wrong("{"));
    assert!(wrong("[]").contains("expected {\"train\""));
    assert_eq!(
        wrong(r#"{"train":[],"test":[]}"#),
        "t: the list `train` is empty; a task has at least one pair in each"
    );
    assert_eq!(
        wrong(&GOOD.replace("[[4]]", "[[4],[4,4]]")),
        "t: test[0].output: row 1 has 2 cells, and row 0 has 1; all rows of a grid are of one length"
    );
    assert_eq!(
        wrong(&GOOD.replace("[[1]]", "[[11]]")),
        "t: train[0].input: row 0, column 0 has the colour 11; colours are 0 to 9"
    );
    assert!(wrong(&GOOD.replace("[[1]]", "[[1.5]]")).contains("invalid type"));
    assert!(wrong(&GOOD.replace("[[1]]", "[]")).contains("has no cells"));
    let wide = format!("[[{}]]", ["0"; 31].join(","));
    assert!(wrong(&GOOD.replace("[[1]]", &wide)).contains("at most 30"));
}

#[test]
fn a_bad_file_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("b.json", GOOD);
    write("a.json", GOOD);
    write("bad.json", "{}");
    write("notes.txt", "no task");
    let found = read_folder(folder.path()).unwrap();
    assert_eq!(found.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(found.refused.len(), 1);
    assert!(found.refused[0].to_string().starts_with("bad: "));
}

#[test]
fn a_folder_without_tasks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(read_folder(folder.path()), Err(TaskError::NoTasks { files: 0, .. })));
    std::fs::write(folder.path().join("bad.json"), "{}").unwrap();
    assert!(matches!(read_folder(folder.path()), Err(TaskError::NoTasks { files: 1, .. })));
    assert!(matches!(read_folder(&folder.path().join("none")), Err(TaskError::Read { .. })));
}

#[test]
fn samples_are_demonstrations_and_a_test() {
    let task = &generate(1, 3)[0];
    let last = |most: usize| task.samples(most).last() == task.test.first();
    assert_eq!((task.samples(3).count(), last(3)), (3, true));
    assert_eq!((task.samples(1).count(), last(1)), (1, true));
    assert_eq!((task.samples(99).count(), last(99)), (4, true));
    assert_eq!(task.samples(0).count(), 0);
}

#[test]
fn made_up_tasks_are_the_same_for_a_seed_and_survive_their_file() {
    let tasks = generate(20, 5);
    assert_eq!(tasks[..7], generate(7, 5));
    for task in &tasks {
        assert_eq!(Task::from_json(&task.name, &task.to_json()).unwrap(), *task);
    }
}

//! Plans come back from their recipes with data that they accept, and another machine is noticed.

use super::*;
use breakeven::{Config, recipe};

fn engine() -> Engine {
    let config = Config { device: Device::Cpu, apis: Vec::new(), threads: Some(1), ..Config::default() };
    Engine::with_config(config).unwrap()
}

#[test]
fn the_example_is_run_again() {
    let reran = rerun(&engine(), &Profile::example(), 3, &Interrupt::default());
    assert_eq!(reran.reruns.len(), 1, "{:?}", reran.notes);
    let rerun = &reran.reruns[0];
    assert_eq!((rerun.plan, rerun.tasks, &*rerun.device, rerun.samples, &rerun.missing), (0, 20, "cpu", 3, &None));
    assert!(rerun.median_ns > 0 && rerun.elsewhere.is_some());
    assert!(reran.notes[0].starts_with("this is another machine than the profile's"), "{:?}", reran.notes);

    let mut profile = Profile::example();
    add(&mut profile, &reran.reruns);
    add(&mut profile, &reran.reruns);
    assert_eq!(profile.reruns, reran.reruns, "older ones are replaced");
    assert_eq!(profile.check(), Ok(()));
}

#[test]
fn nothing_is_run_after_ctrl_c() {
    let interrupt = Interrupt::pressed();
    let reran = rerun(&engine(), &Profile::example(), 3, &interrupt);
    assert!(reran.reruns.is_empty());
    assert!(reran.notes.contains(&"interrupted after 0 of 1 plan".to_owned()), "{:?}", reran.notes);
}

#[test]
fn indices_are_in_range_and_data_is_there() {
    let record = || -> Result<Vec<Tensor>, RecordError> {
        let table = Tensor::from_slice(&[1.0f32; 30], [10, 3])?;
        let at = Tensor::input("at", DType::I32, [64])?;
        let mask = Tensor::input("mask", DType::Bool, [64, 1])?;
        let moved = Tensor::input("moved", DType::I32, [4])?;
        let taken = table.take(&at, 0)?;
        // After arithmetic only 0 is known to fit: -1 is the last place, and 1 below would be too many.
        let last = table.take(&(&moved - 1)?, 0)?;
        Ok(vec![Tensor::where_(&mask, &taken, 0.0)?, last.sum(&[], false)?])
    };
    let outputs = record().unwrap();
    let text = recipe(&outputs.iter().collect::<Vec<_>>());
    for tasks in [1, 5] {
        let load = Load::new(&engine(), &text, tasks).unwrap();
        assert_eq!(load.values.len() as u64, tasks);
        load.run(Device::Cpu).unwrap();
    }
}

#[test]
fn what_can_not_be_run_is_said() {
    let huge = "recipe 1\nf32[999999,999999] input x\nf32[999999,999999] exp 0\noutputs 1\n";
    let why = Load::new(&engine(), huge, 1).err().unwrap();
    assert!(why.contains("of memory, more than this machine has to give"), "{why}");
    let why = Load::new(&engine(), "recipe 1\nf32[0] input x\noutputs 0\n", u64::MAX).err().unwrap();
    assert!(why.contains("of memory"), "{why}");
    let why = Load::new(&engine(), "recipe 1\n", 1).err().unwrap();
    assert!(why.starts_with("line 2 of the recipe"), "{why}");
    let mut profile = Profile::example();
    profile.plans[0].recipe = None;
    let reran = rerun(&engine(), &profile, 3, &Interrupt::default());
    assert!(
        reran.notes.iter().any(|note| note.starts_with("1 plan can't be run again: the profile has no recipe")),
        "{:?}",
        reran.notes
    );
}

#[test]
fn machines_are_compared() {
    let here = MachineRecord { cpu: "A".into(), threads: 2, devices: [("gpu:0".to_owned(), "G".to_owned())].into() };
    let mut notes = Vec::new();
    assert_eq!(elsewhere(&here, &here, &mut notes), None);
    let cpu_alone = MachineRecord { devices: Default::default(), ..here.clone() };
    assert_eq!(
        elsewhere(&cpu_alone, &here, &mut notes),
        None,
        "a profile without devices is of any machine with this CPU"
    );
    assert!(notes.is_empty());
    assert_eq!(
        elsewhere(&here, &MachineRecord { threads: 4, ..cpu_alone }, &mut notes).as_deref(),
        Some("A, 4 threads")
    );
    assert!(notes[0].ends_with("gpu:0 (G) is not here; 4 threads, not 2"), "{notes:?}");
}

#[test]
fn another_number_of_threads_is_a_setting_and_no_machine() {
    let here = MachineRecord { cpu: "A".into(), threads: 2, devices: Default::default() };
    let mut notes = Vec::new();
    assert_eq!(elsewhere(&MachineRecord { threads: 1, ..here.clone() }, &here, &mut notes), None);
    assert_eq!(notes, ["reruns on the CPU have 2 threads, not 1 as the profile's engine had, by its settings"]);
}

#[test]
fn plans_that_can_not_be_run_again_were_not() {
    let mut profile = Profile::example();
    let (plan, batch) = (profile.plans[0].clone(), profile.batches[0].clone());
    for number in 0..10 {
        let recipe = Some("recipe 1\nnonsense\n".to_owned());
        profile.plans.push(breakeven::profile::PlanRecord {
            recipe,
            title: format!("broken {number}"),
            ..plan.clone()
        });
        let end_ns = batch.end_ns + 1_000_000_000;
        profile.batches.push(breakeven::profile::BatchRecord { plan: 2 + number, end_ns, ..batch.clone() });
    }
    let reran = rerun(&engine(), &profile, 3, &Interrupt::default());
    assert!(reran.reruns.is_empty());
    let last = reran.notes.last().unwrap();
    assert!(last.starts_with("of those that took most time 0 plans could be run again; 3 more, "), "{last}");
}

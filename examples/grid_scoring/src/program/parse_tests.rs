use super::*;
use crate::program::{LOOPER, builtin};

fn parse(text: &str) -> Result<Program, ParseError> {
    text.parse()
}

#[test]
fn programs_are_read_as_they_are_printed() {
    for program in builtin() {
        assert_eq!(program.to_string().parse(), Ok(program.clone()), "{program}");
    }
    assert_eq!(builtin().len(), 50);
    assert!(parse(LOOPER).is_ok());
    assert_eq!(parse(" rot90|recolour  3->5 4->0 ").map(|p| p.to_string()), Ok("rot90 | recolour 3->5 4->0".into()));
    assert_eq!(parse("id | id").map(|p| p.steps.len()), Ok(0));
}

#[test]
fn mistakes_are_named() {
    let wrong = |text: &str| parse(text).unwrap_err().to_string();
    assert!(wrong("rotate").starts_with("there is no step `rotate`; steps are id, rot90"));
    assert!(wrong("").starts_with("there is no step ``"));
    assert!(wrong("rot90 |").starts_with("there is no step ``"));
    assert_eq!(wrong("rot90 2"), "`rot90 2`: expected no argument");
    for text in ["recolour", "recolour 1", "recolour 1->10", "recolour 1->2 1->3", "recolour a->b"] {
        assert!(wrong(text).contains("expected pairs of colours"), "{text}");
    }
    for text in ["crop 0 0 0 1", "crop 1 2 3", "crop 31 0 1 1", "crop -1 0 1 1", "crop 0 0 1 1 1"] {
        assert!(wrong(text).contains("expected top, left, height and width"), "{text}");
    }
    for text in ["pad 1", "pad 0 1", "pad 1 10", "tile 2", "tile 0 1", "mask 10", "spread 0", "count x", "compare"] {
        assert!(matches!(parse(text), Err(ParseError::Arguments { .. })), "{text}");
    }
    assert!(matches!(parse("repeat 2 { crop_bbox }"), Err(ParseError::InLoop { .. })));
    assert!(matches!(parse("until_stable { until_stable { fall } }"), Err(ParseError::InLoop { .. })));
    assert!(matches!(parse("repeat 0 { fall }"), Err(ParseError::Arguments { .. })));
    assert!(matches!(parse("repeat 2 { }"), Err(ParseError::Unknown { .. })));
    assert!(matches!(parse("repeat 2 { id }"), Err(ParseError::Arguments { .. })));
    for text in ["repeat 2 { fall", "fall }", "until_stable { fall } }"] {
        assert!(matches!(parse(text), Err(ParseError::Braces { .. })), "{text}");
    }
    assert!(matches!(parse(&["rot90"; 65].join("|")), Err(ParseError::TooLong { found: 65 })));
}

#[test]
fn lists_say_which_line_is_wrong() {
    let list = parse_list("# programs\nrot90\n\n flip_h # mirrored\n").unwrap();
    assert_eq!(list.iter().map(Program::to_string).collect::<Vec<_>>(), ["rot90", "flip_h"]);
    assert!(parse_list("rot90\nnothing").unwrap_err().to_string().starts_with("line 2: there is no step `nothing`"));
    assert_eq!(parse_list("# none\n"), Err(ParseError::Nothing));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9_|{}> \\-]{0,60}") {
        if let Ok(program) = parse(&text) {
            assert_eq!(parse(&program.to_string()), Ok(program));
        }
    }
}

//! Profiles come back from JSON, and what is none is refused for what it is.

use super::super::fixture_tests::{queued, rerun};
use super::*;

#[test]
fn profiles_come_back() {
    for profile in [Profile::example(), queued(), rerun()] {
        let text = profile.to_json();
        assert_eq!(Profile::from_json(&text).unwrap(), profile);
        assert_eq!(profile.to_json(), text, "the same bytes each time");
    }
}

#[test]
fn every_beginning_of_a_file_is_known_to_be_one() {
    let text = Profile::example().to_json();
    for end in (0..text.trim_end().len()).step_by(97) {
        let error = Profile::from_json(&text[..end]).unwrap_err();
        assert!(matches!(error, ReadError::Truncated { .. }), "{end}: {error}");
    }
}

#[test]
fn what_is_no_profile_is_refused() {
    let refused = |text: &str| Profile::from_json(text).unwrap_err().to_string();
    assert!(refused("never").starts_with("this is no JSON: expected"));
    assert!(refused("[1, 2]").starts_with("this JSON is no profile: it is no object"));
    assert!(refused("{}").starts_with("this JSON is no profile: it has no `version`"));
    assert!(refused(r#"{"version": 1}"#).starts_with("this JSON is no profile: missing field `title`"));
    let other = Profile { version: 7, ..Profile::example() }.to_json();
    assert_eq!(
        refused(&other),
        "the profile is of version 7, and version 1 is expected: read it with the Breakeven that wrote it, or profile again"
    );
    let mut wrong = Profile::example();
    wrong.threads[0].frames[3].self_ns *= 2;
    let error = refused(&wrong.to_json());
    assert!(error.starts_with("the profile can't come from a run: the self times of thread `main`"), "{error}");
}

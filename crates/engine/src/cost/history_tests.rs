//! What batches took lately: a median of the last few, which a spike does not move and a silence makes humble.

use super::*;

/// A history of these times, batch after batch.
fn of(times: &[u64]) -> History {
    let mut history = History::default();
    times.iter().enumerate().for_each(|(batch, ns)| history.push(*ns, batch as u64 + 1));
    history
}

#[test]
fn few_times_are_no_opinion() {
    assert_eq!((of(&[]).expected_ns(), of(&[]).last_ns()), (None, None));
    assert_eq!((of(&[5]).expected_ns(), of(&[5, 7]).expected_ns()), (None, None));
    assert_eq!(of(&[5, 9, 7]).expected_ns(), Some(7));
    assert_eq!((of(&[5, 9, 7]).last_ns(), of(&[5, 9, 7]).last_batch), (Some(7), 3));
}

#[test]
fn the_last_few_count() {
    let mut times = vec![100; 50];
    times.extend([10; WINDOW]);
    assert_eq!(of(&times).expected_ns(), Some(10));
    assert_eq!(of(&times[..50 + WINDOW / 2]).expected_ns(), Some(100));
    assert_eq!(of(&times[..50 + WINDOW / 2 + 1]).expected_ns(), Some(10));
    // The last one also where the window begins anew.
    for len in 1..3 * WINDOW {
        let times: Vec<u64> = (1..=len as u64).collect();
        assert_eq!(of(&times).last_ns(), Some(len as u64));
    }
}

#[test]
fn a_spike_changes_nothing() {
    for at in 0..WINDOW {
        let mut times = [100; WINDOW];
        times[at] = 100_000_000;
        assert_eq!(of(&times).expected_ns(), Some(100), "at {at}");
    }
}

#[test]
fn times_of_nothing_count_as_something() {
    assert_eq!(of(&[0, 0, 0]).expected_ns(), Some(1));
}

/// What is known does not become unknown by hearing more: the prediction that it once corrected would count again.
#[test]
fn after_a_silence_the_new_counts_most_and_the_old_is_not_forgotten() {
    let mut history = of(&[100; WINDOW]);
    let batch = WINDOW as u64 + SILENCE + 1;
    history.push(500, batch);
    assert!(history.expected_ns().is_some_and(|ns| (100..=500).contains(&ns)), "{history:?}");
    history.push(500, batch + 1);
    assert_eq!(history.expected_ns(), Some(500), "two against one that is old");

    let mut history = of(&[500; WINDOW]);
    history.push(100, batch);
    history.push(100, batch + 1);
    assert_eq!(history.expected_ns(), Some(100));

    // Without a silence the whole window counts.
    let mut history = of(&[100; WINDOW]);
    history.push(500, WINDOW as u64 + SILENCE);
    history.push(500, WINDOW as u64 + SILENCE + 1);
    assert_eq!(history.expected_ns(), Some(100));
}

/// Two times and a silence are not three times.
#[test]
fn a_silence_makes_no_opinion_of_a_hunch() {
    let mut history = of(&[100]);
    history.push(500, 2 + SILENCE);
    assert_eq!(history.expected_ns(), None);
    history.push(500, 3 + SILENCE);
    assert_eq!(history.expected_ns(), Some(500));
}

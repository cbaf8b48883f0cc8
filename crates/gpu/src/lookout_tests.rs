//! Messages that come in time, late, and never.

use super::*;
use crossbeam_channel::bounded;

#[test]
fn what_comes_in_time_is_taken_and_nothing_is_waited_for_beyond() {
    let (sender, receiver) = bounded(1);
    let begun = Instant::now();
    assert_eq!(until::<u32>(&receiver, begun), None);
    assert_eq!(soon(&receiver, begun, 100_000), None);
    sender.send(7).unwrap();
    assert_eq!(soon(&receiver, begun, u64::MAX), None, "long work is slept for");
    if is_parallel() {
        assert_eq!(soon(&receiver, begun, 0), Some(7));
    }
}

#[test]
fn a_message_from_another_thread_is_seen_while_looking_out() {
    let (sender, receiver) = bounded(1);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1));
        sender.send(1).unwrap();
    });
    if is_parallel() {
        assert_eq!(until(&receiver, Instant::now() + Duration::from_secs(20)), Some(1));
    }
    late.join().unwrap();
    // Nobody is left to send: it ends at once rather than at its time.
    let begun = Instant::now();
    assert_eq!(until(&receiver, begun + Duration::from_secs(20)), None);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn only_short_batches_are_looked_out_for() {
    assert_eq!(awake_until(0), None, "nothing is known about it");
    assert_eq!(awake_until(SHORT_NS + 1), None, "a core that looks out computes nothing");
    assert_eq!(awake_until(SHORT_NS).is_some(), is_parallel());
}

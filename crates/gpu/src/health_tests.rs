use super::*;

#[test]
fn a_loss_is_latched_and_wakes_who_waits() {
    let life = Life::new(3);
    let waiting = life.clone();
    let waiter = std::thread::spawn(move || waiting.ended.recv().is_err());
    assert!(life.lose("first"));
    assert!(!life.lose("second"));
    assert!(waiter.join().expect("joins"));
    assert!(life.is_lost());
    assert_eq!(life.why(), "first");
}

#[test]
fn progress_resets_strikes() {
    let life = Life::new(0);
    assert!(!life.strike() && !life.strike());
    life.progress(1000);
    assert_eq!(life.strikes(), 0);
    assert!(!life.strike() && !life.strike() && life.strike());
}

#[test]
fn pending_work_is_bounded_by_what_drains() {
    let life = Life::new(0);
    let timeout = Duration::from_secs(4);
    assert_eq!(life.pending_limit(16, timeout), 16);
    (0..20).for_each(|_| life.progress(100_000_000));
    assert_eq!(life.pending_limit(16, timeout), 10);
    let quick = Life::new(0);
    (0..20).for_each(|_| quick.progress(1000));
    assert_eq!(quick.pending_limit(16, timeout), 64);

    let first = life.enter(|| 1, 500, Instant::now(), None).expect("there is room");
    assert_eq!(life.pending(), (1, 500));
    let begun = Instant::now();
    assert!(life.enter(|| 1, 500, begun + Duration::from_millis(30), None).is_none());
    assert!(begun.elapsed() >= Duration::from_millis(30));
    let waiting = life.clone();
    let deadline = Instant::now() + Duration::from_secs(10);
    let waiter = std::thread::spawn(move || waiting.enter(|| 1, 7, deadline, None).is_some());
    std::thread::sleep(Duration::from_millis(20));
    drop(first);
    assert!(waiter.join().expect("joins"));
    assert_eq!(life.pending(), (0, 0));
}

#[test]
fn whoever_waits_for_room_can_be_told_to_stop() {
    let life = Life::new(0);
    let _first = life.enter(|| 1, 500, Instant::now(), None).expect("there is room");
    let (stop, waiting) = (Stop::new(), life.clone());
    let told = stop.clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    let waiter = std::thread::spawn(move || waiting.enter(|| 1, 7, deadline, Some(&told)).is_none());
    std::thread::sleep(Duration::from_millis(5));
    assert!(!waiter.is_finished(), "there is no room");
    stop.stop();
    assert!(waiter.join().expect("joins") && Instant::now() < deadline);
    assert_eq!((life.pending(), life.strikes()), ((1, 500), 0));
}

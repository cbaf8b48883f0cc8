//! Memory of a simulated device that a caller manages: its bytes, its bounds, its price.

use super::*;
use crate::{SimBackend, SimProfile, backend::Launch};
use breakeven_ir::backend::Backend;

fn sim() -> SimBackend {
    SimBackend::new("gpu:0", SimProfile::by_name("modern-discrete").unwrap()).unwrap()
}

#[test]
fn it_begins_as_zeros_and_holds_what_is_written() {
    let sim = sim();
    // A block that was used before is not empty.
    drop(sim.upload(&[9; 5000]).unwrap());
    let memory = sim.allocate(5000).unwrap();
    assert_eq!((memory.device(), memory.len_bytes(), memory.is_current()), ("gpu:0", 5000, true));
    let before = memory.fetch().unwrap();
    assert_eq!(before.as_bytes(), [0; 5000]);
    sim.write(&memory, 4998, &[1, 2]).unwrap();
    sim.write(&memory, 10, &[3; 5]).unwrap();
    let mut read = [7; 6];
    sim.read(&memory, 10, &mut read).unwrap();
    assert_eq!(read, [3, 3, 3, 3, 3, 0]);
    sim.read(&memory, 4994, &mut read).unwrap();
    assert_eq!(read, [0, 0, 0, 0, 1, 2]);
    assert_eq!(before.as_bytes(), [0; 5000], "what was fetched does not change");
    assert_eq!(memory.fetch().unwrap().as_bytes()[4999], 2);
    assert_eq!(sim.allocate(0).unwrap().fetch().unwrap().len_bytes(), 0);
}

#[test]
fn transfers_have_their_price() {
    let sim = sim();
    let memory = sim.allocate(1_000_000).unwrap();
    assert_eq!(sim.virtual_ns(), 0);
    sim.write(&memory, 0, &[1; 1_000_000]).unwrap();
    assert_eq!(sim.virtual_ns(), 10_000 + 40_000);
    sim.read(&memory, 7, &mut [0; 500_000]).unwrap();
    assert_eq!(sim.virtual_ns(), 50_000 + 15_000 + 20_000);
    sim.write(&memory, 1_000_000, &[]).unwrap();
    sim.read(&memory, 1_000_000, &mut []).unwrap();
    assert_eq!(sim.virtual_ns(), 85_000);

    let sim = sim.paced(0.01).unwrap();
    let begun = std::time::Instant::now();
    sim.write(&memory, 0, &[1; 100_000]).unwrap();
    sim.read(&memory, 0, &mut [0; 100_000]).unwrap();
    let took = begun.elapsed();
    assert!(took >= std::time::Duration::from_micros(1400 + 1900), "{took:?}");
}

#[test]
fn what_is_outside_is_refused() {
    let sim = sim();
    let memory = sim.allocate(8).unwrap();
    for (offset, bytes) in [(8, 1), (0, 9), (9, 0), (usize::MAX, 2)] {
        let error = RunError::OutOfRange { offset, bytes, size: 8 };
        assert_eq!(sim.write(&memory, offset, &vec![1; bytes]), Err(error.clone()));
        assert_eq!(sim.read(&memory, offset, &mut vec![1; bytes]), Err(error));
    }
    assert_eq!((sim.virtual_ns(), memory.fetch().unwrap().as_bytes()), (0, &[0; 8][..]));
    for bytes in [usize::MAX, isize::MAX as usize] {
        assert!(matches!(sim.allocate(bytes).map(drop), Err(RunError::OutOfMemory { .. })), "{bytes}");
    }
}

#[test]
fn only_its_own_memory_is_written() {
    let (sim, other) = (sim(), sim());
    let refused = |answer: Result<(), RunError>| matches!(answer, Err(RunError::Unsupported { .. }));
    let theirs = other.allocate(8).unwrap();
    assert!(refused(sim.write(&theirs, 0, &[1])) && refused(sim.read(&theirs, 0, &mut [1])));
    // A value may be read, but others rely on what it is.
    let (value, mut read) = (sim.upload(&[1, 2, 3, 4]).unwrap(), [0; 2]);
    assert!(refused(sim.write(&value, 0, &[1])));
    sim.read(&value, 1, &mut read).unwrap();
    assert_eq!(read, [2, 3]);
    let launch = Launch { source: "", entry: "main", buffers: &[], params: &[], workgroups: [1, 1, 1] };
    assert!(refused(sim.launch(&launch).map(drop)));
}

#[test]
fn several_threads_write_and_read() {
    let sim = sim();
    let memory = sim.allocate(4 * 1000).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (sim, memory) = (&sim, &memory);
            scope.spawn(move || {
                let (at, mut read) = (usize::from(thread) * 1000, [0; 1000]);
                for round in 0..50 {
                    sim.write(memory, at, &[thread * 50 + round; 1000]).unwrap();
                    sim.read(memory, at, &mut read).unwrap();
                    assert_eq!(read, [thread * 50 + round; 1000]);
                }
            });
        }
    });
}

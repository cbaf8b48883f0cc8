//! Transfers on the real drivers of this machine: which ways there are, and that bytes arrive.

use super::*;
use crate::backend::tests::gpus;
use crate::{Gpu, GpuConfig};
use breakeven_ir::backend::{Backend, Status};
use crossbeam_channel::bounded;
use std::time::Duration;

/// Something on the owner thread, and what it returns.
fn on_owner<T: Send + 'static>(gpu: &Gpu, work: impl FnOnce(&mut Owner) -> T + Send + 'static) -> T {
    let (reply, answer) = bounded(1);
    let command = Command::Do(Box::new(move |owner: &mut Owner| drop(reply.send(work(owner)))));
    gpu.session.current().commands.send(command).expect("the owner lives");
    answer.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

fn ways(transfers: &[Transfer]) -> Vec<(&str, &str)> {
    transfers.iter().map(|transfer| (transfer.direction.name(), transfer.way.name())).collect()
}

#[test]
fn every_way_that_a_device_has_is_timed() {
    for gpu in gpus(&GpuConfig::default()) {
        let unified = on_owner(&gpu, |owner| owner.driver.unified);
        let transfers = gpu.transfers(1 << 20, 3).expect("transfers");
        let mut expected = vec![("upload", "pageable"), ("upload", "staged"), ("readback", "staged")];
        if unified {
            expected.insert(2, ("upload", "mapped"));
            expected.push(("readback", "mapped"));
        }
        assert_eq!(ways(&transfers), expected, "{}", gpu.info().backend);
        for transfer in &transfers {
            assert_eq!((transfer.bytes, transfer.samples_ns.len()), (1 << 20, 3));
            // More than 1 TB/s is no transfer.
            assert!(transfer.min_ns() > 1000, "{transfer:?}");
        }
        assert_eq!(gpu.health().status, Status::Healthy, "{}", gpu.health().reason);
    }
}

#[test]
fn memory_that_kernels_do_not_share_is_never_mapped() {
    for gpu in gpus(&GpuConfig::default()) {
        on_owner(&gpu, |owner| owner.driver.unified = false);
        let transfers = gpu.transfers(5000, 1).expect("transfers");
        assert_eq!(ways(&transfers), [("upload", "pageable"), ("upload", "staged"), ("readback", "staged")]);
    }
}

#[test]
fn buffers_are_given_back_and_used_again() {
    for gpu in gpus(&GpuConfig::default()) {
        let before = gpu.pool_stats().in_use_bytes;
        gpu.transfers(100_000, 1).expect("transfers");
        let created = gpu.counters().created_buffers;
        let transfers = gpu.transfers(100_000, 5).expect("transfers");
        assert!(!transfers.is_empty());
        assert_eq!(gpu.counters().created_buffers, created, "{}", gpu.info().backend);
        assert_eq!(gpu.pool_stats().in_use_bytes, before, "{}", gpu.info().backend);
    }
}

#[test]
fn sizes_are_rounded_up_to_what_a_copy_can_move() {
    for gpu in gpus(&GpuConfig::default()) {
        for (asked, moved) in [(1, 4), (4, 4), (4097, 4100)] {
            let transfers = gpu.transfers(asked, 1).expect("transfers");
            assert!(transfers.len() >= 3 && transfers.iter().all(|transfer| transfer.bytes == moved), "{asked}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_allocated() {
    for gpu in gpus(&GpuConfig::default()) {
        let limit = gpu.info().limits.buffer_bytes as usize;
        for bytes in [usize::MAX, usize::MAX - 3, limit.saturating_add(1)] {
            assert_eq!(gpu.transfers(bytes, 1), Err(RunError::OutOfMemory { bytes }), "{}", gpu.info().backend);
        }
        assert_eq!(gpu.transfers(4096, 1).map(|transfers| transfers.is_empty()), Ok(false));
    }
}

#[test]
fn bytes_that_arrive_changed_are_an_error() {
    for gpu in gpus(&GpuConfig::default()) {
        let seen = on_owner(&gpu, |owner| {
            let mut host = Host::new(3 * PIECE + 8)?;
            host.stamp(1);
            let (kept, _) = owner.upload_pageable(&host.sent)?;
            let same = owner.arrived(&kept, &host.sent);
            // The last piece alone is another.
            host.sent[3 * PIECE + 7] ^= 1;
            Ok::<_, RunError>((same, owner.arrived(&kept, &host.sent)))
        });
        let (same, changed) = seen.expect("uploads");
        assert_eq!(same, Ok(()));
        assert!(matches!(changed, Err(RunError::Device { message, .. }) if message.contains("arrived changed")));
    }
}

#[test]
fn no_two_transfers_send_the_same() {
    let mut host = Host::new(2 * PIECE + 4).expect("memory");
    host.stamp(1);
    let first = host.sent.clone();
    host.stamp(2);
    assert!(first.chunks(PIECE).zip(host.sent.chunks(PIECE)).all(|(first, second)| first != second));
    assert_ne!(host.sent[..PIECE], host.sent[PIECE..2 * PIECE]);
    assert!(host.back.iter().all(|byte| *byte == 0));
}

#[test]
fn an_owner_that_hangs_is_not_waited_for() {
    for gpu in gpus(&GpuConfig { sync_timeout: Duration::from_millis(200), ..GpuConfig::default() }) {
        let hang = Command::Do(Box::new(|_: &mut Owner| std::thread::sleep(Duration::from_secs(2))));
        gpu.session.current().commands.send(hang).expect("the owner lives");
        let begun = Instant::now();
        let error = gpu.transfers(4096, 1).expect_err("nobody answers");
        assert!(matches!(error, RunError::Timeout { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_device_that_is_lost_says_so() {
    for gpu in gpus(&GpuConfig::default()) {
        let life = gpu.session.current().life.clone();
        gpu.destroy_for_test();
        let error = match gpu.transfers(4096, 1) {
            Err(error) => error,
            // It was faster than the loss.
            Ok(_) => {
                life.ended.recv_timeout(Duration::from_secs(10)).expect_err("it is lost");
                continue;
            }
        };
        assert!(matches!(error, RunError::Lost { .. }), "{error}");
    }
}

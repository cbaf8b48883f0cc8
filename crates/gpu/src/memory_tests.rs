//! Memory that its caller manages, on the real drivers of this machine.

use crate::backend::tests::{doubling, gpus, numbers, run};
use crate::{Adapters, Api, Gpu, GpuConfig};
use breakeven_ir::backend::{Backend, Made, Prepared, Resident, RunError, Source, Status};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory as an input of batches.
pub(crate) fn on_device(value: &Arc<dyn Resident>) -> Buffer {
    struct OnDevice(Arc<dyn Resident>);
    impl HostBytes for OnDevice {
        fn as_bytes(&self) -> &[u8] {
            panic!("it must not be fetched")
        }
        fn resident(&self) -> Option<&Arc<dyn Resident>> {
            Some(&self.0)
        }
    }
    Buffer::with_len(Arc::new(OnDevice(value.clone())), value.len_bytes())
}

/// An ordinary batch, which is right only if the device is.
pub(crate) fn assert_works(gpu: &Gpu) {
    let (plan, lowered) = doubling(100);
    let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
    let x = numbers(100);
    let (y, _) = run(&*prepared, &x).expect("runs");
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x), "{}", gpu.info().name);
}

/// Waits until a device that was destroyed is there again.
pub(crate) fn rebuilt(gpu: &Gpu, generation: u64) {
    let begun = Instant::now();
    while gpu.generation() < generation || gpu.is_lost() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not rebuilt: {}", gpu.health().reason);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn all(gpu: &Gpu, value: &Arc<dyn Resident>) -> Vec<u8> {
    let mut bytes = vec![0xAA; value.len_bytes()];
    gpu.read(value, 0, &mut bytes).expect("reads");
    bytes
}

#[test]
fn bytes_at_any_place_come_back_and_nothing_beside_them_changes() {
    for gpu in gpus(&GpuConfig::default()) {
        let mut seed = 7usize;
        let mut below = |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for size in [0usize, 1, 2, 3, 4, 5, 7, 63, 256, 257, 1001] {
            let value = gpu.allocate(size).expect("allocates");
            let mut expected = vec![0u8; size];
            assert_eq!((value.len_bytes(), value.device()), (size, gpu.id()));
            assert_eq!(all(&gpu, &value), expected, "{size} bytes of zeros");
            for round in 0..24 {
                let offset = below(size + 1);
                let len = below(size - offset + 1).min(if round % 2 == 0 { 9 } else { 2000 });
                let bytes: Vec<u8> = (0..len).map(|_| below(256) as u8).collect();
                gpu.write(&value, offset, &bytes).expect("writes");
                expected[offset..offset + len].copy_from_slice(&bytes);
                let from = below(size + 1);
                let mut part = vec![0u8; below(size - from + 1)];
                gpu.read(&value, from, &mut part).expect("reads");
                assert_eq!(part, expected[from..from + part.len()], "{size} {offset} {len} {from}");
            }
            assert_eq!(all(&gpu, &value), expected, "{size} on {}", gpu.info().backend);
            assert_eq!(value.fetch().expect("fetched").as_bytes(), expected);
        }
        assert_eq!(gpu.health().status, Status::Healthy, "{}", gpu.health().reason);
    }
}

#[test]
fn neighbours_in_one_word_do_not_undo_each_other() {
    for gpu in gpus(&GpuConfig::default()) {
        let value = gpu.allocate(16).expect("allocates");
        std::thread::scope(|scope| {
            for place in 0..8 {
                let (gpu, value) = (&gpu, &value);
                scope.spawn(move || {
                    (1..=10u8).for_each(|round| gpu.write(value, place, &[round * 10 + place as u8]).expect("writes"));
                });
            }
        });
        assert_eq!(all(&gpu, &value), [100, 101, 102, 103, 104, 105, 106, 107, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

#[test]
fn memory_of_the_pool_is_zeroed_again_and_goes_back() {
    for gpu in gpus(&GpuConfig::default()) {
        let sizes = [0usize, 5, 1000, 100_003];
        let touch = |byte: u8| {
            for size in sizes {
                let value = gpu.allocate(size).expect("allocates");
                assert!(all(&gpu, &value).iter().all(|byte| *byte == 0), "{size} on {}", gpu.info().backend);
                gpu.write(&value, 0, &vec![byte; size]).expect("writes");
                gpu.write(&value, size / 2, &vec![byte; size / 3]).expect("writes");
                assert!(all(&gpu, &value).iter().all(|found| *found == byte));
            }
        };
        let before = gpu.pool_stats();
        touch(0xFF);
        gpu.compact().expect("compacts");
        touch(0xFF);
        let created = gpu.counters().created_buffers;
        touch(0xEE);
        assert_eq!(gpu.counters().created_buffers, created, "{}", gpu.info().backend);
        let after = gpu.pool_stats();
        assert_eq!((after.in_use_bytes, after.padding_bytes), (before.in_use_bytes, before.padding_bytes));
        let held: Vec<_> = sizes.iter().map(|size| gpu.allocate(*size).expect("allocates")).collect();
        assert!(gpu.pool_stats().in_use_bytes >= before.in_use_bytes + 101_000);
        drop(held);
        gpu.compact().expect("compacts");
        let compacted = gpu.pool_stats();
        assert_eq!(compacted.in_use_bytes, before.in_use_bytes);
        assert_eq!(compacted.reserved_bytes, compacted.in_use_bytes, "nothing is left over");
    }
}

#[test]
fn idle_memory_stays_below_the_cap_without_any_batch() {
    for gpu in gpus(&GpuConfig { pool_bytes: 1 << 20, ..GpuConfig::default() }) {
        for step in 0..12usize {
            let value = gpu.allocate((3 << 19) + step * 300_000).expect("allocates");
            gpu.write(&value, 1, &vec![7; value.len_bytes() - 2]).expect("writes");
        }
        gpu.allocate(4).expect("allocates");
        let stats = gpu.pool_stats();
        assert!(stats.reserved_bytes <= (1 << 20) + stats.in_use_bytes, "{stats:?}");
    }
}

#[test]
fn batches_read_it_and_their_results_are_such_memory() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(500);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let x = numbers(500);
        let value = gpu.allocate(2000).expect("allocates");
        gpu.write(&value, 0, bytemuck::cast_slice(&x)).expect("writes");
        gpu.write(&value, 4 * 499, &1000.0f32.to_ne_bytes()).expect("writes");
        let (made, timings) = prepared.run_batch(&[Source::Shared(&on_device(&value))], true).expect("runs");
        assert_eq!((timings.uploads, timings.readbacks), (0, 0));
        let [Made::Resident(result)] = &made[..] else { panic!("asked to stay") };
        let mut expected: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
        expected[499] = 2000.0;
        assert_eq!(all(&gpu, result), bytemuck::cast_slice::<_, u8>(&expected));

        gpu.write(result, 4, &[0; 4]).expect("writes");
        let (made, _) = prepared.run_batch(&[Source::Shared(&on_device(result))], false).expect("runs");
        let [Made::Host(host)] = &made[..] else { panic!("asked for on the host") };
        expected[1] = 0.0;
        expected.iter_mut().for_each(|v| *v *= 2.0);
        assert_eq!(host.as_bytes(), bytemuck::cast_slice::<_, u8>(&expected));

        let uploaded = gpu.upload(&[1, 2, 3, 4, 5]).expect("uploads");
        gpu.write(&uploaded, 3, &[9, 8]).expect("writes");
        assert_eq!(all(&gpu, &uploaded), [1, 2, 3, 9, 8]);
    }
}

#[test]
fn what_can_not_be_done_is_a_typed_error_and_harms_nothing() {
    for gpu in gpus(&GpuConfig::default()) {
        let before = gpu.pool_stats().in_use_bytes;
        let value = gpu.allocate(10).expect("allocates");
        for (offset, bytes) in [(0usize, 11usize), (11, 0), (10, 1), (7, 4), (usize::MAX, 2), (usize::MAX, 0)] {
            let outside = Err(RunError::OutOfRange { offset, bytes, size: 10 });
            assert_eq!(gpu.write(&value, offset, &vec![1; bytes]), outside);
            assert_eq!(gpu.read(&value, offset, &mut vec![1; bytes]), outside);
        }
        assert_eq!((gpu.write(&value, 10, &[]), gpu.read(&value, 10, &mut [])), (Ok(()), Ok(())));
        assert_eq!(all(&gpu, &value), [0; 10], "nothing was written");
        let limit = gpu.info().limits.buffer_bytes as usize;
        for bytes in [usize::MAX, usize::MAX - 3, 1 << 62, 1 << 40, limit + 1] {
            assert_eq!(gpu.allocate(bytes).map(|_| ()), Err(RunError::OutOfMemory { bytes }), "{}", gpu.info().backend);
        }
        assert_works(&gpu);
        assert_eq!(gpu.generation(), 0);
        drop(value);
        // The plan is forgotten before that.
        gpu.compact().expect("compacts");
        assert_eq!(gpu.pool_stats().in_use_bytes, before);
    }
}

#[test]
fn memory_of_another_device_is_refused() {
    let adapters = Adapters::find(Api::ALL);
    assert!(!adapters.infos().is_empty(), "no adapter: {}", crate::driver_hint());
    for index in 0..adapters.infos().len() {
        let [one, other] = [0, 1].map(|_| adapters.open(index, &GpuConfig::default()).expect("opens"));
        let value = other.allocate(8).expect("allocates");
        let refused = [one.write(&value, 0, &[1]), one.read(&value, 0, &mut [0])];
        for refused in refused {
            let error = refused.expect_err("it lies elsewhere");
            assert!(matches!(&error, RunError::Unsupported { why, .. } if why.contains("another device")), "{error}");
        }
        assert_eq!(all(&other, &value), [0; 8]);
        assert_works(&one);
    }
}

#[test]
fn memory_of_a_lost_device_is_stale_and_new_memory_serves() {
    for gpu in gpus(&GpuConfig::default()) {
        let value = gpu.allocate(8).expect("allocates");
        gpu.destroy_for_test();
        let begun = Instant::now();
        while !gpu.is_lost() && gpu.generation() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "never lost");
        }
        let gone = |result: Result<(), RunError>| {
            let error = result.expect_err("the device is gone");
            assert!(matches!(error, RunError::Lost { .. } | RunError::Stale { .. }), "{error}");
        };
        gone(gpu.write(&value, 0, &[1]));
        gone(gpu.read(&value, 0, &mut [1]));
        rebuilt(&gpu, 1);
        let stale = Err(RunError::Stale { device: gpu.id().into() });
        assert_eq!(gpu.write(&value, 0, &[1]), stale);
        assert_eq!(gpu.read(&value, 0, &mut [1]), stale);
        assert_eq!(value.fetch().map(|_| ()), stale);
        let value = gpu.allocate(8).expect("allocates");
        gpu.write(&value, 3, &[1, 2]).expect("writes");
        assert_eq!(all(&gpu, &value), [0, 0, 0, 1, 2, 0, 0, 0]);
        assert_works(&gpu);
    }
}

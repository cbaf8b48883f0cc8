use super::*;
use crate::health::lock;
use crate::job::Command;
use crate::store::tests::Dir;
use crate::{Adapters, Api, Gpu, GpuConfig};
use breakeven_ir::backend::Backend;

fn config(dir: &Dir) -> GpuConfig {
    GpuConfig { cache_dir: Some(dir.0.clone()), tune: false, ..GpuConfig::default() }
}

/// Every device here, each opened with a memory of its own.
fn each(name: &str, test: impl Fn(&dyn Fn() -> Gpu, &Dir)) {
    let adapters = Adapters::find(Api::ALL);
    let count = adapters.infos().len();
    assert!(count > 0, "no adapter: {}", crate::driver_hint());
    for index in 0..count {
        let dir = Dir::new(&format!("{name}-{index}"));
        test(&|| adapters.open(index, &config(&dir)).expect("opens"), &dir);
    }
}

/// Does something on the owner thread.
fn on_owner<T: Send + 'static>(gpu: &Gpu, work: impl FnOnce(&mut Owner) -> T + Send + 'static) -> T {
    let handle = gpu.session.handle().expect("there");
    let command = |reply: crossbeam_channel::Sender<_>| {
        Command::Do(Box::new(move |owner: &mut Owner| drop(reply.send(Ok(work(owner))))))
    };
    gpu.session.ask(&handle, || 0, None, command).expect("answers")
}

#[test]
fn quirks_are_found_respected_and_remembered() {
    each("quirks", |open, dir| {
        let gpu = open();
        let quirks = lock(&gpu.session.quirks).clone();
        let (name, driver) = (&gpu.info().name, &gpu.info().driver);
        assert_eq!(gpu.counters().self_tests, 1, "{name}");
        if name.contains("llvmpipe") && driver.contains("Mesa 22.3.") {
            assert_eq!(quirks.loop_cap, Some(65_535), "{name} {driver}");
            assert!(Backend::quirks(&gpu)[0].contains("65535 iterations"), "{:?}", gpu.quirks());
        }
        if name.contains("SwiftShader") {
            assert_eq!((quirks.loop_cap, quirks.flushes_denormals), (None, true), "{name} {driver}");
        }
        assert_eq!(gpu.session.limits().loop_cap, quirks.loop_cap);
        assert_eq!((quirks.in_flight, quirks.broken.len()), (1, 0), "{name}: {:?}", gpu.quirks());
        // The opening is not counted.
        assert_eq!((gpu.counters().submits, gpu.counters().created_pipelines), (0, 0));
        let stats = gpu.pool_stats();
        assert_eq!((stats.in_use_bytes, stats.reserved_bytes), (0, 0), "{stats:?}");

        let again = open();
        assert_eq!((again.counters().self_tests, again.counters().self_test_ns), (0, 0));
        assert_eq!(*lock(&again.session.quirks), quirks);

        let path = dir.files().remove(0);
        let text = std::fs::read_to_string(&path).expect("reads");
        std::fs::write(&path, text.replace("\"in_flight\": 1", "\"in_flight\": 2")).expect("writes");
        let third = open();
        assert_eq!(third.counters().self_tests, 1, "what was forged is not believed");
        assert_eq!(*lock(&third.session.quirks), quirks);
        assert_eq!(open().counters().self_tests, 0, "it was replaced");
    });
}

#[test]
fn a_class_that_is_wrong_is_refused() {
    each("broken", |open, _| {
        let gpu = open();
        lock(&gpu.session.quirks).broken.push(Class::Scan);
        let cases = cases().expect("plans");
        for case in &cases {
            let prepared = gpu.prepare(&case.plan).map(|_| ());
            match case.class {
                Class::Scan => assert!(matches!(prepared, Err(RunError::Unsupported { .. })), "{prepared:?}"),
                class => assert_eq!(prepared, Ok(()), "{class}"),
            }
        }
        assert!(gpu.quirks().iter().any(|words| words.starts_with("scan kernels give wrong results")));
    });
}

/// The measurement that real devices get, on drivers that are known to wait in `submit`.
#[test]
fn a_driver_that_waits_is_found_out() {
    each("in-flight", |open, _| {
        let gpu = open();
        let found = on_owner(&gpu, |owner| {
            let probe = probe(owner)?;
            let ns = owner.trial(&probe, &[question(TURNS)])?.ns();
            in_flight(owner, &probe, ns)
        });
        if gpu.info().name.contains("llvmpipe") {
            assert_eq!(found, Ok(1), "{}", gpu.info().name);
        }
        assert!(matches!(found, Ok(1 | 2)), "{found:?}");
    });
}

#[test]
fn the_stopped_loop_is_told_by_its_state() {
    each("states", |open, _| {
        on_owner(&open(), |owner| {
            let at = |turns: usize| states().nth(turns).expect("endless");
            assert_eq!(loop_cap(owner, at(70_000)), Ok(None));
            assert_eq!(loop_cap(owner, at(65_535)), Ok(Some(65_535)));
            assert_eq!(loop_cap(owner, at(1_024)), Ok(Some(1_024)));
            assert!(loop_cap(owner, at(0)).is_err() && loop_cap(owner, 7).is_err());
        });
    });
}

#[test]
fn pipelines_that_no_plan_needs_are_dropped() -> Result<(), Box<dyn std::error::Error>> {
    use crate::owner::needed;
    use breakeven_ir::{DType, Plan, Tensor};
    each("pipelines", |open, _| {
        let gpu = open();
        let x = Tensor::input("x", DType::F32, [4]).expect("records");
        let run = |y: Tensor| {
            let plan = std::sync::Arc::new(Plan::new(&[&y]).expect("plans"));
            let prepared = gpu.prepare(&plan).expect("prepares");
            let mut out = [0u8; 16];
            prepared.run(&[&[0; 16]], &mut [&mut out], false).expect("runs");
            (prepared, out)
        };
        let (kept, before) = run(x.cos().expect("records"));
        for y in [x.sin(), x.exp(), x.tanh(), x.sqrt()] {
            run(y.expect("records"));
        }
        let (all, left) = on_owner(&gpu, |owner| {
            let all = owner.pipelines.len();
            owner.pipelines.trim(2, needed(&owner.plans));
            (all, owner.pipelines.len())
        });
        assert!(all >= 5 && left < all && left >= 1, "{all} {left}");
        let mut again = [0u8; 16];
        kept.run(&[&[0; 16]], &mut [&mut again], false).expect("its pipeline is still there");
        assert_eq!(before, again);
        // What was dropped is compiled again.
        assert_eq!(run(x.exp().expect("records")).1, run(x.cos().expect("records")).1, "exp(0) = cos(0)");
    });
    Ok(())
}

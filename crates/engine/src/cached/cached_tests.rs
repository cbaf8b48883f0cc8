use super::segment::tests::Folder;
use super::*;
use crate::array::View;
use crate::config::Config;
use crate::many::Many;
use crate::route::RunOptions;
use breakeven_ir::backend::KERNEL_VERSION;

fn engine() -> Engine {
    Engine::with_config(Config { device: Device::Cpu, threads: Some(2), ..Config::default() }).unwrap()
}

fn options(folder: &Folder) -> CacheOptions {
    CacheOptions { folder: Some(folder.0.clone()), ..CacheOptions::default() }
}

fn input(elems: usize) -> Tensor {
    Tensor::input("x", DType::F32, [elems]).unwrap()
}

/// `x * factor` and its sum, and `x * factor` again.
fn scaled(engine: &Engine, factor: f32) -> Program {
    let x = input(8);
    let y = (&x * factor).unwrap();
    engine.compile(&[&x], &[&y, &y.sum(&[], false).unwrap(), &y]).unwrap()
}

fn values(count: usize) -> Vec<Vec<f32>> {
    (0..count).map(|task| (0..8 + task % 3).map(|i| (task * 10 + i) as f32).collect()).collect()
}

fn tasks(values: &[Vec<f32>]) -> Vec<[View<'_>; 1]> {
    values.iter().map(|values| [values.into()]).collect()
}

#[track_caller]
fn assert_same(found: &Many, expected: &Many) {
    assert_eq!(found.len(), expected.len());
    for task in 0..expected.len() {
        for output in 0..3 {
            let (found, expected) = (found.array(task, output).unwrap(), expected.array(task, output).unwrap());
            assert_eq!((found.shape(), found.as_bytes()), (expected.shape(), expected.as_bytes()), "{task} {output}");
        }
    }
}

fn asked(cached: &Cached) -> (u64, u64) {
    let figures = cached.stats().figures;
    (figures.hits, figures.misses)
}

#[test]
fn many_tasks_of_several_sizes_are_remembered_by_the_next_engine() {
    let folder = Folder::new("cached-many");
    let values = values(40);
    let tasks = tasks(&values);
    let first = engine();
    let plain = scaled(&first, 2.0);
    let expected = plain.run_many(&tasks).unwrap();
    {
        let cached = first.cached(options(&folder)).unwrap();
        let program = cached.program(&plain).unwrap();
        assert_same(&program.run_many(&tasks[..10]).unwrap(), &plain.run_many(&tasks[..10]).unwrap());
        assert_eq!(asked(&cached), (0, 10));
        // Some are there, some are not, in any order.
        assert_same(&program.run_many(&tasks).unwrap(), &expected);
        assert_eq!(asked(&cached), (10, 40));
    }
    let engine = engine();
    let cached = engine.cached(options(&folder)).unwrap();
    let program = cached.program(&scaled(&engine, 2.0)).unwrap();
    let mut results = Many::default();
    for _ in 0..2 {
        program.run_many_into(&tasks, &mut results).unwrap();
        assert_same(&results, &expected);
    }
    assert_eq!((asked(&cached), cached.stats().hit_rate()), ((80, 0), Some(1.0)));
    assert_eq!(program.run_many::<[View<'_>; 1]>(&[]).unwrap().len(), 0);
    let summary = CacheSummary::read(&folder.0).unwrap();
    assert_eq!((summary.entries, summary.last_run.hits, summary.in_all.misses), (40, 10, 40));
    drop((program, cached));
    let summary = CacheSummary::read(&folder.0).unwrap();
    assert_eq!((summary.last_run.hits, summary.in_all.hits, summary.torn_bytes), (80, 90, 0));
}

#[test]
fn single_runs_share_with_many() {
    let folder = Folder::new("cached-single");
    let engine = engine();
    let cached = engine.cached(options(&folder)).unwrap();
    let program = cached.program(&scaled(&engine, 3.0)).unwrap();
    let values = values(6);
    program.run_many(&tasks(&values)).unwrap();
    let x = View::from(&values[3]);
    let expected = program.program().run(&[x]).unwrap();
    for outputs in [program.run(&[x]).unwrap(), program.get(&[x]).unwrap().unwrap()] {
        outputs.iter().zip(&expected).for_each(|(a, b)| assert_eq!(a.as_bytes(), b.as_bytes()));
    }
    assert!(program.get(&[View::from(&values[4])]).unwrap().is_some(), "of another size");
    assert_eq!(asked(&cached), (3, 6));
    // A recorded batch is the same computation.
    let x = Tensor::from_vec(values[3].clone(), [8]).unwrap();
    let y = (&x * 3.0).unwrap();
    let outputs = cached.run(&[&y, &y.sum(&[], false).unwrap(), &y]).unwrap();
    outputs.iter().zip(&expected).for_each(|(a, b)| assert_eq!(a.as_bytes(), b.as_bytes()));
    assert_eq!(asked(&cached), (4, 6));
    // Put in from elsewhere.
    let other = vec![5.0f32; 8];
    assert!(program.get(&[(&other).into()]).unwrap().is_none());
    let outputs = program.program().run(&[(&other).into()]).unwrap();
    program.put(&[(&other).into()], &outputs).unwrap();
    assert!(program.get(&[(&other).into()]).unwrap().is_some());
    assert!(matches!(program.put(&[(&other).into()], &outputs[..2]), Err(Error::Count { .. })));
    let swapped = [outputs[1].clone(), outputs[0].clone(), outputs[2].clone()];
    assert!(matches!(program.put(&[(&other).into()], &swapped), Err(Error::OutputSize { number: 0, .. })));
}

#[test]
fn only_a_changed_program_is_computed_again() {
    let folder = Folder::new("cached-changed");
    let engine = engine();
    let values = values(20);
    let run = |cached: &Cached, factors: [f32; 3]| {
        for factor in factors {
            let plain = scaled(&engine, factor);
            let found = cached.program(&plain).unwrap().run_many(&tasks(&values)).unwrap();
            assert_same(&found, &plain.run_many(&tasks(&values)).unwrap());
        }
        asked(cached)
    };
    assert_eq!(run(&engine.cached(options(&folder)).unwrap(), [1.0, 2.0, 3.0]), (0, 60));
    assert_eq!(run(&engine.cached(options(&folder)).unwrap(), [1.0, 2.5, 3.0]), (40, 20));
    assert_eq!(run(&engine.cached(options(&folder)).unwrap(), [1.0, 2.5, 3.0]), (60, 0));
}

#[test]
fn constants_of_a_program_are_inputs() {
    let folder = Folder::new("cached-constants");
    let engine = engine();
    let cached = engine.cached(options(&folder)).unwrap();
    let with = |weights: [f32; 2]| {
        let x = input(2);
        let weights = Tensor::from_slice(&weights, [2]).unwrap();
        cached.program(&engine.compile(&[&x], &[&(&x * &weights).unwrap()]).unwrap()).unwrap()
    };
    let x = vec![1.0f32, 1.0];
    for _ in 0..2 {
        assert_eq!(with([2.0, 3.0]).run(&[(&x).into()]).unwrap()[0].as_slice::<f32>().unwrap(), [2.0, 3.0]);
        assert_eq!(with([4.0, 3.0]).run(&[(&x).into()]).unwrap()[0].as_slice::<f32>().unwrap(), [4.0, 3.0]);
    }
    assert_eq!(asked(&cached), (2, 2));
}

#[test]
fn another_version_or_namespace_misses_everything() {
    let folder = Folder::new("cached-version");
    let engine = engine();
    let values = values(10);
    let hits = |cached: &Cached| {
        let program = cached.program(&scaled(&engine, 2.0)).unwrap();
        program.run_many(&tasks(&values)).unwrap();
        asked(cached).0
    };
    assert_eq!(hits(&engine.cached(options(&folder)).unwrap()), 0);
    assert_eq!(hits(&engine.cached(options(&folder)).unwrap()), 10);
    let mut newer = engine.cached(options(&folder)).unwrap();
    Arc::get_mut(&mut newer.inner).unwrap().context = Context::of(KERNEL_VERSION + 1, "cpu", "");
    assert_eq!(hits(&newer), 0);
    drop(newer);
    let mine = CacheOptions { namespace: "mine".into(), ..options(&folder) };
    assert_eq!(hits(&engine.cached(mine.clone()).unwrap()), 0);
    assert_eq!(hits(&engine.cached(mine).unwrap()), 10);
    assert_eq!(hits(&engine.cached(options(&folder)).unwrap()), 10, "the first are still there");
}

#[test]
fn tasks_that_fail_are_not_remembered_and_those_that_are_the_same_are_computed_once() {
    let folder = Folder::new("cached-failed");
    let engine = engine();
    let cached = engine.cached(options(&folder)).unwrap();
    let (table, index) = (input(4), Tensor::input("i", DType::I32, [2]).unwrap());
    let plain = engine.compile(&[&table, &index], &[&table.take(&index, 0).unwrap()]).unwrap();
    let program = cached.program(&plain).unwrap();
    let table = vec![1.0f32, 2.0, 3.0, 4.0];
    let indices: Vec<Vec<i32>> = [[0, 1], [9, 0], [2, 3], [0, 1], [9, 0]].map(Vec::from).into();
    let tasks: Vec<[View<'_>; 2]> = indices.iter().map(|index| [(&table).into(), index.into()]).collect();
    for (round, (hits, misses)) in [(2, 3), (4, 1)].into_iter().enumerate() {
        let before = asked(&cached);
        let many = program.run_many(&tasks).unwrap();
        assert_eq!(many.failures().map(|(task, _)| task).collect::<Vec<_>>(), [1, 4], "round {round}");
        assert_eq!(many.slice::<f32>(0, 0).unwrap(), [1.0, 2.0]);
        assert_eq!(many.slice::<f32>(2, 0).unwrap(), [3.0, 4.0]);
        assert_eq!(many.slice::<f32>(3, 0).unwrap(), [1.0, 2.0]);
        assert!(matches!(many.slice::<f32>(4, 0), Err(Error::Run(RunError::TakeIndex { .. }))));
        let now = asked(&cached);
        assert_eq!((now.0 - before.0, now.1 - before.1), (hits, misses), "round {round}");
    }
    assert_eq!(cached.stats().entries, 2);
}

#[test]
fn a_device_that_is_named_has_its_own_results() {
    let folder = Folder::new("cached-device");
    let engine = Engine::with_config(Config { threads: Some(1), ..Config::default() }).unwrap();
    let cached = engine.cached(options(&folder)).unwrap();
    let program = cached.program(&scaled(&engine, 2.0)).unwrap();
    let (values, mut results) = (values(4), Many::default());
    program.run_many_into(&tasks(&values), &mut results).unwrap();
    let on_cpu = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
    let decision = program.run_many_with(&tasks(&values), &mut results, &on_cpu).unwrap();
    assert_eq!(decision.map(|decision| decision.device), Some("cpu".into()));
    assert!(program.run_many_with(&tasks(&values), &mut results, &on_cpu).unwrap().is_none(), "nothing was decided");
    assert_eq!(asked(&cached), (4, 8));
}

#[test]
fn mistakes_are_told() {
    let folder = Folder::new("cached-mistakes");
    let (engine, other) = (engine(), engine());
    let refused = |options| engine.cached(options).unwrap_err();
    assert!(matches!(refused(CacheOptions::default()), Error::Setting { name: "folder", .. }));
    assert!(matches!(refused(CacheOptions { max_bytes: 1, ..options(&folder) }), Error::Setting { .. }));
    assert!(matches!(refused(CacheOptions { max_entries: 0, ..options(&folder) }), Error::Setting { .. }));
    let cached = engine.cached(options(&folder)).unwrap();
    assert_eq!(cached.program(&scaled(&other, 1.0)).unwrap_err(), Error::OtherEngine);
    let program = cached.program(&scaled(&engine, 1.0)).unwrap();
    let (short, ints) = (vec![1.0f32; 3], vec![1i32; 8]);
    assert!(matches!(program.run(&[(&short).into()]), Err(Error::InputShape { .. })));
    assert!(matches!(program.run_many(&[[View::from(&ints)]]), Err(Error::InputDType { .. })));
    assert!(matches!(program.get(&[]), Err(Error::Count { .. })));
    let unbound = input(2).exp().unwrap();
    assert!(matches!(cached.run(&[&unbound]), Err(Error::Record(breakeven_ir::Error::UnboundInput { .. }))));
    assert_eq!(asked(&cached), (0, 0));
}

#[test]
fn a_folder_that_can_not_be_made_costs_no_result() {
    let folder = Folder::new("cached-no-folder");
    let file = folder.0.join("file");
    std::fs::write(&file, "in the way").unwrap();
    let engine = engine();
    let cached = engine.cached(CacheOptions { folder: Some(file.join("deeper")), ..CacheOptions::default() }).unwrap();
    let plain = scaled(&engine, 2.0);
    let values = values(5);
    for _ in 0..3 {
        let found = cached.program(&plain).unwrap().run_many(&tasks(&values)).unwrap();
        assert_same(&found, &plain.run_many(&tasks(&values)).unwrap());
    }
    cached.flush();
    let stats = cached.stats();
    assert!(stats.figures.faults > 0 && stats.fault.as_ref().is_some_and(|fault| fault.contains("deeper")));
    assert_eq!((stats.entries, stats.figures.misses, stats.hit_rate()), (0, 15, Some(0.0)));
}

#[test]
fn threads_share_one_cache() {
    let folder = Folder::new("cached-threads");
    let engine = engine();
    let cached = engine.cached(CacheOptions { max_bytes: 1 << 14, ..options(&folder) }).unwrap();
    let plain = scaled(&engine, 2.0);
    let values = values(200);
    let expected = plain.run_many(&tasks(&values)).unwrap();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (program, values, expected) = (cached.program(&plain).unwrap(), &values, &expected);
            scope.spawn(move || {
                for round in 0..20 {
                    let from = (first * 37 + round * 11) % 150;
                    let found = program.run_many(&tasks(&values[from..from + 50])).unwrap();
                    for task in 0..50 {
                        assert_eq!(
                            found.slice::<f32>(task, 0).unwrap(),
                            expected.slice::<f32>(from + task, 0).unwrap()
                        );
                    }
                }
            });
        }
    });
    let stats = cached.stats();
    assert_eq!((stats.figures.hits + stats.figures.misses, stats.figures.faults), (4000, 0));
    assert!(stats.bytes <= 1 << 14 && stats.figures.hits > 0 && stats.figures.evictions > 0, "{stats:?}");
}

#[test]
fn results_that_are_flushed_do_not_write_the_figures_each_time() {
    let folder = Folder::new("cached-flushed");
    let cached = engine().cached(options(&folder)).unwrap();
    let file = folder.0.join(figures::FILE);
    for factor in 0..10 {
        cached.run(&[&(&Tensor::scalar(2.0f32) * factor as f32).unwrap()]).unwrap();
        cached.flush();
        assert!(!file.exists(), "not within the first second");
    }
    drop(cached);
    assert_eq!(figures::Kept::read(&folder.0).last_run.inserts, 10);
}

#[test]
fn everything_is_safe_to_share() {
    fn check<T: Send + Sync + Clone + 'static>() {}
    check::<Cached>();
    check::<CachedProgram>();
}

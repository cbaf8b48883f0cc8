//! What a decision costs: nothing is allocated for a plan that was seen before.

use breakeven::cost::Effort;
use breakeven::{Config, DType, Device, Engine, SimBackend, SimProfile, Tensor, View, ViewMut};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it is; the counter is a plain cell of the thread, which
// allocates nothing and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The fewest allocations that a batch was run with: where threads help, some runs make more.
fn allocations(engine: &Engine, output: &Tensor) -> usize {
    let batch = || {
        let before = COUNT.get();
        let outputs = engine.run(&[output]);
        let made = COUNT.get() - before;
        assert!(outputs.is_ok());
        made
    };
    // The first ones plan, measure and fill pools.
    (0..100).map(|_| batch()).skip(50).min().unwrap_or(usize::MAX)
}

/// The same batch on the CPU: because it was told to, and because that was found to be best.
#[test]
fn choosing_allocates_nothing() -> Result<(), Box<dyn std::error::Error>> {
    // The device must be thought about: not so slow that the CPU is beyond doubt, nor so fast that it is chosen.
    let told = Config { threads: Some(1), device: Device::Cpu, slow_cpu: 2, ..Config::default() };
    let auto = Config { threads: Some(1), device: Device::Auto, slow_cpu: 2, explore: 0.0, ..Config::default() };
    let x = Tensor::from_vec(vec![0.5f32; 30_000], [30_000])?;
    let output = x.exp()?;

    let told = Engine::with_backends(told, Vec::new())?;
    let card = SimBackend::new("gpu:0", SimProfile::by_name("modern-discrete")?)?;
    let auto = Engine::with_backends(auto, vec![Arc::new(card.clone())])?;
    auto.measure("cpu", Effort::Probe, &mut |_| ControlFlow::Continue(()))?;
    let cpu_ns = auto.predict(&[&output])?[0].1.total_ns() as f64;
    let device_ns = card.batch_ns(&breakeven::Plan::new(&[&output])?, 1) as f64;
    // Half as long again as the CPU: close enough for no settled matter, whatever this machine is.
    card.set_slowdown(1.5 * cpu_ns / device_ns)?;
    auto.measure("gpu:0", Effort::Probe, &mut |_| ControlFlow::Continue(()))?;

    let (told, auto_count) = (allocations(&told, &output), allocations(&auto, &output));
    assert!(told > 0, "results are lists");
    assert_eq!(auto_count, told);
    // It was a choice.
    let decision = auto.run_with(&[&output], &Default::default())?.decision;
    assert_eq!((&*decision.device, decision.predicted.len()), ("cpu", 2), "{}", decision.reason);
    assert!(decision.predicted[0].measured);

    // Into memory that exists nothing is allocated at all, also where there is a choice.
    let x = Tensor::input("x", DType::F32, [30_000])?;
    let program = auto.compile(&[&x], &[&x.exp()?])?;
    let (values, mut results) = (vec![0.5f32; 30_000], vec![0.0f32; 30_000]);
    let mut fewest = usize::MAX;
    for _ in 0..100 {
        let before = COUNT.get();
        program.run_into(&[View::from(&values)], &mut [ViewMut::from(&mut results)])?;
        fewest = fewest.min(COUNT.get() - before);
    }
    assert_eq!(fewest, 0);
    assert!(results.iter().all(|y| (y - 0.5f32.exp()).abs() < 1e-6));
    assert_eq!(&*program.run_with(&[View::from(&values)], &Default::default())?.decision.device, "cpu");
    Ok(())
}

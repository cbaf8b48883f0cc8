//! What running allocates: counted by an allocator that wraps the system's, and read from the kernel's own books.

use breakeven::{Config, DType, Device, Engine, Tensor, View};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
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

/// The counters are shared by the whole process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// How many allocations `work` makes, and the largest of them.
fn counted<R>(work: impl FnOnce() -> R) -> (usize, usize, R) {
    let before = COUNT.load(Ordering::Relaxed);
    LARGEST.store(0, Ordering::Relaxed);
    let result = work();
    (COUNT.load(Ordering::Relaxed) - before, LARGEST.load(Ordering::Relaxed), result)
}

fn chain(x: &Tensor) -> breakeven::Result<Tensor> {
    let t = ((x * 1.5)? + 0.5)?;
    let t = ((t * x.sigmoid())? - 0.25)?.abs()?.sqrt()?;
    Ok((t + x)?.gelu()?)
}

/// Programs of every class: (name, inputs' extents, how to record it).
type Recipe = (&'static str, Vec<Vec<usize>>, fn(&[Tensor]) -> breakeven::Result<Tensor>);
fn recipes() -> Vec<Recipe> {
    vec![
        ("add", vec![vec![256], vec![256]], |t| Ok((&t[0] + &t[1])?)),
        ("chain", vec![vec![70_000]], |t| chain(&t[0])),
        ("sum", vec![vec![300_000]], |t| Ok(t[0].sum(&[], false)?)),
        ("column sums", vec![vec![5_000, 16]], |t| Ok(t[0].sum(&[0], false)?)),
        ("softmax", vec![vec![64, 512]], |t| Ok(t[0].softmax(-1)?)),
        ("softmax of columns", vec![vec![64, 512]], |t| Ok(t[0].softmax(0)?)),
        ("cumsum", vec![vec![8, 100]], |t| Ok(t[0].cumsum(1)?)),
        ("matmul", vec![vec![100, 70], vec![70, 90]], |t| Ok((t[0].matmul(&t[1])? + 1.0)?.relu()?)),
        ("two kernels", vec![vec![64, 64], vec![64, 64]], |t| Ok(t[0].matmul(&t[1])?.softmax(-1)?)),
        ("strided", vec![vec![40, 30]], |t| Ok(t[0].transpose()?.flip(&[0])?.exp()?)),
    ]
}

#[test]
fn run_into_allocates_nothing_and_run_only_its_outputs() -> breakeven::Result<()> {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let engine = Engine::with_config(Config { threads: Some(2), device: Device::Cpu, ..Config::default() })?;
    for (name, extents, record) in recipes() {
        let names = ["a", "b"];
        let inputs: Result<Vec<Tensor>, _> =
            extents.iter().zip(names).map(|(dims, name)| Tensor::input(name, DType::F32, dims)).collect();
        let inputs = inputs?;
        let output = record(&inputs)?;
        let program = engine.compile(&inputs.iter().collect::<Vec<_>>(), &[&output])?;
        let data: Vec<Vec<f32>> = extents.iter().map(|dims| vec![0.5; dims.iter().product()]).collect();
        let views: Vec<View<'_>> = data.iter().map(View::from).collect();
        let mut out = vec![0f32; output.shape().elems()];
        // The first runs fill the pools of working memory, on whichever threads take part.
        for _ in 0..300 {
            program.run_into(&views, &mut [out.as_mut_slice().into()])?;
        }
        let (count, ..) = counted(|| program.run_into(&views, &mut [out.as_mut_slice().into()]));
        assert_eq!(count, 0, "run_into of {name} allocates");

        drop(program.run(&views)?);
        let bytes = out.len() * 4;
        let (count, largest, result) = counted(|| program.run(&views));
        // The lists of outputs and the handle of each: small, and as many for every size.
        assert!(count <= 8 && largest < 1024, "run of {name} makes {count} allocations up to {largest} bytes");
        assert_eq!(result?[0].as_bytes().len(), bytes);
    }
    Ok(())
}

#[test]
fn a_chain_allocates_no_intermediate() -> breakeven::Result<()> {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let engine = Engine::new()?;
    let n = 1 << 22;
    let x = Tensor::from_vec(vec![0.25f32; n], [n])?;
    let (_, largest, result) = counted(|| engine.run(&[&chain(&x)?]));
    assert_eq!(result?[0].as_bytes().len(), 4 * n);
    // The output is mapped; what is allocated are tiles and the plan.
    assert!(largest < n / 16, "an allocation of {largest} bytes was made");
    Ok(())
}

#[test]
fn memory_of_results_is_used_again() -> breakeven::Result<()> {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let engine = Engine::new()?;
    let x = Tensor::from_vec(vec![1.0f32; 100_000], [100_000])?;
    for _ in 0..10 {
        engine.run(&[&x.exp()?])?;
    }
    let stats = engine.memory_stats();
    assert_eq!((stats.misses, stats.hits), (1, 9));
    engine.release_memory();
    assert_eq!(engine.memory_stats().free_bytes, 0);
    Ok(())
}

/// Peak resident memory in bytes, from the kernel.
#[cfg(target_os = "linux")]
fn peak_resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 1024
}

#[test]
#[cfg(target_os = "linux")]
fn ten_million_elements_grow_the_process_by_the_output_alone() -> breakeven::Result<()> {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let engine = Engine::new()?;
    let n = 10_000_000;
    let x = Tensor::from_vec(vec![0.25f32; n], [n])?;
    engine.run(&[&chain(&x.slice(&[breakeven::s(..1000)])?)?])?;
    // The peak is counted anew from here: the kernel resets it on request.
    std::fs::write("/proc/self/clear_refs", "5").expect("a process may reset its own peak");
    let before = peak_resident();
    let result = engine.run(&[&chain(&x)?])?;
    let growth = peak_resident() - before;
    assert_eq!(result[0].shape().elems(), n);
    assert!(growth <= 4 * n + (4 << 20), "resident memory grew by {growth} bytes for an output of {} bytes", 4 * n);
    Ok(())
}

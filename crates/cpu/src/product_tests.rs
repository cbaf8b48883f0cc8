//! Products come out the same to the last bit, whatever the number of threads that share them.

use super::*;
use crate::scratch::Scratches;
use crate::team::Team;
use crate::threads::Pool;
use breakeven_ir::Tensor;
use breakeven_ir::backend::Stop;
use breakeven_ir::plan::Kernel;
use std::sync::atomic::AtomicI64;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn within(&mut self, range: std::ops::RangeInclusive<usize>) -> usize {
        range.start() + self.next() as usize % (range.end() - range.start() + 1)
    }

    /// Between -1 and 1 with many digits, so that another order of additions shows.
    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next() as f32 / (1u64 << 30) as f32 - 1.0).collect()
    }
}

const FORMS: usize = 8;

/// A product of these extents: plain, with transposed or flipped operands, with a fused end or operand, or of several.
fn product(form: usize, m: usize, n: usize, k: usize) -> Result<Plan, breakeven_ir::Error> {
    let input = |name: &str, shape: &[usize]| Tensor::input(name, DType::F32, shape);
    let (a, b) = (input("a", &[m, k])?, input("b", &[k, n])?);
    let result = match form {
        0 => a.matmul(&b)?,
        1 => a.matmul(&input("bt", &[n, k])?.transpose()?)?,
        2 => input("at", &[k, m])?.transpose()?.matmul(&b)?,
        3 => input("at", &[k, m])?.transpose()?.matmul(&input("bt", &[n, k])?.transpose()?)?,
        4 => (&a.matmul(&b)? + &input("bias", &[n])?)?.tanh()?,
        5 => (&a * 1.5)?.matmul(&b.exp()?)?,
        6 => a.flip(&[0])?.matmul(&b.flip(&[0])?)?,
        _ => input("as", &[2, m, k])?.matmul(&input("bs", &[2, k, n])?)?,
    };
    Plan::new(&[&result])
}

/// The bits of a product.
fn bits(product: &Product, plan: &Plan, inputs: &[Vec<f32>], team: Team<'_>) -> Vec<u32> {
    let count: usize = plan.output_buffers().map(|info| info.bytes() / 4).sum();
    let mut output = vec![f32::NAN; count];
    let address = |info: &BufferInfo| match info.place {
        MemoryPlace::Input(at) => inputs[at].as_ptr().cast_mut().cast::<u8>(),
        _ => output.as_mut_ptr().cast(),
    };
    let bases: Vec<*mut u8> = plan.buffers.iter().map(address).collect();
    let (scratches, wrong) = (Scratches::default(), AtomicI64::new(i64::MAX));
    // SAFETY: inputs and the one output have the sizes of the plan's buffers, and there are no others.
    unsafe { product.run(&Run { buffers: Buffers::new(&bases), scratches: &scratches, team, wrong: &wrong }) };
    output.into_iter().map(f32::to_bits).collect()
}

/// Panics if the number of threads, or a stop that nobody tells, changes a bit.
fn is_the_same(pools: &[Pool], form: usize, m: usize, n: usize, k: usize, numbers: &mut Numbers) -> Outcome {
    let plan = product(form, m, n, k)?;
    let inputs: Vec<Vec<f32>> = plan.input_infos().iter().map(|info| numbers.values(info.bytes() / 4)).collect();
    // A product of one row or column may be a reduction: those have tests of their own.
    let [Kernel::Contract(contract)] = &plan.kernels[..] else { return Ok(()) };
    for level in Level::all() {
        let product = Product::new(&plan, contract, level);
        let run = |pool, parallel, stop| bits(&product, &plan, &inputs, Team { pool, parallel, ns: 10_000_000, stop });
        let expected = run(&pools[0], false, None);
        let stop = Stop::new();
        for (pool, stop) in pools.iter().flat_map(|pool| [(pool, None), (pool, Some(&stop))]) {
            let got = run(pool, true, stop);
            let other = got.iter().zip(&expected).filter(|(got, expected)| got != expected).count();
            let (level, threads, stops) = (level.name(), pool.threads(), stop.is_some());
            let of = got.len();
            assert!(
                other == 0,
                "{other} of {of}: form {form}, {m} x {n} x {k}, {level}, {threads} threads, stop: {stops}"
            );
        }
    }
    Ok(())
}

fn pools() -> std::io::Result<Vec<Pool>> {
    (1..=3).map(Pool::new).collect()
}

/// At and around the sizes where one kernel gives way to another.
#[test]
fn threads_change_no_bit_of_a_product_at_the_borders() -> Outcome {
    let (pools, mut numbers) = (pools()?, Numbers(1));
    // Few rows, whose columns are split; few columns, whose rows are split; and neither.
    let sizes = [[1, 1100, 800], [2, 300, 601], [4, 128, 1025], [7, 520, 513], [16, 130, 700], [64, 129, 777]];
    let tall = [[300, 1, 901], [97, 2, 1300], [130, 40, 650], [130, 40, 512], [200, 64, 515], [96, 65, 600]];
    // Small ones, whose rows are split though nothing is packed; and wide ones, which are given to GEMM piece by piece.
    let small = [[33, 40, 50], [64, 64, 64], [47, 65, 80]];
    let wide = [[20, 1500, 230], [7, 1300, 601], [97, 711, 90], [200, 900, 40]];
    for [m, n, k] in sizes.into_iter().chain(tall).chain(small).chain(wide).chain([[150, 150, 533], [260, 96, 5]]) {
        for form in 0..FORMS {
            is_the_same(&pools, form, m, n, k, &mut numbers)?;
        }
    }
    Ok(())
}

#[test]
fn threads_change_no_bit_of_a_random_product() -> Outcome {
    let (pools, mut numbers) = (pools()?, Numbers(2));
    for _ in 0..60 {
        let (thin, long) = (numbers.within(1..=16), numbers.within(17..=1200));
        let k = numbers.within(0..=1_000_000 / (thin * long).max(700)) | 1;
        let (m, n) = if numbers.within(0..=1) == 0 { (thin, long) } else { (long, thin) };
        is_the_same(&pools, numbers.within(0..=FORMS - 1), m, n, k, &mut numbers)?;
    }
    Ok(())
}

/// On one thread a product below the size from which GEMM cuts to the caches is as fast as a smaller one: it was 1.7 times slower.
/// The fastest of some turns, of more if the machine is busy.
#[test]
fn products_below_the_blocked_size_keep_their_rate() -> Outcome {
    let pool = Pool::new(1)?;
    let mut numbers = Numbers(3);
    let mut of = |side: usize| -> Result<_, breakeven_ir::Error> {
        let plan = product(0, side, side, side)?;
        let inputs: Vec<Vec<f32>> = plan.input_infos().iter().map(|info| numbers.values(info.bytes() / 4)).collect();
        Ok((plan, inputs))
    };
    let sides = [of(480)?, of(960)?];
    let mut fastest = [f64::INFINITY; 2];
    let slower = |fastest: &[f64; 2]| fastest[1] / fastest[0] / 8.0;
    for turn in 0..60 {
        if turn >= 8 && slower(&fastest) < 1.4 {
            break;
        }
        for ((plan, inputs), fastest) in sides.iter().zip(&mut fastest) {
            let [Kernel::Contract(contract)] = &plan.kernels[..] else { return Err("it is no product".into()) };
            let product = Product::new(plan, contract, Level::detect());
            let team = Team { pool: &pool, parallel: false, ns: 10_000_000, stop: None };
            let start = std::time::Instant::now();
            bits(&product, plan, inputs, team);
            *fastest = fastest.min(start.elapsed().as_secs_f64());
        }
    }
    let slower = slower(&fastest);
    assert!(slower < 1.4, "a multiply-add of 960 x 960 takes {slower:.2} of one of 480 x 480");
    Ok(())
}

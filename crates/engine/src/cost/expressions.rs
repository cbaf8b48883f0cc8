//! Random expressions over random sizes: a seed enters, recorded tensors leave. Some seeds teach a device's costs what
//! mixtures take, others test what was learned.

use breakeven_ir::{DType, Error, Tensor};

type Result<T> = std::result::Result<T, Error>;

/// A random expression.
///
/// ```
/// let (a, b) = (breakeven::cost::expression(1, 1e4, false)?, breakeven::cost::expression(1, 1e4, true)?);
/// assert_eq!(a.text, b.text);
/// # Ok::<(), breakeven::RecordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    /// In words.
    pub text: String,
    /// Elements of its largest array.
    pub elements: usize,
    /// What is to be computed.
    pub output: Tensor,
}

/// Numbers from a seed: SplitMix64. With or without data: what a plan asks for can be told from shapes alone.
struct Random {
    state: u64,
    with_data: bool,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `below - 1`.
    fn below(&mut self, below: usize) -> usize {
        (self.next() % below.max(1) as u64) as usize
    }

    /// Between two numbers, evenly on a logarithmic axis.
    fn size(&mut self, from: f64, to: f64) -> usize {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (from.ln() + unit * (to / from).ln()).exp() as usize
    }

    fn data(&mut self, dims: &[usize]) -> Result<Tensor> {
        if self.with_data { super::probes::data(dims) } else { Tensor::input("x", DType::F32, dims) }
    }
}

/// The expression of a seed, of at most about `most` elements, with or without data.
///
/// ```
/// let expression = breakeven::cost::expression(7, 1e5, true)?;
/// assert!(expression.elements <= 100_000);
/// println!("{}", expression.text);
/// # Ok::<(), breakeven::RecordError>(())
/// ```
pub fn expression(seed: u64, most: f64, with_data: bool) -> Result<Expression> {
    let random = &mut Random { state: seed, with_data };
    match random.below(8) {
        0..3 => elementwise(random, most),
        3 | 4 => rows(random, most),
        5 => scan(random, most),
        _ => product(random, most),
    }
}

fn elementwise(random: &mut Random, most: f64) -> Result<Expression> {
    let n = random.size(300.0, most);
    let x = random.data(&[n])?;
    let (y, text) = chain(random, x)?;
    Ok(Expression { text: format!("{text} of {n}"), elements: n, output: y })
}

/// One to ten operations after one another.
fn chain(random: &mut Random, x: Tensor) -> Result<(Tensor, String)> {
    let (mut y, mut names) = (x.clone(), Vec::new());
    for _ in 0..1 + random.below(10) {
        let (name, next) = match random.below(12) {
            0 => ("add", (&y + &x)?),
            1 => ("mul", (&y * 0.7)?),
            2 => ("relu", y.relu()?),
            3 => ("exp", (y.exp()? * 0.2)?),
            4 => ("sigmoid", y.sigmoid()?),
            5 => ("tanh", y.tanh()?),
            6 => ("sqrt", y.abs()?.sqrt()?),
            7 => ("div", (&y / 3.0)?),
            8 => ("gelu", y.gelu()?),
            9 => ("log", (y.abs()? + 0.5)?.log()?),
            10 => ("sin", y.sin()?),
            _ => ("sub", (&y - &x)?),
        };
        y = next;
        names.push(name);
    }
    Ok((y, names.join(" ")))
}

fn rows(random: &mut Random, most: f64) -> Result<Expression> {
    let n = random.size(300.0, most);
    let row = random.size(4.0, (n as f64).min(4096.0)).max(1);
    let x = random.data(&[n.div_ceil(row), row])?;
    let (x, before) = if random.below(2) == 0 { chain(random, x)? } else { (x, String::new()) };
    let (name, y) = match random.below(5) {
        0 => ("sum", x.sum(&[1], false)?),
        1 => ("max", x.max(&[1], false)?),
        2 => ("softmax", x.softmax(1)?),
        3 => ("layer_norm", x.layer_norm(1, 1e-5)?),
        _ => ("sum of all", x.sum(&[], false)?),
    };
    let text = format!("{before} {name} of {n} by rows of {row}").trim_start().to_owned();
    Ok(Expression { text, elements: n, output: y })
}

fn scan(random: &mut Random, most: f64) -> Result<Expression> {
    let n = random.size(300.0, most / 4.0);
    let row = random.size(16.0, (n as f64).min(4096.0)).max(1);
    let x = random.data(&[n.div_ceil(row), row])?;
    let text = format!("cumsum of {n} by rows of {row}");
    Ok(Expression { text, elements: n, output: x.cumsum(1)? })
}

fn product(random: &mut Random, most: f64) -> Result<Expression> {
    let side = most.sqrt() / 2.0;
    let [m, n, k] = [(); 3].map(|()| random.size(8.0, side));
    let y = random.data(&[m, k])?.matmul(&random.data(&[k, n])?)?;
    let (name, y) = match random.below(3) {
        0 => ("", y),
        1 => (" relu", (y + 0.1)?.relu()?),
        _ => (" softmax", y.softmax(1)?),
    };
    Ok(Expression { text: format!("matmul {m} x {n} x {k}{name}"), elements: m * n, output: y })
}

//! THE table of groups: what the suite measures, each group's cases, how large they are. A name enters, the groups and
//! cases that it means leave.

use breakeven::{Engine, Result};

use super::calls::{self, Subject};
use super::job::Fault;
use super::{batch, cold, queue};
use crate::scan::ops::{self, Load};

/// Cases that are measured by one process.
pub struct Group {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// It may take so many times as long as others.
    pub weight: u32,
    /// What it runs.
    pub cases: &'static [Case],
}

/// Something that is run at some sizes.
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// What its sizes count.
    pub unit: &'static str,
    /// Its sizes for those in a hurry.
    pub quick: &'static [u64],
    /// Its sizes.
    pub full: &'static [u64],
    /// Its time goes with this power of the size.
    pub power: i32,
    /// The case of the group that it is to be read beside.
    pub beside: Option<&'static str>,
    /// How it is run.
    pub how: How,
}

/// Makes a case of a size.
pub type Make = fn(&Engine, u64) -> Result<Box<dyn Subject>, Fault>;

/// How a case is run.
#[derive(Clone, Copy)]
pub enum How {
    /// On one device after the other.
    Each(Make),
    /// Bytes to adapters and back, together with the group's other cases.
    Transfer,
}

impl Case {
    /// Its sizes.
    pub fn sizes(&self, quick: bool) -> &'static [u64] {
        if quick { self.quick } else { self.full }
    }
}

/// One call of a compiled program.
const fn call(name: &'static str, load: Make) -> Case {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    Case {
        name,
        unit: "elements",
        quick: &[64 * K, M],
        full: &[K, 64 * K, M, 16 * M],
        power: 1,
        beside: None,
        how: How::Each(load),
    }
}

const fn transfer(name: &'static str) -> Case {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    Case {
        name,
        unit: "bytes",
        quick: &[4 * K, 256 * K, 4 * M],
        full: &[4 * K, 64 * K, M, 16 * M, 64 * M],
        power: 1,
        beside: None,
        how: How::Transfer,
    }
}

const fn tasks(name: &'static str, beside: Option<&'static str>, how: How) -> Case {
    let sizes = &[10, 20, 100, 1_000, 10_000];
    Case { name, unit: "tasks of 256", quick: sizes, full: sizes, power: 1, beside, how }
}

/// Something that has no size.
const fn once(name: &'static str, make: Make) -> Case {
    Case { name, unit: "", quick: &[0], full: &[0], power: 0, beside: None, how: How::Each(make) }
}

/// A call that others of its group are read beside.
const DIRECT: &str = "a call without the queue";

macro_rules! load {
    ($make:expr) => {
        |engine, size| Ok(Box::new($make(engine, size)?))
    };
}

macro_rules! unary {
    ($method:ident) => {
        load!(|engine, size| -> Result<Load> { ops::batch(engine, &ops::data(&[size])?.$method()?) })
    };
}

macro_rules! binary {
    ($method:ident) => {
        load!(|engine, size| -> Result<Load> {
            let (x, y) = (ops::data(&[size])?, ops::data(&[size])?);
            ops::batch(engine, &x.$method(&y)?)
        })
    };
}

/// Rows of this length.
const ROW: u64 = 512;

macro_rules! of_rows {
    (|$x:ident| $of:expr) => {
        load!(|engine, size: u64| -> Result<Load> {
            let $x = ops::data(&[size / ROW, ROW])?;
            ops::batch(engine, &$of?)
        })
    };
}

/// Every group, heaviest first.
pub const GROUPS: [Group; 10] = [
    Group {
        name: "matmul",
        about: "products of square matrices",
        weight: 5,
        cases: &[Case {
            name: "matmul",
            unit: "n x n",
            quick: &[256, 512, 1024, 2048],
            full: &[256, 512, 1024, 2048],
            power: 3,
            beside: None,
            how: How::Each(load!(calls::matmul)),
        }],
    },
    Group {
        name: "fused",
        about: "chains of operations as one batch, beside the same as calls of their own",
        weight: 1,
        cases: &[
            Case { beside: Some("ten as calls"), ..call("ten fused", load!(ops::chain)) },
            call("ten as calls", load!(ops::calls)),
            Case { beside: Some("three as calls"), ..call("three fused", load!(calls::three_fused)) },
            call("three as calls", |engine, size| Ok(Box::new(calls::ThreeCalls::new(engine, size)?))),
        ],
    },
    Group {
        name: "rows",
        about: "operations over rows of 512",
        weight: 1,
        cases: &[
            call("softmax", of_rows!(|x| x.softmax(-1))),
            call("log_softmax", of_rows!(|x| x.log_softmax(-1))),
            call("layer_norm", of_rows!(|x| x.layer_norm(-1, 1e-5))),
            call("cumsum", of_rows!(|x| x.cumsum(1))),
        ],
    },
    Group {
        name: "reduce",
        about: "sums and extremes, of all elements, of rows of 512 and of columns",
        weight: 1,
        cases: &[
            call(
                "sum",
                load!(|engine, size| -> Result<Load> { ops::batch(engine, &ops::data(&[size])?.sum(&[], false)?) }),
            ),
            call(
                "max",
                load!(|engine, size| -> Result<Load> { ops::batch(engine, &ops::data(&[size])?.max(&[], false)?) }),
            ),
            call("sum of rows", of_rows!(|x| x.sum(&[1], false))),
            call("sum of columns", of_rows!(|x| x.sum(&[0], false))),
            call("var of rows", of_rows!(|x| x.var(&[1], 0, false))),
        ],
    },
    Group {
        name: "binary",
        about: "elementwise operations of two arrays",
        weight: 1,
        cases: &[
            call("add", binary!(add)),
            call("mul", binary!(mul)),
            call("div", binary!(div)),
            call("pow", binary!(pow)),
            call("maximum", binary!(maximum)),
        ],
    },
    Group {
        name: "unary",
        about: "elementwise operations of one array",
        weight: 1,
        cases: &[
            call("relu", unary!(relu)),
            call("exp", unary!(exp)),
            call("sqrt", unary!(sqrt)),
            call("tanh", unary!(tanh)),
            call("gelu", unary!(gelu)),
            call("sin", unary!(sin)),
        ],
    },
    Group {
        name: "transfer",
        about: "bytes to each adapter, back, and there and back, beside copying them in the host's memory",
        weight: 1,
        cases: &[transfer("memcpy"), transfer("up"), transfer("down"), transfer("both")],
    },
    Group {
        name: "batch",
        about: "relus of 256 elements: a call for each, run_many, and one call with the elements of all",
        weight: 1,
        cases: &[
            Case {
                quick: &[20],
                full: &[20, 100],
                ..tasks(
                    "one by one",
                    Some("one call"),
                    How::Each(|engine, size| Ok(Box::new(batch::OneByOne::new(engine, size)?))),
                )
            },
            tasks("run_many", Some("one call"), How::Each(load!(ops::many::<{ batch::TASK }>))),
            tasks("one call", None, How::Each(load!(batch::one_call))),
        ],
    },
    Group {
        name: "queue",
        about: "round trips through the queue: a relu of 256 elements as a job, many at once, and an empty command",
        weight: 1,
        cases: &[
            once(DIRECT, queue::direct),
            Case { beside: Some(DIRECT), ..once("round trip", queue::round_trip) },
            Case { beside: Some(DIRECT), ..once("synchronize", queue::synchronize) },
            Case { unit: "jobs", quick: &[64], full: &[64, 1024], power: 1, ..once("at once", queue::at_once) },
        ],
    },
    Group {
        name: "cold",
        about: "from nothing to the first result: a new engine, a new process, and one with nothing remembered",
        weight: 1,
        cases: &[
            once("new engine", cold::new_engine),
            once("new process", cold::new_process),
            once("new process, nothing remembered", cold::first_process),
        ],
    },
];

/// A group that is to be measured.
#[derive(Clone)]
pub struct Wanted {
    /// The group.
    pub group: &'static Group,
    /// Only cases whose names begin with one of these; all of them if there are none.
    pub cases: Vec<String>,
}

/// Is a case of this name among those that begin so?
pub fn is_wanted(name: &str, cases: &[String]) -> bool {
    cases.is_empty() || cases.iter().any(|case| name.starts_with(case.as_str()))
}

/// The group of this name.
pub fn find(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.name == name)
}

/// The groups that these names mean, in their order: `unary`, or `unary/exp` for some of its cases. All of them if there
/// are none.
pub fn select(names: &[String]) -> Result<Vec<Wanted>, String> {
    if names.is_empty() {
        return Ok(GROUPS.iter().map(|group| Wanted { group, cases: Vec::new() }).collect());
    }
    let mut all: Vec<Wanted> = Vec::new();
    for name in names {
        let (group, case) = name.split_once('/').map_or((name.as_str(), None), |(group, case)| (group, Some(case)));
        let Some(group) = find(group) else {
            let known = GROUPS.map(|group| group.name).join(", ");
            return Err(format!("there is no group `{group}`; there are {known}, and cases such as unary/exp"));
        };
        if let Some(case) = case
            && !group.cases.iter().any(|known| known.name.starts_with(case))
        {
            let known: Vec<&str> = group.cases.iter().map(|case| case.name).collect();
            return Err(format!("{} has no case `{case}`; there are {}", group.name, known.join(", ")));
        }
        let at = all.iter().position(|wanted| std::ptr::eq(wanted.group, group));
        match (at, case) {
            (None, case) => all.push(Wanted { group, cases: case.map(str::to_owned).into_iter().collect() }),
            // All of it was asked for already, or is now.
            (Some(at), None) => all[at].cases.clear(),
            (Some(at), Some(_)) if all[at].cases.is_empty() => {}
            (Some(at), Some(case)) => all[at].cases.push(case.to_owned()),
        }
    }
    Ok(all)
}

/// What `--list` says.
pub fn list() -> String {
    let mut text = String::new();
    for group in &GROUPS {
        let cases: Vec<&str> = group.cases.iter().map(|case| case.name).collect();
        text += &format!("{:<10}{}\n{:<10}{}\n", group.name, group.about, "", cases.join(", "));
    }
    text
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;

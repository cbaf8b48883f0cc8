//! `breakeven ops`: the two function tables enter, a list by class leaves, as text or as one JSON document.

use std::io::{self, Write};

use breakeven::{DType, Op};
use serde::Serialize;

use crate::args::OpsArgs;
use crate::failure::Failure;
use crate::functions::{self, Callable, Class, Types};
use crate::record;

/// Runs the subcommand.
pub fn run(args: &OpsArgs) -> Result<(), Failure> {
    let rows: Vec<Row> = match &args.name {
        None => Class::ALL
            .into_iter()
            .flat_map(|class| Callable::all().filter(move |c| c.class() == class))
            .map(row)
            .collect(),
        Some(name) => vec![row(functions::find(name).ok_or_else(|| unknown(name))?)],
    };
    let mut stdout = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut stdout, &Document { version: 1, ops: rows }).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(list(&rows, args.name.is_none()).as_bytes())?;
    }
    Ok(stdout.flush()?)
}

#[derive(Serialize)]
struct Document {
    /// It goes up when a field changes its meaning: see docs/formats.md.
    version: u32,
    ops: Vec<Row>,
}

/// One function.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    class: &'static str,
    signature: String,
    /// How it is written with an operator, where it has one.
    operator: Option<String>,
    /// numpy's names for it.
    aliases: Vec<&'static str>,
    dtypes: Vec<Signature>,
    /// The largest error in units in the last place; `None` where it depends on how many elements are combined.
    ulp: Option<f32>,
    doc: &'static str,
    #[serde(skip)]
    title: &'static str,
    /// The dtypes in words.
    #[serde(skip)]
    types: String,
}

/// What comes out for one dtype of the arguments.
#[derive(Serialize)]
struct Signature {
    args: Vec<&'static str>,
    result: &'static str,
}

fn row(callable: Callable) -> Row {
    let (dtypes, ulp) = match callable {
        Callable::Op(op) => (op_signatures(op), Some(op.row().ulp)),
        Callable::Function(function) => (signatures(function.types), None),
    };
    let operator = match callable {
        Callable::Op(op) => record::symbol(op).map(|(symbol, prefix)| match prefix {
            true => format!("{symbol}x"),
            false => format!("x {symbol} y"),
        }),
        Callable::Function(function) => (function.name == "matmul").then(|| "x @ y".to_owned()),
    };
    Row {
        name: callable.name(),
        class: callable.class().name(),
        // Python keeps these three words for itself, and so does the language: only the operator can be written.
        signature: match (&operator, callable.name()) {
            (Some(operator), "and" | "or" | "not") => operator.clone(),
            _ => callable.signature(),
        },
        operator,
        aliases: functions::aliases_of(callable.name()).collect(),
        types: types(callable, &dtypes),
        dtypes,
        ulp,
        doc: callable.doc(),
        title: callable.class().title(),
    }
}

fn op_signatures(op: Op) -> Vec<Signature> {
    let signature = |s: &breakeven::Signature| Signature {
        args: s.args.iter().map(|dtype| dtype.name()).collect(),
        result: s.result.name(),
    };
    op.row().signatures.iter().map(signature).collect()
}

fn signatures(types: Types) -> Vec<Signature> {
    let result = |dtype: DType| match types {
        Types::Same | Types::Made => Some(dtype),
        Types::Counts if dtype == DType::Bool => Some(DType::I32),
        Types::Counts => Some(dtype),
        Types::Float => (dtype == DType::F32).then_some(DType::F32),
        Types::ToI32 => Some(DType::I32),
        Types::ToBool => Some(DType::Bool),
    };
    let signature = |dtype: DType| Some(Signature { args: vec![dtype.name()], result: result(dtype)?.name() });
    DType::ALL.into_iter().rev().filter_map(signature).collect()
}

/// The dtypes in a few words: those of the last argument, and the result's where it differs.
fn types(callable: Callable, signatures: &[Signature]) -> String {
    if let Callable::Function(function) = callable
        && function.types == Types::Made
    {
        return "made as told".to_owned();
    }
    let taken: Vec<&str> = signatures.iter().filter_map(|s| s.args.last().copied()).collect();
    let taken = if taken.len() == DType::ALL.len() { "all".to_owned() } else { taken.join(" ") };
    match signatures.first() {
        Some(first) if signatures.iter().all(|s| s.result == first.result) && signatures.len() > 1 => {
            format!("{taken} -> {}", first.result)
        }
        _ => taken,
    }
}

/// Aligned columns, grouped by class.
fn list(rows: &[Row], grouped: bool) -> String {
    let width = |cell: fn(&Row) -> usize| rows.iter().map(cell).max().unwrap_or(0);
    let signature = |row: &Row| match &row.operator {
        Some(operator) if *operator != row.signature => format!("{}  {operator}", row.signature),
        _ => row.signature.clone(),
    };
    let signatures: Vec<String> = rows.iter().map(signature).collect();
    // A few long signatures push their line, not all others.
    const WIDEST: usize = 44;
    let signature_width = signatures.iter().map(String::len).filter(|len| *len <= WIDEST).max().unwrap_or(0);
    let (name_width, types_width) = (width(|row| row.name.len()), width(|row| row.types.len()));
    let mut text = String::new();
    let mut class = "";
    for (row, signature) in rows.iter().zip(&signatures) {
        if grouped && row.class != class {
            class = row.class;
            text += &format!("{}{}\n", if text.is_empty() { "" } else { "\n" }, row.title);
        }
        let ulp = row.ulp.map_or("-".to_owned(), |ulp| format!("{ulp}"));
        let indent = if grouped { "  " } else { "" };
        text += &format!(
            "{indent}{:name_width$}  {signature:signature_width$}  {:types_width$}  {ulp:>4}  {}\n",
            row.name, row.types, row.doc
        );
    }
    if grouped {
        text += "\ncolumns: name, how to call it, dtypes (others are cast where that loses nothing), largest error in \
                 units in the last place, what it computes\n\
                 constants: pi, e, inf, nan; dtypes: f32, i32, u32, bool\n";
    } else if let [row] = rows
        && !row.aliases.is_empty()
    {
        text += &format!("also known as {}\n", row.aliases.join(", "));
    }
    text
}

fn unknown(name: &str) -> Failure {
    match functions::nearest(name, Callable::all().map(Callable::name)) {
        Some(near) => Failure::mistake(format_args!("there is no function `{name}`; did you mean `{near}`?")),
        None => Failure::mistake(format_args!("there is no function `{name}`; `breakeven ops` lists them")),
    }
}

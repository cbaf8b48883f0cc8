//! Where results go: `-o` arguments enter, the values to compute leave; and once they are computed, files.

use std::{collections::BTreeMap, path::Path};

use breakeven::{Array, DType, Tensor};
use bytes::Bytes;

use crate::arrays::{self, HostArray, Kind};
use crate::failure::Failure;
use crate::inputs::is_name;
use crate::record::{Mistake, Recorded, Value};

/// The name of a result that the expression does not assign to one.
const RESULT: &str = "out";

/// One value to compute.
#[derive(Debug)]
pub struct Output {
    /// Its name in the expression, or `out`.
    pub name: String,
    /// What to compute.
    pub tensor: Tensor,
    /// The file it goes to.
    pub path: Option<String>,
}

/// The outputs that `-o` asks for; without any, the last statement's value with no file.
///
/// `FILE.npy` takes the last statement's value, `NAME=FILE` a name's. `FILE.npz` takes every name and the last value;
/// several names may go to one archive.
pub fn choose(recorded: &Recorded, given: &[String], source: &str, color: bool) -> Result<Vec<Output>, Failure> {
    let last_name = recorded.last_name.as_deref().unwrap_or(RESULT);
    let last = |path: Option<&str>| {
        let mistake = |error| Failure::Mistake(Mistake::new(recorded.last_span, error).render(source, color));
        let tensor = recorded.last.tensor().map_err(mistake)?;
        Ok::<Output, Failure>(Output { name: last_name.to_owned(), tensor, path: path.map(str::to_owned) })
    };
    let mut outputs = Vec::new();
    for text in given {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) if is_name(name) => (Some(name), path),
            _ => (None, &**text),
        };
        check_extension(path)?;
        match name {
            None if is_archive(path) => {
                for (name, value) in &recorded.named {
                    // Shapes and the like may be named, too: they are no arrays, and not asked for one by one.
                    if recorded.last_name.as_ref() != Some(name) && matches!(value, Value::Tensor(_)) {
                        outputs.push(output(name, value, path)?);
                    }
                }
                outputs.push(last(Some(path))?);
            }
            None => outputs.push(last(Some(path))?),
            Some(name) => match recorded.named.iter().find(|(known, _)| known == name) {
                Some((_, value)) => outputs.push(output(name, value, path)?),
                None if name == RESULT => outputs.push(last(Some(path))?),
                None => return Err(unknown(name, recorded)),
            },
        }
    }
    if outputs.is_empty() {
        outputs.push(last(None)?);
    }
    check_paths(&outputs)?;
    Ok(outputs)
}

fn output(name: &str, value: &Value, path: &str) -> Result<Output, Failure> {
    let tensor = value.tensor().map_err(|error| Failure::mistake(format_args!("output `{name}`: {error}")))?;
    Ok(Output { name: name.to_owned(), tensor, path: Some(path.to_owned()) })
}

fn unknown(name: &str, recorded: &Recorded) -> Failure {
    let names: Vec<&str> = recorded.named.iter().map(|(name, _)| &**name).collect();
    match names.len() {
        0 => Failure::mistake(format_args!(
            "output `{name}`: the expression assigns no names; write `{name} = ...`, or -o FILE for its result"
        )),
        _ => Failure::mistake(format_args!(
            "output `{name}`: the expression does not assign it; it assigns {}",
            names.join(", ")
        )),
    }
}

fn extension(path: &str) -> String {
    Path::new(path).extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn is_archive(path: &str) -> bool {
    extension(path) == "npz"
}

/// What has no extension may be a pipe or a device, and takes a `.npy`.
fn check_extension(path: &str) -> Result<(), Failure> {
    match &*extension(path) {
        _ if path.is_empty() => Err(Failure::mistake("an output has no file; write -o file.npy or -o name=file.npy")),
        "npy" | "npz" | "" => Ok(()),
        other => Err(Failure::mistake(format_args!("cannot write {path}: `.{other}` is unknown; use .npy or .npz"))),
    }
}

fn check_paths(outputs: &[Output]) -> Result<(), Failure> {
    let mut seen: BTreeMap<(&str, &str), ()> = BTreeMap::new();
    for output in outputs {
        let Some(path) = &output.path else { continue };
        // Within an archive it is the name that must be its own.
        let name = if is_archive(path) { &*output.name } else { "" };
        if seen.insert((path, name), ()).is_some() {
            let what = if name.is_empty() { path.clone() } else { format!("`{name}` in {path}") };
            return Err(Failure::mistake(format_args!("two outputs go to {what}; give each a place of its own")));
        }
    }
    Ok(())
}

/// Writes every output that has a file. `arrays` are the computed values in the order of `outputs`.
pub fn write(outputs: &[Output], arrays: &[Array]) -> Result<(), Failure> {
    let hosts: Vec<HostArray> = arrays.iter().map(host).collect();
    let mut written: Vec<&str> = Vec::new();
    for (output, array) in outputs.iter().zip(&hosts) {
        let Some(path) = output.path.as_deref() else { continue };
        if !is_archive(path) {
            arrays::write_npy(Path::new(path), array).map_err(Failure::writing)?;
        } else if !written.contains(&path) {
            let members: Vec<(&str, &HostArray)> = outputs
                .iter()
                .zip(&hosts)
                .filter(|(other, _)| other.path.as_deref() == Some(path))
                .map(|(other, array)| (&*other.name, array))
                .collect();
            arrays::write_npz(Path::new(path), &members).map_err(Failure::writing)?;
            written.push(path);
        }
    }
    Ok(())
}

/// Shares the array's memory: what is written is not copied first.
fn host(array: &Array) -> HostArray {
    struct Owner(Array);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    let dtype = match array.dtype() {
        DType::F32 => Kind::F32,
        DType::I32 => Kind::I32,
        DType::U32 => Kind::U32,
        DType::Bool => Kind::Bool,
    };
    let data = Bytes::from_owner(Owner(array.clone()));
    HostArray { dtype, shape: array.shape().to_vec(), data, notice: None }
}

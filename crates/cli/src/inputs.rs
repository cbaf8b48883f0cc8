//! The inputs of an expression: `name=file.npy` and its other forms enter, values by name leave, with what the user
//! should know about them. Only what the expression reads is opened.

use std::{collections::BTreeSet, path::Path};

use breakeven::{DType, Tensor};

use crate::arrays::{self, HostArray, Kind};
use crate::failure::Failure;
use crate::record::{Inputs, Number, Value};

/// Reads the inputs that `used` names out of what was given. Notices for stderr leave beside them: what was converted,
/// and what was given for nothing.
pub fn read(given: &[String], used: &BTreeSet<&str>) -> Result<(Inputs, Vec<String>), Failure> {
    let mut reader = Reader { inputs: Inputs::default(), notices: Vec::new() };
    let mut seen = BTreeSet::new();
    for text in given {
        match split(text)? {
            (Some(name), _) if !seen.insert(name.to_owned()) => return Err(twice(name)),
            (Some(name), _) if !used.contains(name) => {
                reader.notices.push(format!("input `{name}` is given, but the expression does not use it"));
                reader.inputs.unread.push(name.to_owned());
            }
            (Some(name), place) => {
                let value = match number(place) {
                    Some(number) => Value::Number(number),
                    None => {
                        let (path, member) = arrays::split_member(place);
                        let array = arrays::load(Path::new(path), member).map_err(Failure::reading)?;
                        reader.array(name, array)?
                    }
                };
                reader.inputs.values.insert(name.to_owned(), value);
            }
            (None, archive) => reader.archive(archive, used, &mut seen)?,
        }
    }
    Ok((reader.inputs, reader.notices))
}

struct Reader {
    inputs: Inputs,
    notices: Vec<String>,
}

impl Reader {
    /// All arrays of an archive that the expression uses, by their names in it.
    fn archive(&mut self, path: &str, used: &BTreeSet<&str>, seen: &mut BTreeSet<String>) -> Result<(), Failure> {
        let members = arrays::read_npz_names(Path::new(path)).map_err(Failure::reading)?;
        let wanted: Vec<&String> = members.iter().filter(|member| used.contains(&***member)).collect();
        if wanted.is_empty() {
            self.notices.push(format!("{path} is given, but the expression uses none of its arrays"));
        }
        for member in wanted {
            if !seen.insert(member.clone()) {
                return Err(twice(member));
            }
            let array = arrays::read_npz_member(Path::new(path), Some(member)).map_err(Failure::reading)?;
            let value = self.array(member, array)?;
            self.inputs.values.insert(member.clone(), value);
        }
        self.inputs.unread.extend(members.iter().filter(|member| !used.contains(&***member)).cloned());
        Ok(())
    }

    fn array(&mut self, name: &str, array: HostArray) -> Result<Value, Failure> {
        if let Some(notice) = array.notice {
            self.notices.push(format!("input `{name}`: {notice}"));
        }
        let dtype = match array.dtype {
            Kind::F32 => DType::F32,
            Kind::I32 => DType::I32,
            Kind::U32 => DType::U32,
            Kind::Bool => DType::Bool,
        };
        let tensor = Tensor::from_bytes(array.data, dtype, &array.shape);
        tensor.map(Value::Tensor).map_err(|error| Failure::mistake(format_args!("input `{name}`: {error}")))
    }
}

/// Name and place of one argument; an archive alone has no name.
fn split(text: &str) -> Result<(Option<&str>, &str), Failure> {
    match text.split_once('=') {
        Some((name, place)) if is_name(name) && !place.is_empty() => Ok((Some(name), place)),
        Some((name, "")) => {
            Err(Failure::mistake(format_args!("input `{name}` has no value; write {name}=file.npy or {name}=0.5")))
        }
        None if text.to_ascii_lowercase().ends_with(".npz") => Ok((None, text)),
        None => {
            let message =
                format!("the input `{text}` has no name; write name=file.npy, name=archive.npz:member or name=0.5");
            Err(Failure::mistake(message))
        }
        Some((name, _)) => {
            let message = format!("`{name}` is no name for an input; expected letters, digits and _ before `=`");
            Err(Failure::mistake(message))
        }
    }
}

/// Whether an expression can read a variable of this name.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && chars.all(|c| c == '_' || c.is_alphanumeric())
}

/// A number as it may stand after `=`; a file of such a name is written `./3`.
fn number(text: &str) -> Option<Number> {
    match text {
        "True" => return Some(Number::Bool(true)),
        "False" => return Some(Number::Bool(false)),
        _ => {}
    }
    if let Ok(int) = text.parse::<i64>() {
        return Some(Number::Int(i128::from(int)));
    }
    // Rust reads `infinity` as a float, too; a file of that name is likelier.
    let is_number = text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_special = matches!(text, "inf" | "-inf" | "nan");
    if is_number || is_special { text.parse().ok().map(Number::Float) } else { None }
}

fn twice(name: &str) -> Failure {
    Failure::mistake(format_args!("input `{name}` is given twice; give each name once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_files_are_told_apart() {
        assert_eq!(number("3"), Some(Number::Int(3)));
        assert_eq!(number("-3.5e-2"), Some(Number::Float(-0.035)));
        assert_eq!(number(".5"), Some(Number::Float(0.5)));
        assert_eq!(number("True"), Some(Number::Bool(true)));
        assert_eq!(number("inf"), Some(Number::Float(f64::INFINITY)));
        for file in ["x.npy", "./3", "infinity", "3.npy", "", ".", "-", "1_000.npy"] {
            assert_eq!(number(file), None, "{file}");
        }
    }

    #[test]
    fn arguments_split_at_the_first_equals_sign() {
        assert!(matches!(split("x=a=b.npy"), Ok((Some("x"), "a=b.npy"))));
        assert!(matches!(split("model.NPZ"), Ok((None, "model.NPZ"))));
        for wrong in ["x.npy", "=x.npy", "1x=a.npy", "x=", "a-b=c.npy"] {
            assert!(matches!(split(wrong), Err(Failure::Mistake(_))), "{wrong}");
        }
    }
}

//! How JSON lies on lines: objects one field a line, lists of numbers on one line. A baseline that is committed stays short
//! then, and its differences can be read.

use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// Two blanks for each level, as `serde_json` writes them, but for lists of numbers.
#[derive(Default)]
pub(super) struct Lines {
    /// For each list and object that is open, whether it began a new line for what it holds.
    open: Vec<bool>,
    /// A value of a list comes next; is it the first one?
    pending: Option<bool>,
}

impl Lines {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.open.len()).try_for_each(|_| out.write_all(b"  "))
    }

    /// Something that has lines of its own comes: it begins on a new one if it is in a list.
    fn block<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.pending.take().is_some() {
            if let Some(open) = self.open.last_mut() {
                *open = true;
            }
            self.line(out)?;
        }
        Ok(())
    }

    /// A number comes: it stays on the line.
    fn inline<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        match self.pending.take() {
            Some(false) => out.write_all(b" "),
            _ => Ok(()),
        }
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, end: &[u8]) -> io::Result<()> {
        if self.open.pop().unwrap_or(false) {
            self.line(out)?;
        }
        out.write_all(end)
    }
}

/// Everything else is as `serde_json` writes it.
impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.block(out)?;
        self.open.push(false);
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.pending = Some(first);
        if first { Ok(()) } else { out.write_all(b",") }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.pending = None;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.block(out)?;
        self.open.push(false);
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if let Some(open) = self.open.last_mut() {
            *open = true;
        }
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.block(out)?;
        out.write_all(b"\"")
    }

    fn write_u64<W: ?Sized + Write>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        self.inline(out)?;
        CompactFormatter.write_u64(out, value)
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;

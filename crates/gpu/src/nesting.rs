//! How deep a text in WGSL nests: a text enters, why no compiler should see it leaves.
//!
//! Compilers walk through expressions and `else if`s by recursion, and wgpu's count only brackets and braces. A sum of a
//! few thousand terms overflows their stack, which ends the process: nobody can catch that. So it is counted before.

/// The highest expression and the longest chain of `else if`s. Measured with naga's GLSL writer in debug builds, which
/// needs the most: sums of 1,200 terms fit into the owner thread's stack, 2,000 do not; 1,000 `else if`s do.
const HIGHEST: usize = 500;

/// The longest text: constants that are declared one by the other, each before its own, take 20,000 in a quarter of the
/// stack.
const LONGEST: usize = 256 << 10;

/// Why a text is refused.
pub(crate) fn refuse(source: &str) -> Option<String> {
    if source.len() > LONGEST {
        return Some(format!("the kernel's text has {} bytes, at most {LONGEST} are compiled", source.len()));
    }
    let (height, elses) = measure(source);
    let too_high = |what: &str| {
        format!("{what} of the kernel nests more than {HIGHEST} deep, which compilers do not survive: divide it")
    };
    if height > HIGHEST {
        return Some(too_high("an expression"));
    }
    (elses > HIGHEST).then(|| too_high("the else branches"))
}

/// What is between two brackets.
#[derive(Default)]
struct Level {
    /// Did it begin behind an operand: is it a call or an index?
    is_postfix: bool,
    /// The height of what is left of the last operator: all of them are taken for one chain, which is as high as they can
    /// be.
    left: Option<usize>,
    /// Operators before the operand.
    prefix: usize,
    /// The height of the operand, once there is one.
    operand: Option<usize>,
    /// Templates that are open, or comparisons that look the same: their commas end no expression.
    angles: usize,
    /// The highest expression before the last comma.
    highest: usize,
}

impl Level {
    fn height(&self) -> usize {
        self.highest.max(self.expression())
    }

    /// The height of the expression so far.
    fn expression(&self) -> usize {
        let operand = self.prefix + self.operand.unwrap_or(0);
        self.left.map_or(operand, |left| left.max(operand) + 1)
    }

    fn operator(&mut self) {
        if self.operand.is_none() {
            self.prefix += 1;
            return;
        }
        self.left = Some(self.expression());
        (self.prefix, self.operand) = (0, None);
    }

    fn comma(&mut self) {
        if self.angles > 0 {
            self.operator();
        } else {
            *self = Level { highest: self.height(), is_postfix: self.is_postfix, ..Level::default() };
        }
    }
}

/// The height of the highest expression, or more, and how many `else`s there are.
fn measure(source: &str) -> (usize, usize) {
    let bytes = source.as_bytes();
    let (mut highest, mut elses) = (0, 0);
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        at += 1;
        match byte {
            b'/' if rest.starts_with(b"//") => at += rest.iter().take_while(|byte| **byte != b'\n').count() - 1,
            b'/' if rest.starts_with(b"/*") => at += comment(rest) - 1,
            b'(' | b'[' => {
                let is_postfix = level.operand.is_some();
                outer.push(std::mem::replace(&mut level, Level { is_postfix, ..Level::default() }));
                highest = highest.max(outer.len());
            }
            b')' | b']' => {
                let (height, is_postfix) = (level.height(), level.is_postfix);
                level = outer.pop().unwrap_or_default();
                level.operand = Some(level.operand.unwrap_or(0).max(height) + usize::from(is_postfix));
            }
            b',' => level.comma(),
            b';' | b'{' | b'}' => {
                let open = outer.drain(..).chain([std::mem::take(&mut level)]);
                highest = open.map(|level| level.height()).fold(highest, usize::max);
            }
            b'.' => level.operand = level.operand.map(|height| height + 1),
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'!' | b'=' | b'<' | b'>' => {
                match byte {
                    b'<' => level.angles += 1,
                    b'>' => level.angles = level.angles.saturating_sub(1),
                    _ => {}
                }
                level.operator();
            }
            _ if is_word(byte) => {
                let word = rest.iter().take_while(|byte| is_word(**byte)).count();
                elses += usize::from(&rest[..word] == b"else");
                level.operand = level.operand.or(Some(0));
                at += word - 1;
            }
            _ => {}
        }
    }
    let open = outer.into_iter().chain([level]);
    (open.map(|level| level.height()).fold(highest, usize::max), elses)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The length of the comment at the beginning; they nest.
fn comment(bytes: &[u8]) -> usize {
    let (mut at, mut open) = (0, 0usize);
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => {
                open += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                open -= 1;
                at += 2;
                if open == 0 {
                    break;
                }
            }
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
#[path = "nesting_tests.rs"]
mod tests;

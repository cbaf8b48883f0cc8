//! Source text enters, one token at a time leaves. Tokens are made on demand: a long source never becomes a long list.
//!
//! What Python has and this language has not (`and`, strings, `<<`, ...) is refused here, by name, with what to write
//! instead: further on it would only be "unexpected".

use super::error::Parsed;
use super::{ParseError, Span};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind<'s> {
    Int(u64),
    Float(f64),
    Name(&'s str),
    /// Operators and brackets.
    Symbol(&'static str),
    /// `;`, or a new line outside brackets.
    Separator,
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'s> {
    pub kind: Kind<'s>,
    pub span: Span,
}

/// Longest first, so that the first match is the right one.
const SYMBOLS: [&str; 31] = [
    "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "@", "<", ">", "&", "|", "^", "~",
    "=", "(", ")", "[", "]", ",", ":", ".", ";", "!",
];

/// What people write out of habit or paste from a document, and what to write here.
const REFUSED_SYMBOLS: [(&str, &str); 17] = [
    ("&&", "use `&`, and put comparisons in parentheses: `(a < b) & (b < c)`"),
    ("||", "use `|`, and put comparisons in parentheses: `(a < b) | (b < c)`"),
    (":=", "assign in a statement of its own: `name = value; ...`"),
    ("->", "there are no annotations and no lambdas here"),
    ("\"", "there are no strings here: write the name of a dtype as it is, as in `cast(x, f32)`"),
    ("'", "there are no strings here: write the name of a dtype as it is, as in `cast(x, f32)`"),
    ("\\", "a new line inside brackets continues the expression"),
    ("{", "there are no dicts or sets here: use `(...)` or `[...]`"),
    ("}", "there are no dicts or sets here: use `(...)` or `[...]`"),
    ("\u{d7}", "write `*`"),
    ("\u{b7}", "write `*`, or `@` for a matrix product"),
    ("\u{f7}", "write `/`"),
    ("\u{2212}", "write `-`"),
    ("\u{2013}", "write `-`"),
    ("\u{2264}", "write `<=`"),
    ("\u{2265}", "write `>=`"),
    ("\u{2260}", "write `!=`"),
];

/// Python's words that are no names. They may not be assigned to either, so they are refused wherever they stand.
const REFUSED_WORDS: [(&str, &str); 20] = [
    ("and", "use `&`, and put comparisons in parentheses: `(a < b) & (b < c)`"),
    ("or", "use `|`, and put comparisons in parentheses: `(a < b) | (b < c)`"),
    ("not", "use `~`, which inverts every element"),
    ("if", "use `where(condition, a, b)`, which chooses element by element"),
    ("else", "use `where(condition, a, b)`, which chooses element by element"),
    ("elif", "use `where(condition, a, b)`, which chooses element by element"),
    ("lambda", "write the expression where the function would be called"),
    ("def", "write the expression where the function would be called"),
    ("return", "the value of the last statement is the output"),
    ("for", "array operations work on all elements at once"),
    ("while", "array operations work on all elements at once"),
    ("in", "compare with `==` and combine with `any`"),
    ("is", "use `==`, which compares element by element"),
    ("import", "all functions are there without an import"),
    ("from", "all functions are there without an import"),
    ("as", "all functions are there without an import"),
    ("with", "only expressions and assignments can be written here"),
    ("del", "only expressions and assignments can be written here"),
    ("pass", "only expressions and assignments can be written here"),
    ("assert", "only expressions and assignments can be written here"),
];

pub(super) struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// Open brackets, within which a new line is a blank.
    brackets: usize,
}

impl<'s> Lexer<'s> {
    pub fn new(source: &'s str) -> Lexer<'s> {
        Lexer { source, at: 0, brackets: 0 }
    }

    pub fn next(&mut self) -> Parsed<Token<'s>> {
        self.skip_blanks();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token { kind: Kind::End, span: self.span(0) });
        };
        if first == '\n' {
            return Ok(self.token(Kind::Separator, 1));
        }
        let number_after_point = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || number_after_point {
            return self.number();
        }
        if first == '_' || first.is_alphabetic() {
            return self.word();
        }
        if let Some((symbol, help)) = REFUSED_SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            return Err(self.refuse(symbol, help));
        }
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(&"!") => Err(self.refuse("!", "use `~`, which inverts every element, or `!=`")),
            Some(&";") => Ok(self.token(Kind::Separator, 1)),
            Some(symbol) => {
                match *symbol {
                    "(" | "[" => self.brackets += 1,
                    ")" | "]" => self.brackets = self.brackets.saturating_sub(1),
                    _ => {}
                }
                Ok(self.token(Kind::Symbol(symbol), symbol.len()))
            }
            None => {
                let message = format!("`{first}` (U+{:04X}) means nothing in an expression", u32::from(first));
                Err(ParseError::new(self.span(first.len_utf8()), message))
            }
        }
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let newline_counts = self.brackets == 0;
            let blank = |c: char| c.is_whitespace() && !(c == '\n' && newline_counts);
            let blanks = rest.len() - rest.trim_start_matches(blank).len();
            let comment = match rest[blanks..].starts_with('#') {
                true => rest[blanks..].find('\n').unwrap_or(rest.len() - blanks),
                false => 0,
            };
            self.at += blanks + comment;
            if blanks + comment == 0 {
                return;
            }
        }
    }

    /// The next `len` bytes.
    fn span(&self, len: usize) -> Span {
        // `parse` has refused sources that are longer than a u32.
        Span { start: self.at as u32, end: (self.at + len) as u32 }
    }

    fn token(&mut self, kind: Kind<'s>, len: usize) -> Token<'s> {
        let span = self.span(len);
        self.at += len;
        Token { kind, span }
    }

    fn refuse(&self, what: &str, help: &str) -> Box<ParseError> {
        ParseError::new(self.span(what.len()), format!("`{what}` is not part of the language")).help(help)
    }

    fn word(&mut self) -> Parsed<Token<'s>> {
        let text = take_while(self.rest(), |c| c == '_' || c.is_alphanumeric());
        match REFUSED_WORDS.iter().find(|(word, _)| *word == text) {
            Some((word, help)) => Err(self.refuse(word, help)),
            None if self.rest()[text.len()..].starts_with(['"', '\'']) => Err(self
                .refuse(&self.rest()[..=text.len()], "there are no strings here: write the name of a dtype as it is")),
            None => Ok(self.token(Kind::Name(text), text.len())),
        }
    }

    /// Python's numbers: `1`, `1_000`, `0xff`, `0b1`, `0o7`, `1.`, `.5`, `1e-3`.
    fn number(&mut self) -> Parsed<Token<'s>> {
        let rest = self.rest();
        let text = number_text(rest);
        let digits = text.replace('_', "");
        let invalid = |help: &str| {
            let message = format!("`{}` is not a number", shortened(text));
            Err(ParseError::new(self.span(text.len()), message).help(help))
        };
        let radix = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => 16,
            Some("0b") => 2,
            Some("0o") => 8,
            _ => 10,
        };
        let underscore_follows_a_digit =
            text.split('_').rev().skip(1).all(|s| s.ends_with(|c: char| c.is_digit(radix)));
        let underscore_precedes_a_digit = text.split('_').skip(1).all(|s| s.starts_with(|c: char| c.is_digit(radix)));
        if !(underscore_follows_a_digit && underscore_precedes_a_digit) {
            return invalid("an underscore stands between two digits, as in `1_000`");
        }
        let all_digits = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_digit(radix));
        let body = if radix == 10 { &digits[..] } else { &digits[2..] };
        if all_digits(body) {
            if radix == 10 && body.starts_with('0') && body.bytes().any(|b| b != b'0') {
                return invalid("a whole number does not start with 0: leave the zeros out, or write `0o17` for octal");
            }
            return match u64::from_str_radix(body, radix) {
                Ok(value) => Ok(self.token(Kind::Int(value), text.len())),
                Err(_) => {
                    let message = format!("the integer `{}` does not fit in 64 bits", shortened(text));
                    Err(ParseError::new(self.span(text.len()), message).help("write it as a float, such as `1e20`"))
                }
            };
        }
        // Rust's floats are Python's once the underscores are gone; the first byte excludes `inf` and `nan`.
        match digits.parse::<f64>() {
            Ok(value) if radix == 10 => Ok(self.token(Kind::Float(value), text.len())),
            _ if text.ends_with(['j', 'J']) => invalid("complex numbers are not supported"),
            _ if text.ends_with(|c: char| c.is_alphabetic()) && radix == 10 => {
                invalid("a product is written with `*`, as in `2 * x`")
            }
            _ => invalid("numbers look like `12`, `1_000`, `0xff`, `1.5`, `.5` or `1e-3`"),
        }
    }
}

/// Everything that a reader would take for one number, valid or not: `1.5e-3`, and `2x` too.
fn number_text(rest: &str) -> &str {
    let is_hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut end = 0;
    for c in rest.chars() {
        let before = rest[..end].chars().next_back();
        let sign_of_exponent = matches!(c, '+' | '-') && !is_hex && matches!(before, Some('e' | 'E'));
        // `1...` would be a number and then an ellipsis, and `1.e5` is a number.
        let point = c == '.' && !rest[..end].contains(['.', 'e', 'E']) && !is_hex;
        if !(c == '_' || c.is_alphanumeric() || sign_of_exponent || point) {
            break;
        }
        end += c.len_utf8();
    }
    &rest[..end]
}

fn take_while(text: &str, keep: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !keep(c)).unwrap_or(text.len())]
}

/// A quotation that fits in a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(24) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

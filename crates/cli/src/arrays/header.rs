//! A `.npy` header: the first bytes of a file enter, dtype, order, shape and the place of the data leave; and back.
//!
//! The header is a Python dict in text. It is read by hand: npyz allocates what the length field claims before it
//! looks whether the bytes are there, multiplies shapes without a check, and brings 25 crates to parse three keys.

use super::{ArrayError, Kind};

const MAGIC: &[u8] = b"\x93NUMPY";
/// What numpy calls ARRAY_ALIGN: data start at a multiple of it, so that they can be mapped.
const ALIGN_BYTES: usize = 64;
const MAX_DIMENSIONS: usize = 64;

/// The element types that a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Bool,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl Stored {
    pub fn size_bytes(self) -> usize {
        match self {
            Stored::Bool | Stored::I8 | Stored::U8 => 1,
            Stored::F16 | Stored::I16 | Stored::U16 => 2,
            Stored::F32 | Stored::I32 | Stored::U32 => 4,
            Stored::F64 | Stored::I64 | Stored::U64 => 8,
        }
    }
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub stored: Stored,
    pub big_endian: bool,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
    /// Elements in all.
    pub count: usize,
    /// Where the data start.
    pub data_start: usize,
    /// How long the data are.
    pub data_bytes: usize,
}

/// The longest header that is read, the fixed part included: what a length of 16 bits can say.
pub(super) const MAX_HEADER_BYTES: usize = 12 + 65535;

/// Reads the header at the start of `file`. Of the data only their place and length are computed: whether they are
/// there is for the caller to compare.
pub(super) fn parse(file: &[u8]) -> Result<Header, ArrayError> {
    if !file.starts_with(MAGIC) {
        return Err(ArrayError::NotNumpy);
    }
    let cut_off = |needed_bytes| ArrayError::HeaderCutOff { needed_bytes, found_bytes: file.len() };
    let (text_start, text_bytes) = match file[MAGIC.len()..] {
        [1, 0, a, b, ..] => (10, u32::from(u16::from_le_bytes([a, b]))),
        [2 | 3, 0, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d])),
        [1..=3, 0, ..] | [] | [_] => return Err(cut_off(12)),
        [major, minor, ..] => return Err(ArrayError::Version { major, minor }),
    };
    let data_start = (text_bytes as usize).saturating_add(text_start);
    if data_start > MAX_HEADER_BYTES {
        return Err(ArrayError::HeaderTooLong { header_bytes: data_start });
    }
    let text = file.get(text_start..data_start).ok_or_else(|| cut_off(data_start))?;
    let (descr, fortran_order, shape) = Dict { text, at: 0, start: text_start }.read()?;
    let (stored, big_endian) = parse_descr(&descr)?;
    let size = element_count(&shape).and_then(|count| Some((count, count.checked_mul(stored.size_bytes())?)));
    let Some((count, data_bytes)) = size else {
        return Err(ArrayError::TooLarge { shape });
    };
    Ok(Header { stored, big_endian, fortran_order, shape, count, data_start, data_bytes })
}

/// The product of the extents. As in numpy, those of an empty array must fit as well: its strides use them.
pub(super) fn element_count(shape: &[usize]) -> Option<usize> {
    let nonzero = shape.iter().filter(|&&n| n != 0).try_fold(1usize, |product, &n| product.checked_mul(n))?;
    // A slice of more than isize::MAX bytes cannot exist.
    isize::try_from(nonzero).ok()?;
    Some(if shape.contains(&0) { 0 } else { nonzero })
}

/// `<f4` and its like.
fn parse_descr(descr: &str) -> Result<(Stored, bool), ArrayError> {
    let order = descr.chars().next().filter(|c| "<>=|".contains(*c));
    let code = order.map_or(descr, |_| &descr[1..]);
    let big_endian = match order {
        Some('<') => false,
        Some('>') => true,
        _ => cfg!(target_endian = "big"),
    };
    const CAST: &str = "convert it with x.astype(np.float32) before saving";
    let unsupported = |what: &str, advice| {
        let quoted: String = descr.chars().filter(|c| !c.is_control()).take(24).collect();
        Err(ArrayError::Dtype { found: format!("{what} (`{quoted}`)"), advice })
    };
    let stored = match code {
        "b1" | "?" => Stored::Bool,
        "f2" => Stored::F16,
        "f4" => Stored::F32,
        "f8" => Stored::F64,
        "i1" => Stored::I8,
        "i2" => Stored::I16,
        "i4" => Stored::I32,
        "i8" => Stored::I64,
        "u1" => Stored::U8,
        "u2" => Stored::U16,
        "u4" => Stored::U32,
        "u8" => Stored::U64,
        _ => {
            return match code.chars().next() {
                Some('f') => unsupported("a long double", CAST),
                Some('c') => unsupported("complex", "save x.real and x.imag as two arrays"),
                Some('O') => unsupported("Python objects", "make it an array of numbers before saving"),
                Some('S' | 'a' | 'U') => unsupported("strings", "make it an array of numbers before saving"),
                Some('M' | 'm') => unsupported("dates or times", CAST),
                Some('V') => unsupported("raw bytes", "view it as a number type and convert that before saving"),
                _ => unsupported("unknown", CAST),
            };
        }
    };
    Ok((stored, big_endian))
}

/// A reader of the dict's text. It never recurses: no value that is wanted nests.
struct Dict<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the text starts in the file, for error messages.
    start: usize,
}

impl<'a> Dict<'a> {
    fn read(mut self) -> Result<(String, bool, Vec<usize>), ArrayError> {
        const KEYS: &str = "the keys 'descr', 'fortran_order' and 'shape', once each";
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.require(b'{', "`{`")?;
        while !self.take(b'}') {
            let key = self.string("a key in quotes")?;
            self.require(b':', "`:`")?;
            let new = match key {
                b"descr" => descr.replace(self.descr()?).is_none(),
                b"fortran_order" => fortran_order.replace(self.boolean()?).is_none(),
                b"shape" => shape.replace(self.shape()?).is_none(),
                _ => false,
            };
            if !new {
                return Err(self.expected(KEYS));
            }
            if !self.take(b',') {
                self.require(b'}', "`,` or `}`")?;
                break;
            }
        }
        self.skip_blanks();
        match (descr, fortran_order, shape) {
            _ if self.at < self.text.len() => Err(self.expected("nothing after `}`")),
            (Some(descr), Some(fortran_order), Some(shape)) => Ok((descr, fortran_order, shape)),
            _ => Err(self.expected(KEYS)),
        }
    }

    fn descr(&mut self) -> Result<String, ArrayError> {
        self.skip_blanks();
        if matches!(self.text.get(self.at), Some(b'[' | b'(' | b'{')) {
            let advice = "save each field as an array of its own";
            return Err(ArrayError::Dtype { found: "structured".to_owned(), advice });
        }
        Ok(String::from_utf8_lossy(self.string("a dtype in quotes")?).into_owned())
    }

    fn boolean(&mut self) -> Result<bool, ArrayError> {
        self.skip_blanks();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, ArrayError> {
        let mut shape = Vec::new();
        self.require(b'(', "a tuple of integers")?;
        while !self.take(b')') {
            if shape.len() == MAX_DIMENSIONS {
                return Err(ArrayError::TooManyDimensions);
            }
            shape.push(self.integer()?);
            if !self.take(b',') {
                self.require(b')', "`,` or `)`")?;
                break;
            }
        }
        Ok(shape)
    }

    fn integer(&mut self) -> Result<usize, ArrayError> {
        const EXPECTED: &str = "an integer from 0 to what memory can address";
        self.skip_blanks();
        let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = &self.text[self.at..self.at + digits];
        let value = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let value = value.ok_or_else(|| self.expected(EXPECTED))?;
        self.at += digits;
        // Python 2 wrote its long integers so.
        self.take(b'L');
        Ok(value)
    }

    /// A string without escapes: no key or dtype has any.
    fn string(&mut self, expected: &'static str) -> Result<&'a [u8], ArrayError> {
        self.skip_blanks();
        let Some((&quote @ (b'\'' | b'"'), rest)) = self.text[self.at..].split_first() else {
            return Err(self.expected(expected));
        };
        let Some(len) = rest.iter().position(|&b| b == quote) else {
            return Err(self.expected("a closing quote"));
        };
        self.at += len + 2;
        Ok(&rest[..len])
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, byte: u8, expected: &'static str) -> Result<(), ArrayError> {
        if self.take(byte) { Ok(()) } else { Err(self.expected(expected)) }
    }

    fn skip_blanks(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn expected(&self, expected: &'static str) -> ArrayError {
        ArrayError::Header { at_byte: self.start + self.at, expected }
    }
}

/// The header of an array in C order and native byte order, as numpy would write it: version 1.0, or 2.0 if the shape
/// is too long for that.
pub(super) fn format(dtype: Kind, shape: &[usize]) -> Vec<u8> {
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let descr = match dtype {
        Kind::F32 => format!("{order}f4"),
        Kind::I32 => format!("{order}i4"),
        Kind::U32 => format!("{order}u4"),
        Kind::Bool => "|b1".to_owned(),
    };
    let extents = match shape {
        [only] => format!("{only},"),
        _ => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    let aligned = |fixed: usize| (fixed + dict.len() + 1).next_multiple_of(ALIGN_BYTES);
    let mut bytes = MAGIC.to_vec();
    let total = match u16::try_from(aligned(10) - 10) {
        Ok(len) => {
            bytes.extend([1, 0]);
            bytes.extend(len.to_le_bytes());
            aligned(10)
        }
        Err(_) => {
            bytes.extend([2, 0]);
            // A shape comes from an array that exists, so its text is far shorter than 4 GiB.
            bytes.extend(((aligned(12) - 12) as u32).to_le_bytes());
            aligned(12)
        }
    };
    bytes.extend(dict.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

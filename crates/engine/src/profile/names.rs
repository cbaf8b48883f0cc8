//! The names of frames: text or a plan enters, a small number leaves, the same one for the same text.

use std::borrow::Cow;
use std::collections::HashMap;

/// A name of a frame: a text of [`Names`], or a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Name {
    Text(u32),
    Plan(u32),
}

/// A text as it comes with a span.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    /// It stays where it is: its address tells it from others.
    Fixed(&'static str),
    /// It was made for this span.
    Made(&'a str),
}

impl<'a> From<&'a Cow<'static, str>> for Text<'a> {
    fn from(text: &'a Cow<'static, str>) -> Text<'a> {
        match text {
            Cow::Borrowed(text) => Text::Fixed(text),
            Cow::Owned(text) => Text::Made(text),
        }
    }
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Fixed(text) => text,
            Text::Made(text) => text,
        }
    }

    pub(crate) fn to_owned(self) -> Cow<'static, str> {
        match self {
            Text::Fixed(text) => Cow::Borrowed(text),
            Text::Made(text) => Cow::Owned(text.to_owned()),
        }
    }
}

/// Texts by number.
#[derive(Default)]
pub(crate) struct Names {
    texts: Vec<Cow<'static, str>>,
    numbers: HashMap<Cow<'static, str>, u32>,
}

impl Names {
    /// The number of a text that is known.
    pub(crate) fn get(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied().map(Name::Text)
    }

    /// The number of a text.
    pub(crate) fn number(&mut self, text: Cow<'static, str>) -> Name {
        if let Some(name) = self.get(&text) {
            return name;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        Name::Text(number)
    }

    /// A name in words.
    pub(crate) fn text(&self, name: Name, plans: &[String]) -> String {
        match name {
            Name::Text(number) => {
                self.texts.get(number as usize).map_or(String::new(), |text| text.clone().into_owned())
            }
            Name::Plan(number) => plans.get(number as usize).cloned().unwrap_or_default(),
        }
    }
}

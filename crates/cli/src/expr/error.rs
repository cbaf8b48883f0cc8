//! What was wrong with a source, where, and what to do about it; and the picture of it that people read.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::Span;

/// A mistake in a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// Where it is. Empty at a place where something is missing.
    pub span: Span,
    /// What was wrong and what was expected.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// What the parser's own functions return. The box keeps their frames small, and so the stack that nesting takes.
pub(super) type Parsed<T> = Result<T, Box<ParseError>>;

impl ParseError {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Box<ParseError> {
        Box::new(ParseError { span, message: message.into(), help: None })
    }

    pub(super) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<ParseError> {
        self.help = Some(help.into());
        self
    }

    /// The error with the line it is in and a caret under its column. `source` is what was parsed.
    pub fn render(&self, source: &str, color: bool) -> String {
        render(source, self.span, &self.message, self.help.as_deref(), color)
    }
}

/// Draws `message` over the line of `source` that `span` is in, with carets under the span.
///
/// The evaluator's errors, found after parsing, are drawn with this too, so that all mistakes look alike. A span that
/// does not lie in `source` is moved to the nearest place that does.
pub fn render(source: &str, span: Span, message: &str, help: Option<&str>, color: bool) -> String {
    // Messages quote the source. Control characters in a quotation would reach the terminal as commands.
    let message = printable(message);
    let start = floor_char_boundary(source, span.start as usize);
    let end = floor_char_boundary(source, span.end as usize).max(start);
    // One line is enough to find the place, and a span over many lines would be drawn as a box around all of them.
    let end = source[start..end].find('\n').map_or(end, |newline| start + newline);

    let snippet = Snippet::source(source).path("expression").annotation(AnnotationKind::Primary.span(start..end));
    let mut group = Level::ERROR.primary_title(message).element(snippet);
    if let Some(help) = help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn floor_char_boundary(source: &str, index: usize) -> usize {
    (0..=index.min(source.len())).rev().find(|&i| source.is_char_boundary(i)).unwrap_or(0)
}

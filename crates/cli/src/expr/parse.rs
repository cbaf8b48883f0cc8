//! Tokens enter, the syntax tree leaves: operator precedence by climbing (Pratt), everything else by descent.
//!
//! Hand-written, because the messages are the point: at each place the parser knows what it was doing and can say so.

use super::ast::{Arg, Ast, BinaryOp, Expr, Ident, Node, NodeId, Span, Statement, Subscript, SubscriptKind, UnaryOp};
use super::error::Parsed;
use super::lex::{Kind, Lexer, Token, shortened};
use super::precedence::{UNARY, binary};
use super::{MAX_DEPTH, MAX_SOURCE_BYTES, ParseError};

/// Parses statements separated by `;` or new lines. There is at least one, or it is an error.
///
/// ```
/// use breakeven_cli::expr::{self, Expr};
///
/// let ast = expr::parse("-x ** 2").unwrap();
/// let root = ast.node(ast.statements()[0].value);
/// assert!(matches!(root.expr, Expr::Unary { .. }));
/// ```
pub fn parse(source: &str) -> Result<Ast<'_>, ParseError> {
    parse_boxed(source).map_err(|error| *error)
}

fn parse_boxed(source: &str) -> Parsed<Ast<'_>> {
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!("the expression has {} bytes; at most {MAX_SOURCE_BYTES} are read", source.len());
        return Err(ParseError::new(Span { start: 0, end: 0 }, message));
    }
    let mut lexer = Lexer::new(source);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, previous_end: 0, nodes: Vec::new(), depth: 0 };
    let statements = parser.statements()?;
    Ok(Ast { nodes: parser.nodes, statements })
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    /// The token to look at next.
    token: Token<'s>,
    /// Where the last consumed token ended: the place where something is missing.
    previous_end: u32,
    nodes: Vec<Node<'s>>,
    depth: usize,
}

impl<'s> Parser<'s> {
    fn statements(&mut self) -> Parsed<Vec<Statement<'s>>> {
        let mut statements = Vec::new();
        loop {
            while self.token.kind == Kind::Separator {
                self.advance()?;
            }
            if self.token.kind == Kind::End {
                break;
            }
            statements.push(self.statement()?);
        }
        if statements.is_empty() {
            let error = ParseError::new(self.token.span, "the expression is empty; expected something to compute");
            return Err(error.help("write an expression over the inputs, such as `x + y`"));
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Parsed<Statement<'s>> {
        let first_node = self.nodes.len();
        let mut value = self.expression(0)?;
        let mut target = None;
        if self.at("=") {
            target = Some(self.assigned_name(value)?);
            self.advance()?;
            value = self.expression(0)?;
        }
        match self.token.kind {
            Kind::Separator | Kind::End => {}
            Kind::Symbol("=") if target.is_some() => {
                let error = ParseError::new(self.token.span, "a second `=` in one statement");
                return Err(error.help("use `==` to compare, or assign each name in a statement of its own"));
            }
            Kind::Symbol(",") => {
                let error = ParseError::new(self.token.span, "expected one value in a statement, found `,`");
                return Err(error.help("for several outputs give each a name: `a = ...; b = ...`"));
            }
            Kind::Symbol(close @ (")" | "]")) => {
                return Err(ParseError::new(self.token.span, format!("`{close}` was never opened")));
            }
            _ => return Err(self.expected("an operator, `;` or the end")),
        }
        Ok(Statement { target, value, nodes: first_node..self.nodes.len() })
    }

    /// The name that the expression just parsed turns out to be, now that `=` follows it. Takes its node back.
    fn assigned_name(&mut self, id: NodeId) -> Parsed<Ident<'s>> {
        let node = &self.nodes[id.index()];
        let (expr, span) = (&node.expr, node.span);
        match *expr {
            Expr::Name(text) if span.range().len() == text.len() => {
                self.nodes.pop();
                Ok(Ident { text, span })
            }
            Expr::None | Expr::Bool(_) => Err(ParseError::new(span, "cannot assign to a constant")),
            _ => {
                let error = ParseError::new(span, "cannot assign to an expression; expected a name before `=`");
                Err(error.help("use `==` to compare"))
            }
        }
    }

    /// An expression whose operators all bind at least as tightly as `loosest`.
    ///
    /// All recursion passes through here, so this is where depth is counted.
    fn expression(&mut self, loosest: u8) -> Parsed<NodeId> {
        if self.depth >= MAX_DEPTH {
            let message = format!("the expression nests more than {MAX_DEPTH} levels deep");
            let error = ParseError::new(self.token.span, message);
            return Err(error.help("assign the inner part to a name: `inner = ...; ...`"));
        }
        self.depth += 1;
        let mut left = self.operand()?;
        let mut compared = false;
        while let Some((op, power)) = self.operator()
            && power >= loosest
        {
            let at = self.token.span;
            if op.is_comparison() && compared {
                let error = ParseError::new(at, "comparisons of arrays cannot be chained");
                return Err(error.help("combine two comparisons: `(a < b) & (b < c)`"));
            }
            compared = op.is_comparison();
            self.advance()?;
            // What `**` raises to may carry a sign and further powers; all else associates to the left.
            let right = self.expression(if op == BinaryOp::Pow { UNARY } else { power + 1 })?;
            let span = self.nodes[left.index()].span.to(self.nodes[right.index()].span);
            left = self.push(Expr::Binary { op, at, left, right }, span);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// A prefix operator with its operand, or an atom with what follows it: `.name`, `(...)`, `[...]`.
    fn operand(&mut self) -> Parsed<NodeId> {
        let start = self.token.span;
        let op = match self.token.kind {
            Kind::Symbol("-") => UnaryOp::Neg,
            Kind::Symbol("+") => UnaryOp::Pos,
            Kind::Symbol("~") => UnaryOp::Invert,
            _ => return self.postfix(),
        };
        self.advance()?;
        let operand = self.expression(UNARY)?;
        let span = start.to(self.nodes[operand.index()].span);
        Ok(self.push(Expr::Unary { op, operand }, span))
    }

    fn postfix(&mut self) -> Parsed<NodeId> {
        let mut value = self.atom()?;
        loop {
            let start = self.nodes[value.index()].span;
            match self.token.kind {
                Kind::Symbol("(") => return Err(self.not_callable(value)),
                Kind::Symbol("[") => {
                    let subscripts = self.subscripts()?;
                    value = self.push(Expr::Index { value, subscripts }, self.since(start));
                }
                Kind::Symbol(".") => {
                    self.advance()?;
                    let Kind::Name(text) = self.token.kind else {
                        return Err(self.expected("the name of a method or attribute after `.`"));
                    };
                    let name = Ident { text, span: self.token.span };
                    self.advance()?;
                    let expr = if self.at("(") {
                        Expr::Call { function: name, args: self.arguments(Some(value))? }
                    } else {
                        Expr::Attribute { value, name }
                    };
                    value = self.push(expr, self.since(start));
                }
                _ => return Ok(value),
            }
        }
    }

    fn atom(&mut self) -> Parsed<NodeId> {
        let Token { kind, span } = self.token;
        let expr = match kind {
            Kind::Int(value) => Expr::Int(value),
            Kind::Float(value) => Expr::Float(value),
            Kind::Name("True") => Expr::Bool(true),
            Kind::Name("False") => Expr::Bool(false),
            Kind::Name("None") => Expr::None,
            Kind::Name(text) => {
                self.advance()?;
                if !self.at("(") {
                    return Ok(self.push(Expr::Name(text), span));
                }
                let args = self.arguments(None)?;
                let function = Ident { text, span };
                return Ok(self.push(Expr::Call { function, args }, self.since(span)));
            }
            Kind::Symbol("(") => return self.parenthesised(),
            Kind::Symbol("[") => {
                let (items, _) = self.sequence("[", "]")?;
                return Ok(self.push(Expr::List(items.into()), self.since(span)));
            }
            _ => return Err(self.missing_operand()),
        };
        self.advance()?;
        Ok(self.push(expr, span))
    }

    /// `(a)`, which is `a`; or a tuple.
    fn parenthesised(&mut self) -> Parsed<NodeId> {
        let open = self.token.span;
        let (items, has_comma) = self.sequence("(", ")")?;
        match items[..] {
            [only] if !has_comma => {
                self.nodes[only.index()].span = self.since(open);
                Ok(only)
            }
            _ => Ok(self.push(Expr::Tuple(items.into()), self.since(open))),
        }
    }

    /// The items between two brackets, and whether there was a comma.
    fn sequence(&mut self, open: &str, close: &'static str) -> Parsed<(Vec<NodeId>, bool)> {
        let mut items = Vec::new();
        let has_comma = self.bracketed(open, close, |parser| {
            items.push(parser.expression(0)?);
            Ok(())
        })?;
        Ok((items, has_comma))
    }

    /// The arguments of a call; `receiver` is the value before the point of a method call, its first argument.
    fn arguments(&mut self, receiver: Option<NodeId>) -> Parsed<Box<[Arg<'s>]>> {
        let mut args: Vec<Arg<'s>> = Vec::new();
        args.extend(receiver.map(|value| Arg { keyword: None, value }));
        // A set apart: looking each name up among the arguments would take quadratic time over a long list.
        let mut seen = std::collections::HashSet::new();
        self.bracketed("(", ")", |parser| {
            let mut value = parser.expression(0)?;
            let mut keyword = None;
            if parser.at("=") {
                let name = parser.assigned_name(value)?;
                if !seen.insert(name.text) {
                    return Err(ParseError::new(name.span, format!("`{}` is given twice", shortened(name.text))));
                }
                parser.advance()?;
                value = parser.expression(0)?;
                keyword = Some(name);
            } else if !seen.is_empty() {
                let error =
                    ParseError::new(parser.nodes[value.index()].span, "a positional argument after a named one");
                return Err(error.help("put the arguments without names first"));
            }
            args.push(Arg { keyword, value });
            Ok(())
        })?;
        Ok(args.into())
    }

    fn subscripts(&mut self) -> Parsed<Box<[Subscript]>> {
        let open = self.token.span;
        let mut subscripts = Vec::new();
        self.bracketed("[", "]", |parser| {
            subscripts.push(parser.subscript()?);
            Ok(())
        })?;
        if subscripts.is_empty() {
            let error = ParseError::new(self.since(open), "an index needs something between its brackets");
            return Err(error.help("`x[...]` is all of x, `x[0]` its first row"));
        }
        Ok(subscripts.into())
    }

    fn subscript(&mut self) -> Parsed<Subscript> {
        let start = self.token.span;
        if self.at("...") {
            self.advance()?;
            return Ok(Subscript { kind: SubscriptKind::Ellipsis, span: start });
        }
        let first = self.slice_part()?;
        let kind = match first {
            Some(at) if !self.at(":") => match self.nodes[at.index()].expr {
                Expr::None => {
                    // Not a value to compute: the node is the last one, and is taken back.
                    self.nodes.pop();
                    SubscriptKind::NewAxis
                }
                _ => SubscriptKind::At(at),
            },
            None if !self.at(":") => return Err(self.missing_operand()),
            _ => {
                self.advance()?;
                let stop = self.slice_part()?;
                let mut step = None;
                if self.at(":") {
                    self.advance()?;
                    step = self.slice_part()?;
                }
                SubscriptKind::Slice { start: first, stop, step }
            }
        };
        Ok(Subscript { kind, span: self.since(start) })
    }

    fn slice_part(&mut self) -> Parsed<Option<NodeId>> {
        match self.token.kind {
            // At the end it is the bracket that is missing, which `bracketed` says.
            Kind::Symbol(":" | "," | "]") | Kind::End | Kind::Separator => Ok(None),
            _ => self.expression(0).map(Some),
        }
    }

    /// Items separated by commas, up to the bracket that closes the one at the current token. Says whether there was a
    /// comma.
    fn bracketed(
        &mut self,
        open: &str,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<bool> {
        let opened_at = self.token.span;
        let never_closed = || {
            let error = ParseError::new(opened_at, format!("`{open}` is never closed"));
            Err(error.help(format!("add `{close}`")))
        };
        self.advance()?;
        let mut has_comma = false;
        loop {
            if self.at(close) {
                self.advance()?;
                return Ok(has_comma);
            }
            if matches!(self.token.kind, Kind::End | Kind::Separator) {
                return never_closed();
            }
            item(self)?;
            match self.token.kind {
                Kind::Symbol(",") => {
                    has_comma = true;
                    self.advance()?;
                }
                Kind::Symbol(other) if other == close => {}
                Kind::End | Kind::Separator => return never_closed(),
                Kind::Symbol(other @ (")" | "]")) => {
                    let message = format!("expected `{close}` to close `{open}`, found `{other}`");
                    return Err(ParseError::new(self.token.span, message));
                }
                Kind::Symbol("=") => {
                    let error = ParseError::new(self.token.span, "`=` assigns, which only a statement can do");
                    return Err(error.help("use `==` to compare"));
                }
                _ => return Err(self.expected(&format!("an operator, `,` or `{close}`"))),
            }
        }
    }

    fn operator(&self) -> Option<(BinaryOp, u8)> {
        match self.token.kind {
            Kind::Symbol(symbol) => binary(symbol),
            _ => None,
        }
    }

    fn at(&self, symbol: &str) -> bool {
        matches!(self.token.kind, Kind::Symbol(s) if s == symbol)
    }

    fn advance(&mut self) -> Parsed<()> {
        self.previous_end = self.token.span.end;
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn push(&mut self, expr: Expr<'s>, span: Span) -> NodeId {
        // A node takes at least a byte of source, which `parse` has bounded.
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { expr, span });
        id
    }

    /// From `start` to the end of what has been consumed.
    fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.previous_end }
    }

    fn expected(&self, what: &str) -> Box<ParseError> {
        ParseError::new(self.token.span, format!("expected {what}, found {}", describe(self.token.kind)))
    }

    fn missing_operand(&self) -> Box<ParseError> {
        match self.token.kind {
            // Points at the gap itself: the end may be far away, behind blanks and comments.
            Kind::End | Kind::Separator => {
                let gap = Span { start: self.previous_end, end: self.previous_end };
                ParseError::new(gap, format!("expected a value, found {}", describe(self.token.kind)))
            }
            Kind::Symbol("=") if self.previous_end == self.token.span.start && self.previous_end > 0 => {
                self.expected("a value").help("for `x += 1` write `x = x + 1`; to compare, use `==`")
            }
            Kind::Symbol("...") => self.expected("a value").help("`...` stands alone in an index, as in `x[..., 0]`"),
            Kind::Symbol(":") => self.expected("a value").help("slices stand in an index, as in `x[1:]`"),
            _ => self.expected("a value"),
        }
    }

    fn not_callable(&self, value: NodeId) -> Box<ParseError> {
        let error = ParseError::new(self.nodes[value.index()].span, "only a function can be called");
        match self.nodes[value.index()].expr {
            Expr::Int(_) | Expr::Float(_) => error.help("a product is written with `*`, as in `2 * (x + 1)`"),
            _ => error.help("write the function's name before `(`; a product is written with `*`"),
        }
    }
}

fn describe(kind: Kind<'_>) -> String {
    match kind {
        Kind::Int(value) => format!("`{value}`"),
        Kind::Float(value) => format!("`{value:?}`"),
        Kind::Name(text) => format!("`{}`", shortened(text)),
        Kind::Symbol(symbol) => format!("`{symbol}`"),
        Kind::Separator => "the end of the statement".to_owned(),
        Kind::End => "the end".to_owned(),
    }
}

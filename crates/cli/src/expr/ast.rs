//! The syntax tree: what the parser builds, what the evaluator reads.
//!
//! Nodes live in one vector and name their children by index. A child always comes before its parent and the nodes of
//! one statement before those of the next, so an evaluator is a loop over [`Ast::nodes`], and neither evaluating nor
//! dropping a chain of a hundred thousand additions can overflow the stack.

use std::ops::Range;

/// A range of bytes of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The span as a range that slices the source.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The index of a node in its [`Ast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The position in [`Ast::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A name and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident<'s> {
    /// The name.
    pub text: &'s str,
    /// Where it stands.
    pub span: Span,
}

/// One node: what it is and where it stands, brackets around it included.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'s> {
    /// What it is.
    pub expr: Expr<'s>,
    /// Where it stands.
    pub span: Span,
}

/// What a node can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr<'s> {
    /// An integer. A minus before it is a [`UnaryOp::Neg`].
    Int(u64),
    /// A number with a point or an exponent; infinite if it is too large, as in Python.
    Float(f64),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// A variable, a constant such as `pi`, or a dtype such as `f32`: the evaluator knows which.
    Name(&'s str),
    /// `-x`, `+x`, `~x`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// What it applies to.
        operand: NodeId,
    },
    /// `a + b`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Where the operator stands: the place to point at when the operands do not fit each other.
        at: Span,
        /// The left operand.
        left: NodeId,
        /// The right operand.
        right: NodeId,
    },
    /// `f(a, k=b)`; `a.f(k=b)` is the same call.
    Call {
        /// The function.
        function: Ident<'s>,
        /// The arguments in the order written, positional ones first.
        args: Box<[Arg<'s>]>,
    },
    /// `x.T`.
    Attribute {
        /// The value before the point.
        value: NodeId,
        /// The name after it.
        name: Ident<'s>,
    },
    /// `x[1:, ::-1, None]`.
    Index {
        /// The value before the bracket.
        value: NodeId,
        /// What is between the brackets; at least one.
        subscripts: Box<[Subscript]>,
    },
    /// `(a, b)`.
    Tuple(Box<[NodeId]>),
    /// `[a, b]`.
    List(Box<[NodeId]>),
}

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg<'s> {
    /// The name before `=`, if it is a keyword argument.
    pub keyword: Option<Ident<'s>>,
    /// Its value.
    pub value: NodeId,
}

/// One entry between the brackets of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscript {
    /// What it is.
    pub kind: SubscriptKind,
    /// Where it stands.
    pub span: Span,
}

/// What an entry between the brackets of an index can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptKind {
    /// `i`.
    At(NodeId),
    /// `start:stop:step`.
    Slice {
        /// Before the first colon.
        start: Option<NodeId>,
        /// After the first colon.
        stop: Option<NodeId>,
        /// After the second colon.
        step: Option<NodeId>,
    },
    /// `...`.
    Ellipsis,
    /// `None`.
    NewAxis,
}

/// A prefix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`.
    Neg,
    /// `+x`.
    Pos,
    /// `~x`.
    Invert,
}

impl UnaryOp {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Pos => "+",
            UnaryOp::Invert => "~",
        }
    }
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "`symbol` says what each one is, and the list reads better whole")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
    MatMul,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl BinaryOp {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Rem => "%",
            BinaryOp::Pow => "**",
            BinaryOp::MatMul => "@",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
        }
    }

    /// Whether it compares; comparisons do not chain.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        matches!(self, Lt | Le | Gt | Ge | Eq | Ne)
    }
}

/// `value` or `target = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement<'s> {
    /// The name before `=`.
    pub target: Option<Ident<'s>>,
    /// The root of its expression.
    pub value: NodeId,
    /// The nodes that belong to this statement and to no other, the root last.
    pub nodes: Range<usize>,
}

/// A parsed source: at least one statement, of which the last one's value is the output.
#[derive(Clone, Debug, PartialEq)]
pub struct Ast<'s> {
    pub(super) nodes: Vec<Node<'s>>,
    pub(super) statements: Vec<Statement<'s>>,
}

impl<'s> Ast<'s> {
    /// All nodes, children before parents, statement after statement.
    pub fn nodes(&self) -> &[Node<'s>] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node<'s> {
        &self.nodes[id.index()]
    }

    /// The statements in the order written.
    pub fn statements(&self) -> &[Statement<'s>] {
        &self.statements
    }
}

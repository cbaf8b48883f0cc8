//! Precedence as a table, structure of every construct, and arbitrary input.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

/// The statements as s-expressions. Recursive, so for small sources only.
fn printed(source: &str) -> String {
    let ast = parse(source).unwrap_or_else(|error| panic!("{}", error.render(source, false)));
    check_order(&ast);
    let statements = ast.statements().iter().map(|statement| {
        let value = sexpr(&ast, statement.value);
        statement.target.map_or(value.clone(), |target| format!("{} = {value}", target.text))
    });
    statements.collect::<Vec<_>>().join("; ")
}

fn sexpr(ast: &Ast, id: NodeId) -> String {
    let go = |id: NodeId| sexpr(ast, id);
    let list = |head: &str, ids: &[NodeId]| ids.iter().fold(format!("({head}"), |s, id| s + " " + &go(*id)) + ")";
    match &ast.node(id).expr {
        Expr::Int(value) => value.to_string(),
        Expr::Float(value) => format!("{value:?}"),
        Expr::Bool(value) => format!("{value}"),
        Expr::None => "none".to_owned(),
        Expr::Name(text) => (*text).to_owned(),
        Expr::Unary { op, operand } => format!("({} {})", op.symbol(), go(*operand)),
        Expr::Binary { op, left, right, .. } => format!("({} {} {})", op.symbol(), go(*left), go(*right)),
        Expr::Attribute { value, name } => format!("(.{} {})", name.text, go(*value)),
        Expr::Tuple(ids) => list("tuple", ids),
        Expr::List(ids) => list("list", ids),
        Expr::Call { function, args } => {
            let mut text = format!("({}", function.text);
            for arg in args {
                let keyword = arg.keyword.map_or(String::new(), |k| format!("{}=", k.text));
                write!(text, " {keyword}{}", go(arg.value)).unwrap();
            }
            text + ")"
        }
        Expr::Index { value, subscripts } => {
            let part = |id: &Option<NodeId>| id.map_or("_".to_owned(), go);
            let mut text = format!("(index {}", go(*value));
            for subscript in subscripts {
                text += &match &subscript.kind {
                    SubscriptKind::At(id) => format!(" {}", go(*id)),
                    SubscriptKind::Slice { start, stop, step } => {
                        format!(" (slice {} {} {})", part(start), part(stop), part(step))
                    }
                    SubscriptKind::Ellipsis => " ...".to_owned(),
                    SubscriptKind::NewAxis => " newaxis".to_owned(),
                };
            }
            text + ")"
        }
    }
}

/// What `ast.rs` promises to evaluators: children before parents, no node twice, none unused, statements in order.
fn check_order(ast: &Ast) {
    let mut used = vec![0u32; ast.nodes().len()];
    for (index, node) in ast.nodes().iter().enumerate() {
        let mut child = |id: &NodeId| {
            assert!(id.index() < index, "a child after its parent");
            used[id.index()] += 1;
        };
        match &node.expr {
            Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) | Expr::None | Expr::Name(_) => {}
            Expr::Unary { operand, .. } => child(operand),
            Expr::Binary { left, right, .. } => [left, right].into_iter().for_each(child),
            Expr::Attribute { value, .. } => child(value),
            Expr::Tuple(ids) | Expr::List(ids) => ids.iter().for_each(child),
            Expr::Call { args, .. } => args.iter().for_each(|arg| child(&arg.value)),
            Expr::Index { value, subscripts } => {
                child(value);
                for subscript in subscripts {
                    match &subscript.kind {
                        SubscriptKind::At(id) => child(id),
                        SubscriptKind::Slice { start, stop, step } => {
                            [start, stop, step].into_iter().flatten().for_each(&mut child);
                        }
                        SubscriptKind::Ellipsis | SubscriptKind::NewAxis => {}
                    }
                }
            }
        }
    }
    let mut next = 0;
    for statement in ast.statements() {
        assert_eq!(statement.nodes.start, next);
        assert_eq!(statement.value.index() + 1, statement.nodes.end);
        used[statement.value.index()] += 1;
        next = statement.nodes.end;
    }
    assert_eq!(next, ast.nodes().len());
    assert!(used.iter().all(|&count| count == 1), "a node used {used:?} times");
}

#[test]
fn precedence_is_pythons() {
    // Each row was compared with the tree that Python's `ast` module gives.
    let table = [
        ("a + b * c", "(+ a (* b c))"),
        ("a * b + c", "(+ (* a b) c)"),
        ("a - b - c", "(- (- a b) c)"),
        ("a / b / c", "(/ (/ a b) c)"),
        ("a // b % c", "(% (// a b) c)"),
        ("a @ b * c", "(* (@ a b) c)"),
        ("a * b @ c", "(@ (* a b) c)"),
        ("a @ b + c", "(+ (@ a b) c)"),
        ("a ** b ** c", "(** a (** b c))"),
        ("-a ** b", "(- (** a b))"),
        ("-a ** -b", "(- (** a (- b)))"),
        ("a ** -b ** c", "(** a (- (** b c)))"),
        ("a ** b * c", "(* (** a b) c)"),
        ("a * b ** c", "(* a (** b c))"),
        ("2 ** -1 + x", "(+ (** 2 (- 1)) x)"),
        ("~a ** b", "(~ (** a b))"),
        ("-a * b", "(* (- a) b)"),
        ("a * -b", "(* a (- b))"),
        ("a - -b", "(- a (- b))"),
        ("- - +~a", "(- (- (+ (~ a))))"),
        ("a | b ^ c & d", "(| a (^ b (& c d)))"),
        ("a & b << c + d", "(& a (<< b (+ c d)))"),
        ("a << b >> c", "(>> (<< a b) c)"),
        ("a < b >> c", "(< a (>> b c))"),
        ("a & b ^ c | d", "(| (^ (& a b) c) d)"),
        ("a & b + c", "(& a (+ b c))"),
        ("a < b + c", "(< a (+ b c))"),
        ("a | b == c", "(== (| a b) c)"),
        ("a & b < c & d", "(< (& a b) (& c d))"),
        ("(a < b) & (b < c)", "(& (< a b) (< b c))"),
        ("(a < b) == c", "(== (< a b) c)"),
        ("~a & b", "(& (~ a) b)"),
        ("a <= b", "(<= a b)"),
        ("a >= b", "(>= a b)"),
        ("a != b", "(!= a b)"),
        ("-x.T", "(- (.T x))"),
        ("x[0] ** 2", "(** (index x 0) 2)"),
        ("x ** y[0]", "(** x (index y 0))"),
        ("(a + b) * c", "(* (+ a b) c)"),
        ("a ** (b, )[0]", "(** a (index (tuple b) 0))"),
    ];
    for (source, expected) in table {
        assert_eq!(printed(source), expected, "{source}");
    }
}

#[test]
fn every_construct_parses() {
    let table = [
        ("sum(x, axis=(0,1), keepdims=True)", "(sum x axis=(tuple 0 1) keepdims=true)"),
        ("x.sum(axis=0)", "(sum x axis=0)"),
        ("x.T.sum().exp()", "(exp (sum (.T x)))"),
        ("f()", "(f)"),
        ("f(x,)", "(f x)"),
        ("cast(x, i32)", "(cast x i32)"),
        ("concat([a, b,], axis=-1)", "(concat (list a b) axis=(- 1))"),
        ("zeros(())", "(zeros (tuple))"),
        ("reshape(x, (-1,))", "(reshape x (tuple (- 1)))"),
        ("[]", "(list)"),
        ("x[1:, ::-1, None]", "(index x (slice 1 _ _) (slice _ _ (- 1)) newaxis)"),
        ("x[..., 0]", "(index x ... 0)"),
        ("x[:]", "(index x (slice _ _ _))"),
        ("x[-1]", "(index x (- 1))"),
        ("x[1:2:3,]", "(index x (slice 1 2 3))"),
        ("x[:, :n-1]", "(index x (slice _ _ _) (slice _ (- n 1) _))"),
        ("x[0][1]", "(index (index x 0) 1)"),
        ("clip(x, None, inf)", "(clip x none inf)"),
        ("h = relu(x @ w1); h @ w2", "h = (relu (@ x w1)); (@ h w2)"),
        ("a = 1;; b = 2;", "a = 1; b = 2"),
        ("a = x # the input\n\n# more\nb = a\nb", "a = x; b = a; b"),
        ("f(\n  x, # first\n  y\n)", "(f x y)"),
        ("\u{3b1} * x_1", "(* \u{3b1} x_1)"),
        ("1_000 + 0xFF + 0b11 + 0o17 + 00", "(+ (+ (+ (+ 1000 255) 3) 15) 0)"),
        ("1. + .5 + 1e-3 + 1.5E+2 + 1_0.2_5", "(+ (+ (+ (+ 1.0 0.5) 0.001) 150.0) 10.25)"),
        ("18446744073709551615", "18446744073709551615"),
        ("1e999", "inf"),
    ];
    for (source, expected) in table {
        assert_eq!(printed(source), expected, "{source}");
    }
}

#[test]
fn spans_cover_brackets_and_operators() {
    let source = "(a + b) * f(c)";
    let ast = parse(source).unwrap();
    let texts: Vec<&str> = ast.nodes().iter().map(|node| &source[node.span.range()]).collect();
    assert_eq!(texts, ["a", "b", "(a + b)", "c", "f(c)", "(a + b) * f(c)"]);
    let Expr::Binary { at, .. } = ast.nodes()[5].expr else { panic!("not a product") };
    assert_eq!(&source[at.range()], "*");
}

/// Runs on a small stack: an overflow would end the test process.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn deep_sources_are_refused_and_long_ones_parsed() {
    on_small_stack(|| {
        for (unit, end) in
            [("(", ""), ("[", ""), ("-", "x"), ("f(", ""), ("x[", ""), ("x**", "x"), ("a|b^c&d+e*f**(", "")]
        {
            let source = unit.repeat(MAX_SOURCE_BYTES / unit.len() - 1) + end;
            let error = parse(&source).unwrap_err();
            assert!(error.message.contains("levels deep"), "{unit}: {}", error.message);
            // Drawn in time and size that do not follow the source's.
            assert!(error.render(&source, false).len() < 2000);
        }
        for (unit, end) in [("x+", "x"), ("x;", ""), ("x\n", ""), ("x.T+", "1"), ("x<0 ;", "")] {
            let source = unit.repeat(MAX_SOURCE_BYTES / unit.len() - 1) + end;
            check_order(&parse(&source).unwrap());
        }
        let chain = "x".to_owned() + &".T".repeat(100_000);
        assert_eq!(parse(&chain).unwrap().nodes().len(), 100_001);
        let nested = "(".repeat(MAX_DEPTH - 1) + "x" + &")".repeat(MAX_DEPTH - 1);
        parse(&nested).unwrap();
    });
}

#[test]
fn a_source_beyond_the_limit_is_refused() {
    let error = parse(&"x".repeat(1_000_000)).unwrap_err();
    assert_eq!(error.message, "the expression has 1000000 bytes; at most 262144 are read");
}

/// Parses, and draws the error if there is one: neither may panic, whatever the source.
fn survive(source: &str) {
    match parse(source) {
        Ok(ast) => check_order(&ast),
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end as usize <= source.len());
            assert!(!error.render(source, false).is_empty());
            error.render(source, true);
        }
    }
}

const TOKENS: [&str; 60] = [
    "x", "w1", "sum", "True", "None", "pi", "1", "2.5", "1e-3", "0xff", "1_0", "(", ")", "[", "]", ",", ":", ".",
    "...", "=", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "~", ";",
    "<<", ">>", "\n", " ", "# c\n", "and", "not", "if", "axis=", "f(", "x[", "x.T", "é", "日本", "\t", "\u{1b}", "'",
    "1__0", "0x", "1e", "\u{301}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_text_is_survived(source in any::<String>()) {
        survive(&source);
    }

    #[test]
    fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup_is_survived(tokens in prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..40)) {
        survive(&tokens.concat());
        survive(&tokens.join(" "));
    }

    #[test]
    fn numbers_are_survived(source in "[0-9._exboXEBOjL+-]{1,12}") {
        survive(&source);
    }
}

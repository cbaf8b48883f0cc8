//! Every mistake that has a message of its own, as people see it.

use super::*;

fn message(source: &str) -> (String, String, &str) {
    let error = parse(source).expect_err(source);
    (error.message.clone(), error.help.clone().unwrap_or_default(), &source[error.span.range()])
}

#[track_caller]
fn check(source: &str, expected_message: &str, expected_help: &str, expected_place: &str) {
    let (message, help, place) = message(source);
    assert!(message.contains(expected_message), "{source}: {message}");
    assert!(help.contains(expected_help), "{source}: {help}");
    assert_eq!(place, expected_place, "{source}");
}

#[test]
fn mistakes_are_named_at_their_place() {
    check("", "the expression is empty", "such as `x + y`", "");
    check(" # only a comment", "the expression is empty", "", "");
    check("x $ y", "`$` (U+0024) means nothing", "", "$");
    check("x ? y", "`?` (U+003F)", "", "?");
    check("(a + b", "`(` is never closed", "add `)`", "(");
    check("f(a, g(b)", "`(` is never closed", "add `)`", "(");
    check("x[1:", "`[` is never closed", "add `]`", "[");
    check("x[", "`[` is never closed", "add `]`", "[");
    check("(a; b)", "`(` is never closed", "", "(");
    check("(a]", "expected `)` to close `(`, found `]`", "", "]");
    check("a)", "`)` was never opened", "", ")");
    check("a +", "expected a value, found the end", "", "");
    check("a * / b", "expected a value, found `/`", "", "/");
    check("* a", "expected a value, found `*`", "", "*");
    check("f(, a)", "expected a value, found `,`", "", ",");
    check("x[, 1]", "expected a value, found `,`", "", ",");
    check("x[]", "an index needs something", "x[0]", "[]");
    check("a b", "expected an operator, `;` or the end, found `b`", "", "b");
    check("f(a b)", "expected an operator, `,` or `)`, found `b`", "", "b");
    check("2x", "`2x` is not a number", "2 * x", "2x");
    check("2(x)", "only a function can be called", "2 * (x + 1)", "2");
    check("f(x)(y)", "only a function can be called", "", "f(x)");
    check("x + 1 = y", "cannot assign to an expression", "use `==`", "x + 1");
    check("x[0] = y", "cannot assign to an expression", "", "x[0]");
    check("None = y", "cannot assign to a constant", "", "None");
    check("(a = b)", "`=` assigns", "use `==` to compare", "=");
    check("where(x[0] = 1, a, b)", "cannot assign to an expression", "use `==`", "x[0]");
    check("a = b = c", "a second `=`", "`==`", "=");
    check("x += 1", "expected a value, found `=`", "x = x + 1", "=");
    check("x :", "expected an operator, `;` or the end, found `:`", "", ":");
    check("a, b", "expected one value in a statement", "give each a name", ",");
    check("a < b < c", "cannot be chained", "(a < b) & (b < c)", "<");
    check("a and b", "`and` is not part of the language", "use `&`", "and");
    check("a or b", "`or` is not part", "use `|`", "or");
    check("not a", "`not` is not part", "use `~`", "not");
    check("a if c else b", "`if` is not part", "where(condition, a, b)", "if");
    check("lambda x: x", "`lambda` is not part", "write the expression", "lambda");
    check("a && b", "`&&` is not part", "use `&`", "&&");
    check("!a", "`!` is not part", "use `~`", "!");
    check("cast(x, 'f32')", "`'` is not part", "cast(x, f32)", "'");
    check("a \u{d7} b", "`\u{d7}` is not part", "write `*`", "\u{d7}");
    check("f(a=1, b)", "a positional argument after a named one", "first", "b");
    check("f(a=1, a=2)", "`a` is given twice", "", "a");
    check("x.", "expected the name of a method or attribute after `.`, found the end", "", "");
    check("x.5", "expected an operator, `;` or the end, found `0.5`", "", ".5");
    check("99999999999999999999", "does not fit in 64 bits", "as a float", "99999999999999999999");
    check("1__0", "`1__0` is not a number", "an underscore stands between", "1__0");
    check("1_", "`1_` is not a number", "an underscore", "1_");
    check("1_.5", "`1_.5` is not a number", "an underscore", "1_.5");
    check("1e", "`1e` is not a number", "", "1e");
    check("0x", "`0x` is not a number", "", "0x");
    check("0b12", "`0b12` is not a number", "", "0b12");
    check("017", "`017` is not a number", "0o17", "017");
    check("2j", "`2j` is not a number", "complex", "2j");
}

#[test]
fn the_caret_is_under_the_column() {
    let source = "softmax(x, axis=1";
    assert_eq!(
        parse(source).unwrap_err().render(source, false),
        "\
error: `(` is never closed
 --> expression:1:8
  |
1 | softmax(x, axis=1
  |        ^
  |
  = help: add `)`"
    );
}

#[test]
fn a_gap_at_the_end_has_a_caret_too() {
    let source = "h = relu(x);\nh @";
    assert_eq!(
        parse(source).unwrap_err().render(source, false),
        "\
error: expected a value, found the end
 --> expression:2:4
  |
2 | h @
  |    ^"
    );
}

#[test]
fn wide_characters_keep_the_caret_in_place() {
    let source = "日本 + $";
    assert_eq!(
        parse(source).unwrap_err().render(source, false),
        "\
error: `$` (U+0024) means nothing in an expression
 --> expression:1:6
  |
1 | 日本 + $
  |        ^"
    );
}

#[test]
fn no_escape_sequence_reaches_the_terminal() {
    let source = "x + \u{1b}[31m";
    assert!(!parse(source).unwrap_err().render(source, false).contains('\u{1b}'));
}

#[test]
fn any_span_can_be_drawn() {
    for (start, end) in [(0, 0), (1, 2), (0, 9), (7, 3), (100, 200), (u32::MAX, u32::MAX)] {
        render("é + 日\n x", Span { start, end }, "message", Some("help"), true);
        render("", Span { start, end }, "message", None, false);
    }
}

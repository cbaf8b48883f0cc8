use super::*;

fn height(expression: &str) -> usize {
    measure(&format!("fn f() {{ x = {expression}; }}")).0
}

#[test]
fn heights_are_those_of_the_expression_or_more() {
    // The assignment counts, too.
    assert_eq!([height("a"), height("-a"), height("a + b"), height("a + b + c + d")], [1, 2, 2, 4]);
    assert_eq!(height("---a"), 4);
    assert_eq!([height("a[0][0][0]"), height("a.b.c.d.e"), height("f(f(f(a)))")], [4, 5, 4]);
    assert_eq!([height("(a + b + c) * d"), height("d * (a + b + c)")], [4, 3]);
    assert_eq!(height("f(a + b, a + b, a + b, a + b)"), 3, "arguments lie side by side");
    assert_eq!(height("x[i + 0] * y[j + 0] + x[i + 1] * y[j + 1]"), 6);
    assert!(height("array<f32, 1>(1)[0] + array<f32, 1>(1)[0] + array<f32, 1>(1)[0]") >= 3, "these commas end nothing");
    assert_eq!(height("a /* + b /* + b */ + b */ // + b\n"), 1);
    assert_eq!(measure("a; /* not closed"), (0, 0));
    assert_eq!(measure("))]]"), measure("))"), "what is no WGSL is nobody's problem here");
    assert_eq!(measure("if a { } else if elsewhere { } else { }").1, 2);
}

#[test]
fn what_nobody_writes_is_refused_and_what_people_write_is_not() {
    let sum = |terms: usize| format!("fn f() {{ x = y[0]{}; }}", " + y[0]".repeat(terms));
    assert_eq!(refuse(&sum(450)), None);
    assert!(refuse(&sum(550)).is_some_and(|why| why.contains("an expression")));
    let chain = |count: usize| format!("fn f() {{ if a {{ }} {} }}", "else if a { }".repeat(count));
    assert_eq!(refuse(&chain(450)), None);
    assert!(refuse(&chain(550)).is_some_and(|why| why.contains("else")));
    for open in ["-", "!", "- ", "(", "f(", "a[", "[0]", ".a", "a+", "(a,", "/**/-", "a<b,"] {
        assert!(refuse(&format!("fn f() {{ x = a {}", open.repeat(20_000))).is_some(), "{open}");
    }
    let table = format!("const t = array<f32, 10000>({});", "-1.0, ".repeat(10_000));
    assert_eq!(refuse(&table), None, "long is not deep");
    assert!(refuse(&"x = a;".repeat(100_000)).is_some_and(|why| why.contains("600000 bytes")));
    for shader in [
        include_str!("shaders/prelude.wgsl"),
        include_str!("shaders/probe.wgsl"),
        include_str!("shaders/transcendental.wgsl"),
    ] {
        assert_eq!(refuse(shader), None);
    }
}

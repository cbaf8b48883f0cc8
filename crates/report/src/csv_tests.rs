//! Lines and quotes.

use super::*;
use crate::fixture_tests::scan;

#[test]
fn one_line_for_each_row() {
    let text = csv(&scan());
    assert_eq!(text.lines().count(), scan().rows.len() + 1);
    let columns = HEADER.split(',').count();
    let expected = "matmul,contract,128,n x n,cpu,cpu,Intel Xeon 2.8 GHz,40000,39200,40800,39200,40800,800,3,false";
    let first = text.lines().nth(1).unwrap();
    assert_eq!((first, first.split(',').count()), (expected, columns));
    assert!(text.ends_with("\r\n"));
}

#[test]
fn names_with_commas_quotes_and_lines_are_quoted() {
    assert!(csv(&scan()).contains(r#",gpu:0,software,"llvmpipe (LLVM 15.0.6, 256 bits)","#));
    assert_eq!(field(r#"15" "GPU""#), r#""15"" ""GPU""""#);
    assert_eq!(field("a\nb"), "\"a\nb\"");
    assert_eq!(field(" a"), "\" a\"");
    assert_eq!((field("plain"), field("")), ("plain".to_owned(), String::new()));
}

#[test]
fn one_line_for_each_transfer() {
    let text = transfers_csv(&scan());
    assert_eq!(text.lines().count(), scan().transfers.len() + 1);
    let mut lines = text.lines();
    assert_eq!(lines.next().map(|header| header.split(',').count()), Some(15));
    let expected = "upload,pageable,4096,0.045511,90000,88200,91800,88200,91800,1800,3,false";
    assert_eq!(lines.next(), Some(&*format!(r#"gpu:0,software,"llvmpipe (LLVM 15.0.6, 256 bits)",{expected}"#)));
    assert!(text.ends_with("\r\n") && !text.contains("readback,pageable"));
}

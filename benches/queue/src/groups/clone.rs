//! The price of a second owner of a payload: bytes enter, a clone leaves. `Bytes` is what the queue carries.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;

use super::{Row, size};
use crate::case::Case;
use crate::report::Bar;

pub(super) fn rows() -> Vec<Row> {
    [1 << 10, 64 << 10, 1 << 20].into_iter().map(row).collect()
}

fn row(bytes: usize) -> Row {
    let build = move || {
        let payload = vec![7u8; bytes];
        let (shared, counted) = (Bytes::from(payload.clone()), Arc::<[u8]>::from(payload.as_slice()));
        Ok(vec![clones("bytes", shared), clones("vec", payload), clones("arc", counted)])
    };
    Row { ours: "bytes", ..Row::new("clone", size(bytes), build) }.bar(Bar::below("clone < 100 ns", 100.0))
}

fn clones<T: Clone + 'static>(library: &'static str, payload: T) -> Case {
    Case::whole(library, "", move || {
        drop(black_box(black_box(&payload).clone()));
        Ok(())
    })
}

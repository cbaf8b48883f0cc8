//! A real browser for the tests of pages: headless Chromium, spoken to over its DevTools protocol. The path of a page
//! enters; what it complained about, asked the network for, shows and prints leaves.
//!
//! `chromium` finds, starts and ends the browser, `wire` is the protocol, `page` what a test does with a page. Every wait
//! has an end. A browser that is missing is an error that says what to install: nothing is skipped.

mod chromium;
mod error;
mod page;
mod wire;

pub use chromium::Browser;
pub use error::BrowserError;
pub use page::{Medium, Page, Scheme};

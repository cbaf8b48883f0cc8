//! A page as it looks in a browser: `screenshot PAGE.html SHOT.png [light|dark] [HEADING]`, from that heading on if one is
//! given. A file enters, a PNG leaves, such as a README's picture. Exit 1 if the page complains or asks the network for something.
#![expect(clippy::print_stderr, reason = "it reports to whoever runs it")]

use breakeven_tests::browser::{Browser, BrowserError, Medium, Scheme};
use std::path::Path;
use std::process::ExitCode;

fn shoot(page: &Path, shot: &Path, scheme: Scheme, heading: &str) -> Result<Vec<String>, BrowserError> {
    let mut browser = Browser::start()?;
    let mut page = browser.open(page)?;
    page.emulate_media(Medium::Screen, scheme);
    let heading = serde_json::Value::from(heading);
    page.eval(&format!(
        "[...document.querySelectorAll('h2')].find(h => {heading} && h.textContent == {heading})?.scrollIntoView()"
    ));
    std::fs::write(shot, page.screenshot())?;
    Ok([page.errors(), page.requests()].concat())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (page, shot, scheme, heading) = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [page, shot] | [page, shot, "light"] => (*page, *shot, Scheme::Light, ""),
        [page, shot, "dark"] => (*page, *shot, Scheme::Dark, ""),
        [page, shot, "light", heading] => (*page, *shot, Scheme::Light, *heading),
        [page, shot, "dark", heading] => (*page, *shot, Scheme::Dark, *heading),
        _ => {
            eprintln!("expected: screenshot PAGE.html SHOT.png [light|dark] [HEADING]");
            return ExitCode::from(2);
        }
    };
    match shoot(Path::new(page), Path::new(shot), scheme, heading) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            eprintln!("error: the page is not silent: {complaints:#?}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

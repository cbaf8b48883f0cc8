//! The browser as a process: found, started with a profile of its own, ended and cleaned up after.

use super::page::Page;
use super::wire::{LIMIT, Wire};
use super::{BrowserError, page};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What it is called, in the order in which it is looked for; the script `test` knows the same names.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Names the program if it is called otherwise.
const VARIABLE: &str = "BREAKEVEN_CHROMIUM";
/// How long it may take to end when asked to.
const FAREWELL: Duration = Duration::from_secs(5);

/// Nothing but the page that is tested: no traffic of its own, no first start, nothing that depends on the machine.
const FLAGS: [&str; 14] = [
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-gpu",
    // Containers have next to no shared memory.
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--password-store=basic",
];

/// A headless Chromium that ends with this value, and its folder with it.
pub struct Browser {
    process: Child,
    port: u16,
    wire: Wire,
    /// The profile; removed after the process has ended.
    folder: Option<TempDir>,
}

impl Browser {
    /// Starts one.
    pub fn start() -> Result<Browser, BrowserError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Browser::start_program(find(std::env::var_os(VARIABLE), &path)?)
    }

    fn start_program(program: PathBuf) -> Result<Browser, BrowserError> {
        let folder = tempfile::Builder::new().prefix("breakeven-browser-").tempdir()?;
        let said = folder.path().join("said.txt");
        let failed = |why: String| BrowserError::Start { program: program.display().to_string(), why };
        let mut process = Command::new(&program)
            .args(FLAGS)
            .args(is_root().then_some("--no-sandbox"))
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&said)?)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        match connect(&mut process, folder.path()) {
            Ok((port, wire)) => Ok(Browser { process, port, wire, folder: Some(folder) }),
            Err(why) => {
                end(&mut process, Duration::ZERO);
                Err(failed(format!("{why}; it said: {}", std::fs::read_to_string(&said).unwrap_or_default().trim())))
            }
        }
    }

    /// Opens a file in a window of its own, which shares nothing with others: no storage, no theme.
    pub fn open(&mut self, file: &Path) -> Result<Page, BrowserError> {
        let context = self.wire.call("Target.createBrowserContext", json!({}))?;
        let wanted = json!({
            "url": "about:blank", "browserContextId": context["browserContextId"],
            "width": page::DESKTOP.0, "height": page::DESKTOP.1,
        });
        let target = self.wire.call("Target.createTarget", wanted)?;
        let id = target["targetId"].as_str().unwrap_or_default();
        Page::open(Wire::connect(self.port, &format!("/devtools/page/{id}"))?, file)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked first, so that its helpers end with it; whether it hears that does not matter.
        let asked = self.wire.call("Browser.close", json!({}));
        end(&mut self.process, if asked.is_ok() { FAREWELL } else { Duration::ZERO });
        let Some(folder) = self.folder.take() else { return };
        let path = folder.path().to_path_buf();
        // A helper that has not ended yet may still write something.
        for _ in 0..50 {
            if std::fs::remove_dir_all(&path).is_ok() || !path.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The program: the one that is named, or the first of the known names in these folders.
fn find(named: Option<OsString>, path: &OsStr) -> Result<PathBuf, BrowserError> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    let mut places = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.find(|program| program.is_file()).ok_or_else(|| BrowserError::Missing { names: NAMES.join(", ") })
}

/// Chromium refuses to run as root with its sandbox.
fn is_root() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
    }
    #[cfg(not(unix))]
    false
}

/// Waits until the browser has said at which port it listens, and connects to it.
fn connect(process: &mut Child, folder: &Path) -> Result<(u16, Wire), BrowserError> {
    let end = Instant::now() + LIMIT;
    loop {
        let text = std::fs::read_to_string(folder.join("DevToolsActivePort")).unwrap_or_default();
        // Two lines, the port and a path; there may be less while it writes.
        if let Some((port, path)) = text.split_once('\n').filter(|(_, path)| path.contains("/browser/"))
            && let Ok(port) = port.parse()
        {
            return Ok((port, Wire::connect(port, path.trim())?));
        }
        if let Some(status) = process.try_wait()? {
            return Err(BrowserError::Ended(status));
        }
        if Instant::now() > end {
            return Err(BrowserError::Late { what: "the port of its DevTools".to_owned(), limit: LIMIT });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of a process, and brings it about after a while.
fn end(process: &mut Child, patience: Duration) {
    let late = Instant::now() + patience;
    while Instant::now() < late {
        if matches!(process.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Both fail only if it has ended already.
    let _ = process.kill();
    let _ = process.wait();
}

#[cfg(test)]
#[path = "chromium_tests.rs"]
mod tests;

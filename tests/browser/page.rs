//! One page in a browser: what a reader does with it enters, what it shows leaves.
//!
//! Everything here panics if the browser does not answer or refuses: a test can't go on then, and says so.

use super::BrowserError;
use super::wire::Wire;
use serde_json::{Value, json};
use std::path::Path;

/// Width and height of a page that nobody has resized.
pub(super) const DESKTOP: (u32, u32) = (1280, 900);

/// Where a page is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// On a screen.
    Screen,
    /// On paper.
    Print,
}

/// What the reader's system prefers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Dark letters on a light ground.
    Light,
    /// Light letters on a dark ground.
    Dark,
}

/// A page that has been loaded, without a network.
pub struct Page {
    wire: Wire,
    url: String,
}

impl Page {
    /// Loads a file and waits until it is drawn.
    pub(super) fn open(wire: Wire, file: &Path) -> Result<Page, BrowserError> {
        let mut page = Page { wire, url: file_url(&file.canonicalize()?) };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.wire.call(&format!("{domain}.enable"), json!({}))?;
        }
        let nowhere = json!({ "offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        page.wire.call("Network.emulateNetworkConditions", nowhere)?;
        page.set_size(DESKTOP.0, DESKTOP.1, false)?;
        page.load()?;
        Ok(page)
    }

    /// Loads the page once more; what it has stored stays.
    pub fn reload(&mut self) {
        self.load().unwrap_or_else(|error| panic!("reload: {error}"));
    }

    /// What went wrong on the page: exceptions, errors on the console, dialogs.
    pub fn errors(&mut self) -> Vec<String> {
        self.settle();
        self.wire.events.iter().filter_map(|(method, params)| complaint(method, params)).collect()
    }

    /// What the page asked for besides itself.
    pub fn requests(&mut self) -> Vec<String> {
        self.settle();
        let sent = self.wire.events.iter().filter(|(method, _)| method == "Network.requestWillBeSent");
        let urls = sent.filter_map(|(_, params)| params["request"]["url"].as_str());
        urls.filter(|url| *url != self.url && !url.starts_with("data:")).map(str::to_owned).collect()
    }

    /// The value of an expression, awaited if it is a promise.
    #[track_caller]
    pub fn eval(&mut self, js: &str) -> Value {
        self.try_eval(js).unwrap_or_else(|error| panic!("{error}\nin {js}"))
    }

    /// Moves the mouse to a place in the window.
    pub fn move_mouse(&mut self, x: f64, y: f64) {
        self.mouse("mouseMoved", x, y, false);
    }

    /// Clicks a place in the window.
    pub fn click(&mut self, x: f64, y: f64) {
        self.move_mouse(x, y);
        self.mouse("mousePressed", x, y, true);
        self.mouse("mouseReleased", x, y, true);
    }

    /// Presses a key that has a name, such as `Tab` or `ArrowRight`, and lets it go.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        // What programs on Windows call the keys is what Chromium's own handling of them, such as Tab's, goes by.
        let number = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => panic!("press: {key} is not known here"),
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number });
            self.call("Input.dispatchKeyEvent", event);
        }
        self.settle();
    }

    /// Shows the page as if on this medium, to a reader who prefers this.
    pub fn emulate_media(&mut self, medium: Medium, scheme: Scheme) {
        let medium = if medium == Medium::Print { "print" } else { "" };
        let scheme = if scheme == Scheme::Dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": medium, "features": features }));
        self.settle();
    }

    /// Gives the window another size; a mobile one scales the page as phones do.
    pub fn resize(&mut self, width: u32, height: u32, mobile: bool) {
        self.set_size(width, height, mobile).unwrap_or_else(|error| panic!("resize: {error}"));
        self.settle();
    }

    /// What the window shows, as PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        bytes("screenshot", &answer)
    }

    /// The page on paper, with its colours.
    pub fn pdf(&mut self) -> Vec<u8> {
        let answer = self.call("Page.printToPDF", json!({ "printBackground": true, "generateTaggedPDF": false }));
        bytes("pdf", &answer)
    }

    fn load(&mut self) -> Result<(), BrowserError> {
        let since = self.wire.events.len();
        let loading = self.wire.call("Page.navigate", json!({ "url": self.url }))?;
        if let Some(why) = loading["errorText"].as_str() {
            return Err(BrowserError::Refused { method: self.url.clone(), why: why.to_owned() });
        }
        self.wire.wait_for("Page.loadEventFired", since)?;
        self.try_eval(DRAWN).map(|_| ())
    }

    fn try_eval(&mut self, js: &str) -> Result<Value, BrowserError> {
        let wanted = json!({ "expression": js, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.wire.call("Runtime.evaluate", wanted)?;
        match thrown(&answer) {
            Some(why) => Err(BrowserError::Script(why)),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    fn set_size(&mut self, width: u32, height: u32, mobile: bool) -> Result<(), BrowserError> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.wire.call("Emulation.setDeviceMetricsOverride", metrics).map(|_| ())
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64, pressed: bool) {
        let button = if pressed { "left" } else { "none" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": u8::from(pressed) });
        self.call("Input.dispatchMouseEvent", event);
        self.settle();
    }

    /// Waits until what was done is drawn, and everything that came of it has arrived here.
    fn settle(&mut self) {
        self.eval(DRAWN);
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.wire.call(method, params).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Two frames: the first may have been under way already.
const DRAWN: &str = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";

/// What an event says of an error on the page, if it does.
fn complaint(method: &str, params: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match method {
        "Runtime.exceptionThrown" => thrown(params),
        "Log.entryAdded" if params["entry"]["level"] == "error" => Some(text(&params["entry"]["text"])),
        "Runtime.consoleAPICalled" if params["type"] == "error" || params["type"] == "assert" => {
            Some(format!("console.{}: {}", text(&params["type"]), params["args"]))
        }
        "Page.javascriptDialogOpening" => Some(format!("a dialog: {}", text(&params["message"]))),
        "Inspector.targetCrashed" => Some("the page crashed".to_owned()),
        _ => None,
    }
}

/// The exception within an answer or event.
fn thrown(answer: &Value) -> Option<String> {
    let details = answer.get("exceptionDetails")?;
    let words = details["exception"]["description"].as_str().or(details["text"].as_str());
    Some(words.unwrap_or("something without words").to_owned())
}

fn bytes(what: &str, answer: &Value) -> Vec<u8> {
    let text = answer["data"].as_str().unwrap_or_default();
    data_encoding::BASE64.decode(text.as_bytes()).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// A path as an address: everything but letters, digits and the signs of plain names is escaped.
fn file_url(path: &Path) -> String {
    let escaped = path.to_string_lossy().bytes().fold(String::new(), |mut url, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => url.push(byte.into()),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
        url
    });
    format!("file://{escaped}")
}

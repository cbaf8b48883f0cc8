//! The DevTools protocol over one websocket: commands enter, their answers and everything that happened meanwhile leave.

use super::BrowserError;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// How long one answer may take; on a machine that is busy with something else, a page takes seconds.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// How often a wait looks at the clock.
const GLANCE: Duration = Duration::from_millis(100);

/// A connection to a browser or to one of its pages.
pub(super) struct Wire {
    socket: WebSocket<TcpStream>,
    last_id: u64,
    /// What happened, oldest first, with the method that names it.
    pub events: Vec<(String, Value)>,
}

impl Wire {
    /// Connects to a path of the DevTools at this port of this machine.
    pub fn connect(port: u16, path: &str) -> Result<Wire, BrowserError> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        // A screenshot is one frame, which may be larger than what strangers may send.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let url = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(config)).map_err(|error| {
            BrowserError::Refused { method: format!("a connection to {path}"), why: error.to_string() }
        })?;
        socket.get_ref().set_read_timeout(Some(GLANCE))?;
        Ok(Wire { socket, last_id: 0, events: Vec::new() })
    }

    /// Asks for something and waits for the answer.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, BrowserError> {
        let id = self.send(method, params)?;
        let end = Instant::now() + LIMIT;
        loop {
            let mut message = self.next(end, method)?;
            if message["id"] != id {
                self.note(message)?;
            } else if let Some(why) = message["error"]["message"].as_str() {
                return Err(BrowserError::Refused { method: method.to_owned(), why: why.to_owned() });
            } else {
                return Ok(message["result"].take());
            }
        }
    }

    /// Waits until this has happened since the event of that number.
    pub fn wait_for(&mut self, event: &str, since: usize) -> Result<(), BrowserError> {
        let end = Instant::now() + LIMIT;
        while !self.events[since..].iter().any(|(method, _)| method == event) {
            let message = self.next(end, event)?;
            self.note(message)?;
        }
        Ok(())
    }

    fn send(&mut self, method: &str, params: Value) -> Result<u64, BrowserError> {
        self.last_id += 1;
        let command = json!({ "id": self.last_id, "method": method, "params": params });
        self.socket.send(Message::text(command.to_string()))?;
        Ok(self.last_id)
    }

    /// Keeps what happened. A dialog is closed at once: the page stands still as long as it is open.
    fn note(&mut self, mut message: Value) -> Result<(), BrowserError> {
        let Some(method) = message["method"].as_str().map(str::to_owned) else { return Ok(()) };
        if method == "Page.javascriptDialogOpening" {
            self.send("Page.handleJavaScriptDialog", json!({ "accept": false }))?;
        }
        self.events.push((method, message["params"].take()));
        Ok(())
    }

    /// The next message, whatever it is.
    fn next(&mut self, end: Instant, what: &str) -> Result<Value, BrowserError> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    return serde_json::from_str(&text)
                        .map_err(|error| BrowserError::Refused { method: what.to_owned(), why: error.to_string() });
                }
                Ok(_) => {}
                // Unix says the one of a read that took too long, Windows the other.
                Err(Error::Io(error))
                    if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > end {
                return Err(BrowserError::Late { what: what.to_owned(), limit: LIMIT });
            }
        }
    }
}

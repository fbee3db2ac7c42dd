//! A small X on loopback: what the program asks for posts and media.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;

use serde_json::{Value, json};

use crate::support::{Place, Run};

/// A server that gives out pages, one for each connection, until the test program ends.
pub(crate) struct X {
    base: String,
    pages: Arc<Mutex<HashMap<String, Page>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// Each path when it is asked for.
    asks: Receiver<String>,
}

#[derive(Clone)]
struct Page {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
    /// Only so much of the body comes, and then nothing more.
    stalls_after: Option<usize>,
}

impl X {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (pages, asked) = (Arc::default(), Arc::default());
        let (asking, asks) = channel();
        let x = Self { base, pages, asked, asks };
        let (pages, asked) = (Arc::clone(&x.pages), Arc::clone(&x.asked));
        let accept = move || {
            for stream in listener.incoming().flatten() {
                let (pages, asked, asking) = (Arc::clone(&pages), Arc::clone(&asked), asking.clone());
                // A client that goes away is no failure of the server.
                let answer = move || drop(answer(stream, &pages, &asked, &asking));
                Builder::new().name("x-connection".to_owned()).spawn(answer).unwrap();
            }
        };
        Builder::new().name("x".to_owned()).spawn(accept).unwrap();
        x
    }

    /// A file with this content.
    pub(crate) fn file(&self, path: &str, body: &[u8]) {
        let kind = if path.ends_with(".mp4") { "video/mp4" } else { "image/jpeg" };
        self.page(path, Page { status: 200, kind, body: body.to_vec(), stalls_after: None });
    }

    /// A file of which half comes, and then nothing more.
    pub(crate) fn stalling_file(&self, path: &str, body: &[u8]) {
        let stalls_after = Some(body.len() / 2);
        self.page(path, Page { status: 200, kind: "video/mp4", body: body.to_vec(), stalls_after });
    }

    pub(crate) fn json(&self, path: &str, json: &Value) {
        let body = json.to_string().into_bytes();
        self.page(path, Page { status: 200, kind: "application/json", body, stalls_after: None });
    }

    pub(crate) fn status(&self, path: &str, status: u16) {
        self.page(path, Page { status, kind: "text/plain", body: Vec::new(), stalls_after: None });
    }

    fn page(&self, path: &str, page: Page) {
        self.pages.lock().unwrap().insert(path.to_owned(), page);
    }

    /// Post number 20, of ann, as VxTwitter tells it.
    pub(crate) fn post(&self, media: &Value) {
        self.numbered_post(20, media);
    }

    /// A post of ann with this number.
    pub(crate) fn numbered_post(&self, number: usize, media: &Value) {
        self.json(
            &format!("/i/status/{number}"),
            &json!({
                "tweetID": number.to_string(),
                "user_name": "Ann",
                "user_screen_name": "ann",
                "text": "look",
                "media_extended": media,
            }),
        );
    }

    /// A medium of that post.
    pub(crate) fn medium(&self, kind: &str, path: &str) -> Value {
        json!({
            "type": kind,
            "url": format!("{}{path}", self.base),
            "altText": format!("what {path} shows"),
            "duration_millis": if kind == "video" { 2000 } else { 0 },
            "size": { "width": 320, "height": 180 },
        })
    }

    /// How often a path was asked for.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }

    /// Waits until a path is asked for.
    pub(crate) fn wait_for(&self, path: &str) {
        while self.asks.recv().unwrap() != path {}
    }

    /// The program, with this as its only source and everything it keeps in `place`.
    pub(crate) fn command(&self, place: &Place, words: &[&str]) -> Command {
        let mut command = command(place, words);
        command.env("AZALEA_SOURCES__ORDER", "vxtwitter");
        command.env("AZALEA_SOURCES__VXTWITTER__BASE_URL", &self.base);
        command.env("AZALEA_SOURCES__FXTWITTER__BASE_URL", &self.base);
        command.env("AZALEA_DOWNLOAD__ALLOW_HOSTS", "127.0.0.1");
        command.env("AZALEA_DOWNLOAD__ALLOW_PRIVATE", "true");
        command
    }

    pub(crate) fn run(&self, place: &Place, words: &[&str]) -> Run {
        self.command(place, words).output().unwrap().into()
    }
}

/// The program for somebody without any configuration, who keeps everything in `place`.
pub(crate) fn command(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(words);
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("AZALEA_")) {
        command.env_remove(name);
    }
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env("HOME", place.path("home"));
    command.env("AZALEA_STORE__PATH", place.path("store")).env("TMPDIR", place.path(""));
    command
}

fn answer(
    stream: TcpStream,
    pages: &Mutex<HashMap<String, Page>>,
    asked: &Mutex<Vec<String>>,
    asking: &Sender<String>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let path = line.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
    while line.trim() != "" {
        line.clear();
        stream.read_line(&mut line)?;
    }
    let missing = Page { status: 404, kind: "text/plain", body: Vec::new(), stalls_after: None };
    let page = pages.lock().unwrap().get(&path).cloned().unwrap_or(missing);
    asked.lock().unwrap().push(path.clone());
    let (status, kind, length) = (page.status, page.kind, page.body.len());
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    let sent = page.stalls_after.unwrap_or(length);
    stream.write_all(page.body.get(..sent).unwrap_or_default())?;
    // Nobody waits for it any more when the test is over.
    drop(asking.send(path));
    if page.stalls_after.is_some() {
        // Until the client closes the connection.
        stream.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

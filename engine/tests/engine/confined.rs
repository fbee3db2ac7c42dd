//! Threads that read a stranger's bytes can open nothing.

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

use azalea_engine::{Bytes, Engine, Limits, Source, confinement};

use crate::support::clips::{self, Place};
use crate::support::{MIB, within};

/// What became of an attempt to open something.
type Attempt = Result<(), ErrorKind>;

/// A reader that is up to no good, as a decoder would be that strangers have taken over.
struct Burglar {
    bytes: Cursor<Bytes>,
    path: PathBuf,
    port: u16,
    report: Option<Sender<[Attempt; 3]>>,
}

impl Read for Burglar {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(report) = self.report.take() {
            let read = File::open(&self.path).map(drop).map_err(|error| error.kind());
            let write = File::create(self.path.with_extension("new")).map(drop).map_err(|error| error.kind());
            let connect =
                TcpStream::connect(("127.0.0.1", self.port)).map(drop).map_err(|error| error.kind());
            report.send([read, write, connect]).unwrap();
        }
        self.bytes.read(buffer)
    }
}

impl Seek for Burglar {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

/// What came of it in this engine, when a job reads and when a file is only looked at.
fn attempts(engine: &Engine) -> [[Attempt; 3]; 2] {
    let place = Place::new();
    place.write("secret", b"secret");
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (sender, reports) = channel();
    let burglar = || Burglar {
        bytes: Cursor::new(clips::plain()),
        path: place.path("secret"),
        port: listener.local_addr().unwrap().port(),
        report: Some(sender.clone()),
    };
    drop(engine.try_submit(Source::reader(burglar()), within(MIB)).unwrap().wait().unwrap());
    engine.probe(Source::reader(burglar()), &Limits::default()).unwrap();
    [reports.recv().unwrap(), reports.recv().unwrap()]
}

#[test]
fn no_file_and_no_connection_can_be_opened_where_bytes_are_read() {
    let possible = confinement();
    let expected = |denied: bool| if denied { Err(ErrorKind::PermissionDenied) } else { Ok(()) };
    let expected = [expected(possible.files), expected(possible.files), expected(possible.connections)];
    let engine = Engine::builder().threads(1).build().unwrap();
    assert_eq!(attempts(&engine), [expected, expected]);
    // What was asked for by name is opened all the same.
    let place = Place::new();
    place.write("clip.mp4", &clips::plain());
    let job = engine.try_submit(Source::path(place.path("clip.mp4")), within(MIB)).unwrap();
    assert!(*job.wait().unwrap().bytes() == clips::plain());
    assert!(engine.probe(Source::path(place.path("clip.mp4")), &Limits::default()).is_ok());
}

#[test]
fn an_engine_that_is_not_confined_opens_what_its_readers_want() {
    let engine = Engine::builder().threads(1).confined(false).build().unwrap();
    assert_eq!(attempts(&engine), [[Ok(()); 3]; 2]);
}

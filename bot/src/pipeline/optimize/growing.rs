//! Feeds a download to the engine while it arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azalea_engine::{ByteSize, GrowingWriter, Source};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::domain::Failure;
use crate::pipeline::activity::Activity;
use crate::pipeline::download::Sink;

/// The end that a download writes to. Each time the file begins, a new source for the engine comes out of the
/// receiver that [`Feed::new`] gives; the one before is broken off.
pub(super) struct Feed {
    capacity: ByteSize,
    sources: mpsc::Sender<Source>,
    writer: Option<GrowingWriter>,
    over: Arc<AtomicBool>,
    activity: Activity,
}

/// Begins of one file: more than a download ever makes before the receiver looks.
const BEGINS: usize = 8;

impl Feed {
    /// A feed of at most `capacity` bytes, the sources it gives, and a flag that is up once the engine wants no more.
    pub(super) fn new(
        capacity: ByteSize,
        activity: Activity,
    ) -> (Self, mpsc::Receiver<Source>, Arc<AtomicBool>) {
        let (sources, receiver) = mpsc::channel(BEGINS);
        let over = Arc::new(AtomicBool::new(false));
        (Self { capacity, sources, writer: None, over: Arc::clone(&over), activity }, receiver, over)
    }

    /// All has arrived.
    pub(super) fn finish(mut self) {
        if let Some(writer) = self.writer.take() {
            writer.finish();
        }
    }
}

impl Sink for Feed {
    fn begin(&mut self, total: Option<u64>) {
        let (writer, source) = Source::growing(self.capacity, total.map(ByteSize::new));
        self.writer = Some(writer);
        // Nobody listens when the job is over; the next append says so.
        if self.sources.try_send(source).is_err() {
            self.over.store(true, Ordering::Release);
        }
    }

    fn append(&mut self, chunk: Bytes) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else {
            return Err(Failure::ours("bytes came before their file"));
        };
        self.activity.moved();
        writer.append(chunk).map_err(|error| {
            if error.kind() == azalea_engine::ErrorKind::TooLarge {
                Failure::TooLarge { what: error.to_string() }
            } else {
                self.over.store(true, Ordering::Release);
                Failure::Cancelled
            }
        })
    }

    fn restart(&mut self) -> bool {
        if let Some(writer) = self.writer.take() {
            writer.fail("the download begins anew");
        }
        true
    }
}

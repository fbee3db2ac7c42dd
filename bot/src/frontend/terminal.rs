//! Delivers into a folder, and says what happens as events: for commands and for the console.

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::time::timeout;

use crate::clock::Clock;
use crate::dedup::Delivered;
use crate::domain::{
    Author, ChannelId, Destination, Failure, FrontEnd, LimitClass, MediumKind, MessageId, PostId, Request,
    RequestId, Stage, Telling, UserId,
};
use crate::frontend::names::{Names, number_of};
use crate::guard::audience::Place;
use crate::pipeline::activity::Sight;
use crate::pipeline::delivery::{Delivery, Notice, Parcel};
use crate::pipeline::optimize::{Facts, Times};
use crate::pipeline::posting::Posting;
use crate::store::Unfinished;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Work on a request has come to this stage. Left out when nobody reads fast enough.
    Stage(RequestId, Stage),
    /// The files of a request stand in their folder.
    Delivered(Box<Arrival>),
    /// There is something to say to the one who asked.
    Told(Request, Notice, Receipt),
}

/// Says by its end that what it came with has been read. Clones end together.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    _ends: Option<Arc<oneshot::Sender<()>>>,
}

impl Receipt {
    /// A receipt, and what resolves when it has ended.
    pub(super) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self { _ends: Some(Arc::new(sender)) }, receiver)
    }
}

/// Files that arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Who wanted them.
    pub request: Request,
    /// The answer that they stand in.
    pub delivered: Delivered,
    /// The post that they are from.
    pub post: PostId,
    /// Who wrote it.
    pub author: Author,
    /// What it says.
    pub text: String,
    /// They would be hidden behind a spoiler.
    pub spoiler: bool,
    /// The files, in the post's order.
    pub files: Vec<SavedFile>,
    /// Media of the post that are not among them, and why.
    pub missing: Vec<Failure>,
    /// Ends when it has been told.
    pub receipt: Receipt,
}

/// A file in its place.
#[derive(Clone, Debug)]
pub struct SavedFile {
    /// Where it stands.
    pub path: PathBuf,
    /// What it was at its source.
    pub kind: MediumKind,
    /// Its description for those who cannot see it.
    pub alt: Option<String>,
    /// It belongs to a post that the post quotes.
    pub quoted: bool,
    /// What is known about it.
    pub facts: Facts,
    /// How long it took to make.
    pub times: Times,
}

/// How files are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All in the folder.
    Flat,
    /// A folder for each channel, and names that begin with the number of the answer.
    ByChannel,
}

/// A folder that results go to.
#[derive(Debug)]
pub struct Terminal {
    folder: PathBuf,
    layout: Layout,
    limit: LimitClass,
    events: mpsc::Sender<Event>,
    names: Names,
    /// The number of the last answer; read from the folder before the first one.
    answers: OnceCell<AtomicU64>,
    /// Whether what an earlier run left half written was removed.
    tidied: OnceCell<()>,
    clock: Clock,
    /// An event is over when it has been read, and not before.
    patient: bool,
}

/// How long an event may take to be read.
const READING: Duration = Duration::from_secs(30);
/// How much later than its delivery a file's time may be, where the file system's clock is coarse or another one.
const LATE: Duration = Duration::from_secs(5);
/// Events that wait to be read.
const EVENTS: usize = 256;

impl Terminal {
    /// A terminal that puts files into `folder`, which is created when it is needed, and its events.
    pub fn new(
        folder: PathBuf,
        layout: Layout,
        limit: LimitClass,
        clock: Clock,
        names: Names,
    ) -> (Self, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(EVENTS);
        let (answers, tidied) = (OnceCell::new(), OnceCell::new());
        let terminal = Self { folder, layout, limit, events, names, answers, tidied, clock, patient: false };
        (terminal, receiver)
    }

    /// The same, for a reader who tells people: a request is over when its event has been dropped. What was in a queue
    /// only would be lost with the process.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { patient: true, ..self }
    }

    /// The channel of this name, which it keeps.
    pub async fn channel(&self, name: &str) -> ChannelId {
        ChannelId::new(self.names.keep(name).await)
    }

    /// The person of this name, which it keeps.
    pub async fn person(&self, name: &str) -> UserId {
        UserId::new(self.names.keep(name).await)
    }

    /// The name of a channel; its number when it never had one.
    pub fn channel_name(&self, id: ChannelId) -> String {
        NonZeroU64::new(id.get()).and_then(|id| self.names.get(id)).unwrap_or_else(|| id.to_string())
    }

    /// The name of a person; the number when there never was one.
    pub fn person_name(&self, id: UserId) -> String {
        NonZeroU64::new(id.get()).and_then(|id| self.names.get(id)).unwrap_or_else(|| id.to_string())
    }

    /// Whether files of this answer still stand in their folder. What was written after it was delivered is another
    /// answer's, whose number is the same since the files of this one were removed.
    pub async fn stands(&self, delivered: &Delivered) -> bool {
        let folder = self.folder_of(delivered.channel);
        let Some(number) = delivered.messages.first().map(|message| message.get()) else { return false };
        let latest = delivered.at.plus(LATE).as_millis();
        let look = move || {
            let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let mut named = files.filter(|file| number_of_answer(&file.file_name()) == Some(number));
            named.any(|file| written_at(&file).is_none_or(|at| at <= latest))
        };
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }

    /// The number of the next answer: the files of earlier ones, also of earlier runs, keep theirs.
    async fn next_answer(&self) -> u64 {
        let answers = self.answers.get_or_init(|| async {
            let folder = (self.layout == Layout::ByChannel).then(|| self.folder.clone());
            let last = tokio::task::spawn_blocking(move || folder.map_or(0, |folder| last_answer(&folder)));
            AtomicU64::new(last.await.unwrap_or(0))
        });
        answers.await.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Removes what an earlier run, which was killed, left half written: once, before the first file.
    async fn tidy(&self) {
        let tidying = || async {
            let (folder, by_channel) = (self.folder.clone(), self.layout == Layout::ByChannel);
            let tidying = move || {
                let channels = std::fs::read_dir(&folder).into_iter().flatten().flatten();
                channels
                    .filter(|_| by_channel)
                    .for_each(|channel| Unfinished::remove_leftovers(&channel.path()));
                Unfinished::remove_leftovers(&folder);
            };
            // What stays is no more than a file too many.
            drop(tokio::task::spawn_blocking(tidying).await);
        };
        self.tidied.get_or_init(tidying).await;
    }

    fn folder_of(&self, channel: ChannelId) -> PathBuf {
        match self.layout {
            Layout::Flat => self.folder.clone(),
            Layout::ByChannel => self.folder.join(plain(&self.channel_name(channel))),
        }
    }

    async fn save(&self, request: &Request, parcel: Parcel, posting: &Posting) -> Result<Delivered, Failure> {
        // An answer that was begun keeps its number, so that its files take the place of those that stand there.
        let begun = posting.earlier().and_then(|intent| intent.posted.first());
        let number = match begun {
            Some(message) => message.get(),
            None => self.next_answer().await,
        };
        let messages: Vec<MessageId> = NonZeroU64::new(number).map(MessageId::new).into_iter().collect();
        posting.begin(request.destination.channel, 1, messages.clone()).await?;
        self.tidy().await;
        let folder = self.folder_of(request.destination.channel);
        tokio::fs::create_dir_all(&folder)
            .await
            .map_err(|error| Failure::ours(format!("cannot create {}: {error}", folder.display())))?;
        let mut files = Vec::with_capacity(parcel.files.len());
        for file in parcel.files {
            let name = match self.layout {
                Layout::Flat => file.name,
                Layout::ByChannel => format!("{number}-{}", file.name),
            };
            let path = folder.join(name);
            file.made.write_to(&path).await?;
            let (facts, times) = (file.made.facts.clone(), file.made.times);
            let (kind, alt, quoted) = (file.kind, file.alt, file.quoted);
            files.push(SavedFile { path, kind, alt, quoted, facts, times });
        }
        let delivered = Delivered {
            front_end: FrontEnd::Console,
            channel: request.destination.channel,
            messages,
            at: self.clock.now(),
        };
        let (receipt, read) = Receipt::new();
        let arrival = Arrival {
            request: request.clone(),
            delivered: delivered.clone(),
            post: parcel.post,
            author: parcel.author,
            text: parcel.text,
            spoiler: parcel.spoiler,
            files,
            missing: parcel.missing,
            receipt,
        };
        if self.say(Event::Delivered(Box::new(arrival)), read).await == Telling::Settled {
            Ok(delivered)
        } else {
            // The files take each other's place in the next attempt, which may be that of the next process.
            Err(Failure::Undelivered { what: "nobody listens".to_owned(), retry_after: None })
        }
    }

    /// Tells an event to whoever reads them; whether somebody did.
    async fn say(&self, event: Event, read: oneshot::Receiver<()>) -> Telling {
        if self.events.send(event).await.is_err() {
            return Telling::Later(None);
        }
        // It ends by being dropped, which is no failure; and one who stopped to read holds nobody up.
        if self.patient && timeout(READING, read).await.is_err() {
            return Telling::Later(None);
        }
        Telling::Settled
    }
}

impl Delivery for Terminal {
    fn limit(&self, _: &Destination) -> LimitClass {
        self.limit
    }

    fn place(&self, _: &Destination) -> Place {
        Place::Ordinary
    }

    fn progress(&self, request: &Request, stage: Stage, _: Sight) {
        // Progress that nobody has time for is no loss.
        drop(self.events.try_send(Event::Stage(request.id, stage)));
    }

    fn deliver<'a>(
        &'a self,
        request: &'a Request,
        parcel: Parcel,
        posting: &'a Posting,
    ) -> BoxFuture<'a, Result<Delivered, Failure>> {
        self.save(request, parcel, posting).boxed()
    }

    fn tell<'a>(&'a self, request: &'a Request, notice: Notice) -> BoxFuture<'a, Telling> {
        let (receipt, read) = Receipt::new();
        self.say(Event::Told(request.clone(), notice, receipt), read).boxed()
    }
}

/// The person of this name.
pub fn user(name: &str) -> UserId {
    UserId::new(number_of(name))
}

/// The largest number that a file in one of the folder's channels begins with; 0 when there is none.
fn last_answer(folder: &Path) -> u64 {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries(folder)
        .flat_map(|channel| entries(&channel.path()))
        .filter_map(|file| number_of_answer(&file.file_name()))
        .max()
        .unwrap_or(0)
}

/// When a file was written last, in milliseconds since 1970; `None` when nobody can say.
fn written_at(file: &std::fs::DirEntry) -> Option<u64> {
    let written = file.metadata().and_then(|facts| facts.modified()).ok()?;
    let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// The number of the answer that a file of this name belongs to.
fn number_of_answer(name: &OsStr) -> Option<u64> {
    name.to_str()?.split_once('-')?.0.parse().ok()
}

/// Bytes of a folder's name.
const MOST_BYTES: usize = 200;

/// A name as part of a path: letters, digits, `-` and `_`; another name where nothing is left.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).take(64) {
        // File systems count bytes, most of them up to 255.
        if plain.len().saturating_add(c.len_utf8()) > MOST_BYTES {
            break;
        }
        plain.push(c);
    }
    if plain.is_empty() { "channel".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_into_no_other_folder() {
        for (name, expected) in
            [("general", "general"), ("../etc", "etc"), ("/", "channel"), ("a b/c", "abc")]
        {
            assert_eq!(plain(name), expected);
        }
        assert_eq!(plain(&"x".repeat(100)).len(), 64);
        assert_eq!(plain(&"\u{20000}".repeat(100)).len(), MOST_BYTES);
    }

    #[test]
    fn answers_are_counted_on_from_earlier_runs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_answer(folder.path()), 0);
        assert_eq!(last_answer(&folder.path().join("not there")), 0);
        for file in ["general/7-ann-20-1.mp4", "cats/12-bob-21-1.jpg", "cats/notes.txt", "cats/x-99.mp4"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        assert_eq!(last_answer(folder.path()), 12);
    }
}

//! The operator's side: asks the service that has the queue, or does it alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::clock::{Clock, instant};
use crate::config::{Config, QueueBackend};
use crate::domain::RequestId;
use crate::frontend::operator::SOCKET;
use crate::frontend::operator::clerk::Clerk;
use crate::frontend::operator::wire::{Ask, Fate, Job, NoWords};
use crate::queue::{
    BookSettings, EmbeddedQueue, EmbeddedSettings, Filter, JobId, JobResult, MemoryQueue, OpenError, Queue,
    QueueError, QueueHealth, Stats,
};

/// Somebody who looks after the jobs of a queue.
#[derive(Debug)]
pub struct Operator {
    way: Way,
    /// Why nothing can be changed.
    only_looks: Option<String>,
    /// What was found when the queue was opened.
    warnings: Vec<String>,
}

#[derive(Debug)]
enum Way {
    #[cfg(unix)]
    Service(service::Service),
    Alone(Clerk),
}

/// Why an operator's wish was not fulfilled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// The service has the queue, and its socket cannot be used.
    #[error("cannot speak with the service that has the queue")]
    Service(#[source] std::io::Error),
    /// A service did not answer in time. What was asked for may have been done.
    #[error("the service that has the queue does not answer; look again what was done")]
    Silent,
    /// The service did not do it.
    #[error("the service that has the queue says: {0}")]
    Refused(String),
    /// Some process has the queue, and does not listen.
    #[error("the queue in {folder} is in use, and nobody answers at its socket")]
    InUse {
        /// The folder.
        folder: String,
    },
    /// The queue cannot be opened.
    #[error(transparent)]
    Open(OpenError),
    /// The queue can be looked into and not changed.
    #[error("nothing can be changed: {0}")]
    OnlyLooks(String),
    /// The queue did not do it.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Where the store should be is something else.
    #[error("{0} is no folder; see store.path")]
    NoFolder(String),
    /// There is no thread to open the queue on.
    #[error("the queue cannot be opened: {0}")]
    Thread(String),
}

impl Operator {
    /// Reaches the queue of a configuration: through the service that has it, or else by opening it, which counts as a
    /// start after the end of the last process. A queue that was never begun, or is not kept, is an empty one.
    ///
    /// # Errors
    /// When some process has the queue and does not answer, or it cannot be opened.
    pub async fn reach(config: &Config, clock: &Clock) -> Result<Self, OperatorError> {
        let folder = config.store.path.as_path();
        if tokio::fs::metadata(folder).await.is_ok_and(|facts| !facts.is_dir()) {
            return Err(OperatorError::NoFolder(folder.display().to_string()));
        }
        let book = BookSettings { max_attempts: config.queue.max_attempts, ..BookSettings::default() };
        let until = instant().checked_add(STARTING).unwrap_or_else(instant);
        loop {
            if let Some(operator) = Self::connect(folder).await? {
                return Ok(operator);
            }
            if config.queue.backend == QueueBackend::Memory || !EmbeddedQueue::is_in(folder) {
                let empty = MemoryQueue::new(book, clock.clone());
                return Ok(Self::alone(Arc::new(empty), clock.clone()));
            }
            let settings = EmbeddedSettings { book, ..EmbeddedSettings::new(folder.to_owned()) };
            let opening = {
                let (settings, clock) = (settings.clone(), clock.clone());
                tokio::task::spawn_blocking(move || EmbeddedQueue::open(settings, clock))
            };
            match opening.await.map_err(|error| OperatorError::Thread(error.to_string()))? {
                Ok(queue) => {
                    let warnings = warnings(&queue.health());
                    return Ok(Self { warnings, ..Self::alone(Arc::new(queue), clock.clone()) });
                }
                // A service that is just starting listens soon, and another operator is soon done.
                Err(OpenError::InUse { .. }) if instant() < until => sleep(LOOK).await,
                Err(OpenError::InUse { .. }) => {
                    return Err(OperatorError::InUse { folder: folder.display().to_string() });
                }
                Err(error) => return Self::look(settings, clock, error).await,
            }
        }
    }

    /// What stands in a queue that cannot be opened for changes, as on a disk that is read-only.
    async fn look(
        settings: EmbeddedSettings,
        clock: &Clock,
        error: OpenError,
    ) -> Result<Self, OperatorError> {
        let looking = {
            let clock = clock.clone();
            tokio::task::spawn_blocking(move || EmbeddedQueue::look(settings, clock))
        };
        match looking.await.map_err(|error| OperatorError::Thread(error.to_string()))? {
            Ok(queue) => Ok(Self {
                warnings: vec![format!("{error}; this is what stands in it")],
                only_looks: Some(error.to_string()),
                ..Self::alone(Arc::new(queue), clock.clone())
            }),
            Err(_) => Err(OperatorError::Open(error)),
        }
    }

    /// Speaks with the service whose store is in `folder`; `None` when none listens there.
    ///
    /// # Errors
    /// When it cannot be spoken with, as for another user.
    pub async fn connect(folder: &Path) -> Result<Option<Self>, OperatorError> {
        #[cfg(unix)]
        {
            let service = service::Service::connect(&folder.join(SOCKET)).await?;
            Ok(service.map(|service| Self {
                way: Way::Service(service),
                only_looks: None,
                warnings: Vec::new(),
            }))
        }
        #[cfg(not(unix))]
        {
            let _ = (folder, SOCKET);
            Ok(None)
        }
    }

    /// Works on a queue of this process.
    pub fn alone(queue: Arc<dyn Queue>, clock: Clock) -> Self {
        let way = Way::Alone(Clerk { queue, clock, waiting: None });
        Self { way, only_looks: None, warnings: Vec::new() }
    }

    /// The jobs that are meant, the oldest first, at most [`MOST_JOBS`](super::MOST_JOBS), each with its last attempt.
    ///
    /// # Errors
    /// What the queue or the service says.
    pub async fn list(&mut self, filter: Filter) -> Result<Vec<Job>, OperatorError> {
        match &mut self.way {
            #[cfg(unix)]
            Way::Service(service) => service.ask(&Ask::List(filter)).await,
            Way::Alone(clerk) => Ok(clerk.list(filter).await?),
        }
    }

    /// One job with everything that is known about it; `None` when there is none.
    ///
    /// # Errors
    /// What the queue or the service says.
    pub async fn show(&mut self, id: JobId) -> Result<Option<Job>, OperatorError> {
        match &mut self.way {
            #[cfg(unix)]
            Way::Service(service) => service.ask(&Ask::Show(id)).await,
            Way::Alone(clerk) => Ok(clerk.show(id).await?),
        }
    }

    /// The job of a request with everything that is known about it; `None` when it has none, as when it is done.
    ///
    /// # Errors
    /// What the queue or the service says.
    pub async fn find(&mut self, request: RequestId) -> Result<Option<Job>, OperatorError> {
        let filter = Filter { request: Some(request), most: 1, ..Filter::default() };
        match self.list(filter).await?.first() {
            Some(job) => self.show(job.id).await,
            None => Ok(None),
        }
    }

    /// How the job of a request ended; `None` when it did not, or too long ago.
    ///
    /// # Errors
    /// What the queue or the service says.
    pub async fn result(&mut self, request: RequestId) -> Result<Option<JobResult>, OperatorError> {
        match &mut self.way {
            #[cfg(unix)]
            Way::Service(service) => service.ask(&Ask::Result(request)).await,
            Way::Alone(clerk) => Ok(clerk.result(request).await?),
        }
    }

    /// How many jobs there are of each kind.
    ///
    /// # Errors
    /// What the queue or the service says.
    pub async fn stats(&mut self) -> Result<Stats, OperatorError> {
        match &mut self.way {
            #[cfg(unix)]
            Way::Service(service) => service.ask(&Ask::Stats(NoWords {})).await,
            Way::Alone(clerk) => Ok(clerk.stats().await?),
        }
    }

    /// Has dead jobs run again; what became of each.
    ///
    /// # Errors
    /// What the service says; some may have been done then.
    pub async fn retry(&mut self, ids: &[JobId]) -> Result<Vec<Fate>, OperatorError> {
        self.may_change()?;
        match &mut self.way {
            #[cfg(unix)]
            Way::Service(service) => service.each(ids, Ask::Retry).await,
            Way::Alone(clerk) => Ok(clerk.retry(ids).await),
        }
    }

    /// Has jobs forgotten that are not leased; what became of each. Who waits for one is told, if the service runs.
    ///
    /// # Errors
    /// What the service says; some may have been done then.
    pub async fn drop_jobs(&mut self, ids: &[JobId]) -> Result<Vec<Fate>, OperatorError> {
        self.may_change()?;
        match &mut self.way {
            #[cfg(unix)]
            Way::Service(service) => service.each(ids, Ask::Drop).await,
            Way::Alone(clerk) => Ok(clerk.drop_jobs(ids).await),
        }
    }

    fn may_change(&self) -> Result<(), OperatorError> {
        self.only_looks.as_ref().map_or(Ok(()), |why| Err(OperatorError::OnlyLooks(why.clone())))
    }

    /// What is wrong with a queue that was opened for this, each in one line. A running service has it in its log.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Ends. A queue that was opened for this is closed.
    pub async fn close(self) {
        match self.way {
            #[cfg(unix)]
            Way::Service(_) => {}
            Way::Alone(clerk) => clerk.queue.close().await,
        }
    }
}

fn warnings(health: &QueueHealth) -> Vec<String> {
    let moved = health.moved_aside.as_ref().map(|aside| {
        format!("the queue's file was damaged and begins anew; the old one is {} now", aside.display())
    });
    let missing = health.file_was_missing.then(|| {
        "the queue's file is missing although there were jobs in it; they are lost unless you have it elsewhere".to_owned()
    });
    let broken = (health.broken_records > 0)
        .then(|| format!("{} records of the queue cannot be read and were put aside", health.broken_records));
    [moved, missing, broken].into_iter().flatten().collect()
}

/// How long a process that has the queue may take until it listens.
const STARTING: Duration = Duration::from_secs(2);
/// How often that is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Through the socket.
#[cfg(unix)]
mod service {
    use std::io::{self, ErrorKind};
    use std::path::Path;
    use std::time::Duration;

    use serde::de::DeserializeOwned;
    use tokio::io::BufReader;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use crate::frontend::operator::client::OperatorError;
    use crate::frontend::operator::elsewhere;
    use crate::frontend::operator::line;
    use crate::frontend::operator::wire::{Ask, Fate, Told};
    use crate::queue::JobId;

    /// A running service.
    #[derive(Debug)]
    pub(super) struct Service(BufReader<UnixStream>);

    impl Service {
        pub(super) async fn connect(socket: &Path) -> Result<Option<Self>, OperatorError> {
            let service = Self::connect_to(socket).await?;
            let Some(other) = elsewhere::name(socket).filter(|_| service.is_none()) else {
                return Ok(service);
            };
            // Anybody can take such a name.
            let service = Self::connect_to(&other).await?;
            Ok(service.filter(|service| elsewhere::is_theirs(service.0.get_ref(), socket)))
        }

        async fn connect_to(socket: &Path) -> Result<Option<Self>, OperatorError> {
            match timeout(ANSWER_WITHIN, UnixStream::connect(socket)).await {
                Ok(Ok(stream)) => Ok(Some(Self(BufReader::new(stream)))),
                // A path that is no socket's, or too long for one, has nobody behind it either.
                Ok(Err(error))
                    if matches!(
                        error.kind(),
                        ErrorKind::NotFound
                            | ErrorKind::ConnectionRefused
                            | ErrorKind::NotADirectory
                            | ErrorKind::InvalidInput
                    ) =>
                {
                    Ok(None)
                }
                Ok(Err(error)) => Err(OperatorError::Service(error)),
                Err(_) => Err(OperatorError::Silent),
            }
        }

        /// Says one line and hears one.
        pub(super) async fn ask<T: DeserializeOwned>(&mut self, ask: &Ask) -> Result<T, OperatorError> {
            let answer = async {
                line::write(&mut self.0, ask).await?;
                line::read(&mut self.0, LONGEST_ANSWER).await
            };
            let line = timeout(ANSWER_WITHIN, answer).await.map_err(|_| OperatorError::Silent)?;
            let line = line.map_err(OperatorError::Service)?;
            let line = line.ok_or_else(|| OperatorError::Service(ErrorKind::UnexpectedEof.into()))?;
            match serde_json::from_slice(&line)
                .map_err(|error| OperatorError::Service(io::Error::from(error)))?
            {
                Told::Ok(answer) => Ok(answer),
                Told::Error(why) => Err(OperatorError::Refused(why)),
            }
        }

        /// The same for many jobs, some at a time.
        pub(super) async fn each(
            &mut self,
            ids: &[JobId],
            ask: fn(Vec<JobId>) -> Ask,
        ) -> Result<Vec<Fate>, OperatorError> {
            let mut fates = Vec::with_capacity(ids.len());
            for some in ids.chunks(AT_ONCE) {
                fates.extend(self.ask::<Vec<Fate>>(&ask(some.to_vec())).await?);
            }
            Ok(fates)
        }
    }

    /// How long the service may take for one answer. It asks its queue for each job, which answers within seconds.
    const ANSWER_WITHIN: Duration = Duration::from_secs(60);
    /// Bytes of one answer at most. A thousand jobs, each with the four thousand bytes of its last attempt, which can be
    /// six times as long in JSON, have 26 million.
    const LONGEST_ANSWER: usize = 32 << 20;
    /// Jobs in one line.
    const AT_ONCE: usize = 256;
}

//! What can be set about the sources, with defaults that suit a small bot.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A source of posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceName {
    /// VxTwitter's API.
    VxTwitter,
    /// FxTwitter's API.
    FxTwitter,
    /// What X gives to pages that embed a post.
    Syndication,
    /// The program yt-dlp.
    YtDlp,
}

impl SourceName {
    /// All sources.
    pub const ALL: [Self; 4] = [Self::VxTwitter, Self::FxTwitter, Self::Syndication, Self::YtDlp];

    /// A short stable code for the configuration, logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::VxTwitter => "vxtwitter",
            Self::FxTwitter => "fxtwitter",
            Self::Syndication => "syndication",
            Self::YtDlp => "ytdlp",
        }
    }

    /// The source with this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.code() == code)
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Everything about the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    /// Which sources are asked, the best first. A source that is not named is never asked; naming one twice means
    /// its first place.
    /// By default as in the configuration: VxTwitter, FxTwitter, syndication, yt-dlp.
    pub order: Vec<SourceName>,
    /// How long one source may be silent before the next is asked beside it. Default 1.5 s.
    pub hedge_delay: Duration,
    /// VxTwitter; by default `https://api.vxtwitter.com`, 10 s.
    pub vxtwitter: WebSourceSettings,
    /// FxTwitter; by default `https://api.fxtwitter.com`, 10 s.
    pub fxtwitter: WebSourceSettings,
    /// X's syndication; by default `https://cdn.syndication.twimg.com`, 10 s.
    pub syndication: WebSourceSettings,
    /// yt-dlp.
    pub ytdlp: YtDlpSettings,
    /// When a source in trouble is left alone.
    pub breaker: BreakerSettings,
    /// How long answers are remembered.
    pub resolver: ResolverSettings,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            order: vec![
                SourceName::VxTwitter,
                SourceName::FxTwitter,
                SourceName::Syndication,
                SourceName::YtDlp,
            ],
            hedge_delay: Duration::from_millis(1_500),
            vxtwitter: WebSourceSettings::at("https://api.vxtwitter.com"),
            fxtwitter: WebSourceSettings::at("https://api.fxtwitter.com"),
            syndication: WebSourceSettings::at("https://cdn.syndication.twimg.com"),
            ytdlp: YtDlpSettings::default(),
            breaker: BreakerSettings::default(),
            resolver: ResolverSettings::default(),
        }
    }
}

/// A source that is asked over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSourceSettings {
    /// Where its paths begin: http or https, with or without a slash at the end, without query and fragment.
    pub base_url: String,
    /// How long one look-up may take, with all of its requests.
    pub timeout: Duration,
}

impl WebSourceSettings {
    /// The source at this address, with ten seconds for a look-up.
    pub fn at(base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), timeout: Duration::from_secs(10) }
    }
}

/// The program yt-dlp and how it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YtDlpSettings {
    /// A path, or a name that is looked for on the `PATH`. Default `yt-dlp`.
    pub program: PathBuf,
    /// The address that it is given, with `{id}` where the number of the post goes. Default X's own.
    pub address: String,
    /// Which of its extractors may be used (its `--use-extractors`). Default `twitter` alone: without a bound it
    /// follows a link in a post's words to wherever a stranger lets it lead.
    pub extractors: String,
    /// How long one look-up may take, with the wait for a free place. Default 30 s.
    pub timeout: Duration,
    /// How long one of its own connections may be silent. Default 10 s.
    pub socket_timeout: Duration,
    /// How many of them run at once, at least one. Default 2: each is a Python interpreter of some 60 MiB.
    pub processes: usize,
}

impl Default for YtDlpSettings {
    fn default() -> Self {
        Self {
            program: PathBuf::from("yt-dlp"),
            address: "https://x.com/i/status/{id}".to_owned(),
            extractors: "twitter".to_owned(),
            timeout: Duration::from_secs(30),
            socket_timeout: Duration::from_secs(10),
            processes: 2,
        }
    }
}

/// When a source in trouble is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// So many failures in a row open the breaker; zero counts as one. Default 5.
    pub failures: u32,
    /// The first pause; each further one is twice as long. Default 5 s.
    pub first_pause: Duration,
    /// No pause grows beyond this. Default 5 min.
    pub longest_pause: Duration,
    /// A source that asks for a longer pause than this gets this. Default 1 h.
    pub longest_wish: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 5,
            first_pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(300),
            longest_wish: Duration::from_secs(3_600),
        }
    }
}

/// How long answers are remembered. Each time is made up to a tenth shorter or longer by chance, so that what was
/// learnt together is not forgotten together; zero means not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolverSettings {
    /// A post with all of its media. Default 24 h.
    pub post_ttl: Duration,
    /// A post of which the source that answered sees only a part. Default 5 min.
    pub partial_ttl: Duration,
    /// That a post is gone. Default 5 min.
    pub gone_ttl: Duration,
    /// That a post is only for those who are logged in. Default 5 min.
    pub login_ttl: Duration,
    /// So many answers are held in memory; one of more than 4 KiB counts as several. Default 10 000.
    pub capacity: u64,
}

impl Default for ResolverSettings {
    fn default() -> Self {
        let five_minutes = Duration::from_secs(300);
        Self {
            post_ttl: Duration::from_secs(24 * 3_600),
            partial_ttl: five_minutes,
            gone_ttl: five_minutes,
            login_ttl: five_minutes,
            capacity: 10_000,
        }
    }
}

/// Settings that name no usable source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceSettingsError {
    /// There is nobody to ask.
    #[error("the order of sources names none")]
    NoSource,
    /// An address that nothing can be asked at.
    #[error("the address of {source_name} cannot be used: \"{address}\" ({why})")]
    Address {
        /// Whose address.
        source_name: SourceName,
        /// The address as it was given.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

//! Every key: its kind, its default and the reason for it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use crate::config::choice::{EnginePreset, QueueBackend, RateAlgorithm, SensitivePolicy, SourceChoice};
use crate::config::kind::{
    AnyPath, BaseUrl, Bind, Choice, Count, Flag, Host, Kind, List, Optional, PlacePath, SecretText, Size,
    Time,
};
use crate::config::layers::Layers;
use crate::config::secret::Secret;

/// What is known about a key.
pub(super) struct Key {
    /// The key, with its section.
    pub(super) name: &'static str,
    /// What it is for, and why the default is what it is; sentences.
    pub(super) reason: &'static str,
    /// Its default as it would be written in a file.
    pub(super) default: String,
    /// What is allowed.
    pub(super) allowed: String,
}

/// All keys in the order of the example.
pub(super) fn keys() -> std::slice::Iter<'static, Key> {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(Config::keys);
    KEYS.iter()
}

/// Defines the sections: for each key a field with the type of its kind, the reason being its documentation.
macro_rules! sections {
    ($($(#[doc = $doc:literal])+ $section:ident: $name:ident {
        $($field:ident, $key:literal: $kind:ty => $value:ty = $default:expr; $reason:literal;)+
    })+) => {
        /// Every setting. The default is what holds when nothing is set.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Config {
            $($(#[doc = $doc])+ pub $section: $name,)+
        }

        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $(#[doc = $reason] pub $field: $value,)+
            }

            impl Default for $name {
                fn default() -> Self {
                    Self { $($field: $default,)+ }
                }
            }
        )+

        impl Config {
            /// Reads every key.
            pub(super) fn read(layers: &mut Layers<'_>) -> Self {
                let default = Self::default();
                Self {
                    $($section: $name {
                        $($field: layers.read::<$kind>(
                            concat!(stringify!($section), ".", $key),
                            default.$section.$field,
                        ),)+
                    },)+
                }
            }

            fn keys() -> Vec<Key> {
                let default = Self::default();
                vec![$($(Key {
                    name: concat!(stringify!($section), ".", $key),
                    reason: $reason,
                    default: <$kind>::show(&default.$section.$field),
                    allowed: <$kind>::allowed(),
                },)+)+]
            }
        }
    };
}

sections! {
    /// What the bot needs to speak with Discord.
    discord: Discord {
        token, "token": Optional<SecretText> => Option<Secret> = None;
            "The bot's token. It is never logged; a file or the variable keeps it out of backups of this one.";
        token_file, "token_file": Optional<AnyPath> => Option<PathBuf> = None;
            "A file that holds the token and nothing else, as secret managers provide it.";
        api_base, "api_base": Optional<BaseUrl> => Option<String> = None;
            "Where Discord's REST interface is, for a proxy or a compatible server; the gateway is asked there. Empty is Discord itself.";
        message_content, "message_content": Flag => bool = false;
            "Ask for the message content intent, which must be enabled in the developer portal too. Servers can then have links answered without a mention.";
    }

    /// Who is asked about a post.
    sources: Sources {
        order, "order": List<Choice<SourceChoice>> => Vec<SourceChoice> =
            vec![SourceChoice::Vxtwitter, SourceChoice::Fxtwitter, SourceChoice::Syndication, SourceChoice::Ytdlp];
            "Who is asked, the first one first; who is left out is never asked. The program comes last since starting it takes seconds.";
        hedge_delay, "hedge_delay": Time<10, 60_000> => Duration = Duration::from_millis(1500);
            "How long a source may be silent before the next one is asked beside it. Short, since asking twice costs less than waiting.";
        vxtwitter_base_url, "vxtwitter.base_url": BaseUrl => String = "https://api.vxtwitter.com".to_owned();
            "Where VxTwitter is; it can be hosted by oneself.";
        vxtwitter_timeout, "vxtwitter.timeout": Time<1, 600_000> => Duration = Duration::from_secs(10);
            "How long VxTwitter may take to answer.";
        fxtwitter_base_url, "fxtwitter.base_url": BaseUrl => String = "https://api.fxtwitter.com".to_owned();
            "Where FxTwitter is; it can be hosted by oneself.";
        fxtwitter_timeout, "fxtwitter.timeout": Time<1, 600_000> => Duration = Duration::from_secs(10);
            "How long FxTwitter may take to answer.";
        syndication_base_url, "syndication.base_url": BaseUrl => String = "https://cdn.syndication.twimg.com".to_owned();
            "Where X's syndication service is.";
        syndication_timeout, "syndication.timeout": Time<1, 600_000> => Duration = Duration::from_secs(10);
            "How long the syndication service may take to answer.";
        ytdlp_program, "ytdlp.program": AnyPath => PathBuf = PathBuf::from("yt-dlp");
            "The yt-dlp program: a path, or a name that is looked for in PATH.";
        ytdlp_timeout, "ytdlp.timeout": Time<1, 600_000> => Duration = Duration::from_secs(45);
            "How long yt-dlp may take. It asks several pages one after the other, so it has longer than the others.";
    }

    /// How media are fetched.
    download: Download {
        timeout, "timeout": Time<1, 86_400_000> => Duration = Duration::from_secs(180);
            "How long one medium may take to download.";
        idle_timeout, "idle_timeout": Time<1, 600_000> => Duration = Duration::from_secs(15);
            "How long a download may stand still before it is broken off and resumed.";
        max_bytes, "max_bytes": Size<1, 1_099_511_627_776> => u64 = 512 << 20;
            "The largest medium that is fetched. What is downloaded is held in memory until it is made to fit.";
        allow_hosts, "allow_hosts": List<Host> => Vec<String> = vec!["*.twimg.com".to_owned()];
            "The hosts that media are fetched from. Addresses in answers of a source are not trusted, so no others are asked.";
        allow_private, "allow_private": Flag => bool = false;
            "Also ask hosts with private and loopback addresses, for tests and for mirrors at home. It does not widen allow_hosts.";
    }

    /// How media are made to fit.
    engine: Engine {
        threads, "threads": Count<0, 1024> => u32 = 0;
            "Threads of the media engine; 0 is one for each processor.";
        queue_depth, "queue_depth": Count<1, 65_536> => u32 = 64;
            "How many files may wait for a thread before the engine says that it is busy.";
        preset, "preset": Choice<EnginePreset> => EnginePreset = EnginePreset::Balanced;
            "How much effort the encoder spends. fast takes about two thirds of the time of balanced, best about 1.4 times as long.";
        max_pixels, "max_pixels": Count<1, 4_294_967_295> => u32 = 8192 * 8192;
            "The most pixels of one picture or frame. What a stranger's file unpacks to is bounded before it is unpacked.";
        max_duration, "max_duration": Time<1000, 86_400_000> => Duration = Duration::from_secs(3600);
            "The longest medium that is made to fit. Longer ones would not be watchable at the usual limits.";
        timeout, "timeout": Time<1, 86_400_000> => Duration = Duration::from_secs(600);
            "How long one file may take, waiting for a thread included.";
    }

    /// How results are posted.
    upload: Upload {
        default_limit, "default_limit": Size<1024, 1_073_741_824> => u64 = 10 << 20;
            "The most bytes of a posted file where nothing better is known. Discord took this much from everybody when this was written; what it really takes is learnt.";
        timeout, "timeout": Time<1, 86_400_000> => Duration = Duration::from_secs(120);
            "How long posting one message may take.";
    }

    /// What is not done twice.
    dedup: Dedup {
        processed_ttl, "processed_ttl": Time<1000, 31_536_000_000> => Duration = Duration::from_secs(86_400);
            "How long a repeated request is answered with a link to what was posted. After a day it has scrolled away.";
        capacity, "capacity": Count<1, 100_000_000> => u32 = 100_000;
            "How many deliveries are remembered in memory; older ones are looked up in the store.";
    }

    /// What outlives the process.
    store: Store {
        path, "path": PlacePath => PathBuf = PathBuf::new();
            "The folder for everything that outlives the process. Empty is azalea in your data folder (XDG_DATA_HOME or ~/.local/share).";
        batch_size, "batch_size": Count<1, 100_000> => u32 = 100;
            "How many records are written at once; each write waits for the disk.";
        flush_interval, "flush_interval": Time<10, 3_600_000> => Duration = Duration::from_secs(2);
            "How long a record waits for a full batch: what a crash can cost.";
    }

    /// What is kept to save work.
    cache: Cache {
        resolver_ttl, "resolver_ttl": Time<1000, 31_536_000_000> => Duration = Duration::from_secs(86_400);
            "How long a source's answer about a post is good. Posts seldom change, but the addresses of their media can.";
        negative_ttl, "negative_ttl": Time<1000, 31_536_000_000> => Duration = Duration::from_secs(300);
            "How long it is believed that a post is gone or needs a login. Short, since a person may undo either.";
        artifact_bytes, "artifact_bytes": Size<0, 1_125_899_906_842_624> => u64 = 2 << 30;
            "How much disk finished files may take; 0 keeps none.";
        artifact_ttl, "artifact_ttl": Time<1000, 31_536_000_000> => Duration = Duration::from_secs(7 * 86_400);
            "How long a finished file is kept.";
    }

    /// Where accepted requests wait.
    queue: Queue {
        backend, "backend": Choice<QueueBackend> => QueueBackend = QueueBackend::Embedded;
            "Where jobs are kept. What is accepted survives a crash only when it is not in memory alone.";
        url, "url": Optional<SecretText> => Option<Secret> = None;
            "The database that several machines share. Neither of the backends that there are uses it. It can hold a password, so it is never logged.";
        max_attempts, "max_attempts": Count<1, 100> => u32 = 5;
            "How often a job is tried before it is put aside as dead.";
        workers, "workers": Count<1, 1024> => u32 = 4;
            "How many files are fetched and made at once. Who waits for a file that is being made takes no place.";
        lease, "lease": Time<1000, 86_400_000> => Duration = Duration::from_secs(900);
            "How long a worker may hold a job without a sign of progress. Longer than the slowest stage; unless it is set, it grows with the time-outs.";
    }

    /// How often people may ask.
    rate_limit: RateLimit {
        max_requests, "max_requests": Count<0, 1_000_000> => u32 = 30;
            "The most requests of one person within the window; 0 lifts all limits. Repeated requests are cheap, so this stops floods and nobody else.";
        window, "window": Time<1, 86_400_000> => Duration = Duration::from_secs(60);
            "The window in which requests are counted.";
        algorithm, "algorithm": Choice<RateAlgorithm> => RateAlgorithm = RateAlgorithm::Fixed;
            "How they are counted: fixed begins a window with the first request, gcra gives requests back one by one.";
        channel_multiple, "channel_multiple": Count<0, 10_000> => u32 = 5;
            "How many times as many requests one channel may make; 0 lifts the limit of channels.";
        guild_multiple, "guild_multiple": Count<0, 10_000> => u32 = 20;
            "How many times as many requests one server may make; 0 lifts the limit of servers.";
    }

    /// Who may see what.
    audience: Audience {
        sensitive, "sensitive": Choice<SensitivePolicy> => SensitivePolicy = SensitivePolicy::Spoiler;
            "What happens to sensitive media outside of age-restricted channels. They are never shown there without a spoiler.";
    }

    /// What is counted.
    metrics: Metrics {
        enabled, "enabled": Flag => bool = true;
            "Count and time what is done. Counting allocates and locks nothing.";
        flush_interval, "flush_interval": Time<1000, 86_400_000> => Duration = Duration::from_secs(60);
            "How often what was counted is put into the store for the history.";
    }

    /// The pages for the operator.
    web: Web {
        bind, "bind": Bind => Option<SocketAddr> =
            Some((Ipv4Addr::LOCALHOST, 8686).into());
            "Where health, metrics and the dashboard are served. This machine alone unless you say otherwise.";
        token, "token": Optional<SecretText> => Option<Secret> = None;
            "What a reader of those pages has to know; empty asks nobody. It is never logged.";
    }
}

//! Settings that are one of a few words.

/// One of a few words.
pub(super) trait Choices: Copy + PartialEq + 'static {
    const ALL: &'static [Self];

    fn word(self) -> &'static str;
}

macro_rules! choices {
    ($(#[doc = $doc:literal])+ $name:ident { $(#[doc = $help:literal] $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $help] $variant,)+
        }

        impl $name {
            /// The word that stands for it in a configuration.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl Choices for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                self.name()
            }
        }
    };
}

choices! {
    /// Someone who can be asked about a post.
    SourceChoice {
        /// VxTwitter.
        Vxtwitter = "vxtwitter",
        /// FxTwitter.
        Fxtwitter = "fxtwitter",
        /// X's own syndication service.
        Syndication = "syndication",
        /// The program yt-dlp.
        Ytdlp = "ytdlp",
    }
}

choices! {
    /// How much effort the encoder spends.
    EnginePreset {
        /// Least time.
        Fast = "fast",
        /// The default.
        Balanced = "balanced",
        /// Best picture for the bytes.
        Best = "best",
    }
}

choices! {
    /// Where jobs are kept.
    QueueBackend {
        /// In a file, so that they survive the process.
        Embedded = "embedded",
        /// In memory alone.
        Memory = "memory",
    }
}

choices! {
    /// How requests are counted.
    RateAlgorithm {
        /// In windows that begin with the first request.
        Fixed = "fixed",
        /// Evenly: each request is given back on its own (the generic cell rate algorithm).
        Gcra = "gcra",
    }
}

choices! {
    /// What happens to sensitive media outside of age-restricted channels.
    SensitivePolicy {
        /// They are delivered behind a spoiler.
        Spoiler = "spoiler",
        /// They are not delivered.
        Refuse = "refuse",
    }
}

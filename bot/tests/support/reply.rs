//! What the server says to one request, as a script.

use std::sync::Arc;
use std::time::Duration;

/// What the server says to one request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Arc<[u8]>,
    /// Honours Range and If-Range.
    pub(crate) ranges: bool,
    pub(crate) length: Length,
    pub(crate) pace: Option<Pace>,
    pub(crate) end: End,
}

/// What the head says about the body's length.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    True,
    /// This number, whatever is sent.
    Claimed(u64),
    /// Nothing: the body ends with the connection.
    Unsaid,
    /// Nothing: the body comes in chunks.
    Chunked,
}

/// How fast the body goes out: this many bytes per pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) bytes: usize,
    pub(crate) every: Duration,
}

/// What happens to a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Whole,
    /// The connection is closed after so many bytes of the body.
    CutAfter(usize),
    /// After so many bytes nothing more comes, and the connection stays open.
    StallAfter(usize),
    /// Nothing comes at all, not even a head.
    Silent,
}

impl Reply {
    /// Status 200 and this body.
    pub(crate) fn ok(body: impl Into<Arc<[u8]>>) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: body.into(),
            ranges: false,
            length: Length::True,
            pace: None,
            end: End::Whole,
        }
    }

    /// A file as a good CDN gives it: `video/mp4`, ranges, a strong tag.
    pub(crate) fn file(body: impl Into<Arc<[u8]>>) -> Self {
        Self::ok(body).ranges().header("Content-Type", "video/mp4").header("ETag", "\"v1\"")
    }

    /// This status and an empty body.
    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::ok(&[][..]) }
    }

    /// A redirect to this place.
    pub(crate) fn redirect(to: &str) -> Self {
        Self::status(302).header("Location", to)
    }

    /// Never answers.
    pub(crate) fn silent() -> Self {
        Self { end: End::Silent, ..Self::status(200) }
    }

    /// Sets a header, in place of an earlier one of the same name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header out.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn ranges(self) -> Self {
        Self { ranges: true, ..self }
    }

    pub(crate) fn no_ranges(self) -> Self {
        Self { ranges: false, ..self }
    }

    pub(crate) fn length(self, length: Length) -> Self {
        Self { length, ..self }
    }

    pub(crate) fn cut_after(self, bytes: usize) -> Self {
        Self { end: End::CutAfter(bytes), ..self }
    }

    pub(crate) fn stall_after(self, bytes: usize) -> Self {
        Self { end: End::StallAfter(bytes), ..self }
    }

    /// About this many bytes per second, in fifty parts a second.
    pub(crate) fn bytes_per_second(self, bytes: usize) -> Self {
        let pace = Pace { bytes: (bytes / 50).max(1), every: Duration::from_millis(20) };
        Self { pace: Some(pace), ..self }
    }
}

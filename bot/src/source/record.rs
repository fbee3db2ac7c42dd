//! The bytes of a remembered answer: a version byte, then JSON.
//!
//! Version 1: `{"made": <ms since 1970>, "kept": {"post": …}}`, or `{"gone": "deleted"}` or
//! `"needs_login"` as `kept`. When it expires stands beside it in the store. A version that is not known is as good
//! as no record: the answer can be had again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::WallTime;
use crate::domain::{Failure, GoneReason, Post, PostId};

/// What may be remembered. There is no place for what may be otherwise later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The post.
    Post(Arc<Post>),
    /// It is gone.
    Gone(GoneReason),
    /// It is for those who are logged in.
    NeedsLogin,
}

impl Kept {
    /// What is answered with it.
    pub(super) fn answer(&self) -> Result<Arc<Post>, Failure> {
        match self {
            Self::Post(post) => Ok(Arc::clone(post)),
            Self::Gone(reason) => Err(Failure::Gone(*reason)),
            Self::NeedsLogin => Err(Failure::NeedsLogin),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Wire<P> {
    made: WallTime,
    kept: WireKept<P>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireKept<P> {
    Post(P),
    Gone(GoneReason),
    NeedsLogin,
}

/// The record of an answer; `None` when it cannot be written.
pub(super) fn encode(made: WallTime, kept: &Kept) -> Option<Vec<u8>> {
    let kept = match kept {
        Kept::Post(post) => WireKept::Post(post.as_ref()),
        Kept::Gone(reason) => WireKept::Gone(*reason),
        Kept::NeedsLogin => WireKept::NeedsLogin,
    };
    let mut bytes = vec![VERSION];
    serde_json::to_writer(&mut bytes, &Wire { made, kept }).ok()?;
    Some(bytes)
}

/// What a record holds about `post`; `None` when it is damaged, of another version or about another post.
pub(super) fn decode(bytes: &[u8], post: PostId) -> Option<(WallTime, Kept)> {
    let (version, json) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    let Wire { made, kept } = serde_json::from_slice::<Wire<Post>>(json).ok()?;
    let kept = match kept {
        WireKept::Post(kept) if kept.id != post => return None,
        WireKept::Post(kept) => Kept::Post(Arc::new(kept)),
        WireKept::Gone(reason) => Kept::Gone(reason),
        WireKept::NeedsLogin => Kept::NeedsLogin,
    };
    Some((made, kept))
}

const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::quorum::tests::{id, post};

    const MADE: WallTime = WallTime::from_millis(1_796_000_000_000);

    #[test]
    fn answers_survive_their_record() {
        for kept in [Kept::Post(Arc::new(post("hi"))), Kept::Gone(GoneReason::Suspended), Kept::NeedsLogin] {
            let bytes = encode(MADE, &kept).unwrap();
            assert_eq!(decode(&bytes, id()), Some((MADE, kept)));
        }
    }

    #[test]
    fn version_one_is_read() {
        let gone = b"\x01{\"made\":1796000000000,\"kept\":{\"gone\":\"deleted\"}}";
        assert_eq!(decode(gone, id()), Some((MADE, Kept::Gone(GoneReason::Deleted))));
        let old =
            b"\x01{\"made\":1796000000000,\"kept\":{\"post\":{\"id\":\"x:20\",\"author\":{\"name\":\"\",\
            \"handle\":\"\"},\"text\":\"hi\",\"sensitive\":false,\"media\":[]}}}";
        // Once, posts did not say who wrote what they quote.
        let Some((MADE, Kept::Post(read))) = decode(old, id()) else { panic!("it is a post") };
        assert_eq!((read.text.as_str(), read.quoted.len()), ("hi", 0));
        let login = b"\x01{\"made\":1796000000000,\"kept\":\"needs_login\"}";
        assert_eq!(decode(login, id()), Some((MADE, Kept::NeedsLogin)));
    }

    #[test]
    fn a_damaged_record_is_none() {
        let whole = encode(MADE, &Kept::Post(Arc::new(post("hi")))).unwrap();
        for cut in 0..whole.len() {
            assert_eq!(decode(&whole[..cut], id()), None, "cut at {cut}");
        }
        let mut newer = whole.clone();
        newer[0] = 2;
        assert_eq!(decode(&newer, id()), None);
        assert_eq!(decode(&whole, PostId::x("21").unwrap()), None, "it is about another post");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes, id());
        }
    }
}

//! What a post holds: its author, its words and its media with all their variants.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::id::PostId;
use crate::domain::keys::MediumIndex;

/// A post as a source described it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// Which post it is.
    pub id: PostId,
    /// Who wrote it.
    pub author: Author,
    /// Its words, without links to its own media. May be empty.
    pub text: String,
    /// The source says that its media are not for everybody.
    pub sensitive: bool,
    /// All of its media in the post's order, then those of the post that it quotes.
    pub media: Vec<Medium>,
    /// Who wrote the posts that media of other posts belong to, as far as the source says. Records of earlier
    /// versions do not have it.
    #[serde(default)]
    pub quoted: Vec<Quoted>,
}

impl Post {
    /// The media that answer a link to this post: its own, or those of the quoted post when it has none.
    pub fn answer(&self) -> impl Iterator<Item = &Medium> {
        let own = self.media.iter().any(|medium| !medium.is_quoted(self.id));
        self.media.iter().filter(move |medium| !own || !medium.is_quoted(self.id))
    }

    /// Who wrote the post that a medium belongs to; `None` when the source does not say.
    pub fn author_of(&self, medium: &Medium) -> Option<&Author> {
        if !medium.is_quoted(self.id) {
            return Some(&self.author);
        }
        self.quoted.iter().find(|quoted| quoted.id == medium.post).map(|quoted| &quoted.author)
    }
}

/// A post that another one shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// Which post it is.
    pub id: PostId,
    /// Who wrote it.
    pub author: Author,
}

/// Who wrote a post.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The name shown.
    pub name: String,
    /// The handle, without `@`.
    pub handle: String,
}

/// One photo, video or GIF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Medium {
    /// The post that it belongs to: another than the one asked for when it is quoted.
    pub post: PostId,
    /// Its place among the media of that post.
    pub index: MediumIndex,
    /// What it is.
    pub kind: MediumKind,
    /// Its description for those who cannot see it.
    pub alt: Option<String>,
    /// Its length; `None` for a photo, and where the source does not say.
    pub duration: Option<Duration>,
    /// Its size in pixels, as far as the source says.
    pub size: Option<PixelSize>,
    /// Everything it can be had as; never empty.
    pub variants: Vec<Variant>,
}

impl Medium {
    /// Whether it belongs to another post than `asked`, which quotes that one.
    pub fn is_quoted(&self, asked: PostId) -> bool {
        self.post != asked
    }
}

/// What a medium is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediumKind {
    /// A still picture.
    Photo,
    /// A video.
    Video,
    /// A short silent loop, which X stores as mp4.
    Gif,
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PixelSize {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

/// One file that a medium can be had as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Where it is. Untrusted: only the download room turns it into a request, behind the egress guard.
    pub url: String,
    /// What kind of file it is.
    pub container: Container,
    /// How its pictures are encoded, where that is known.
    pub codec: Option<Codec>,
    /// Bits a second of all tracks together.
    pub bit_rate: Option<u64>,
    /// Its size in pixels.
    pub size: Option<PixelSize>,
    /// Its bytes.
    pub bytes: Option<u64>,
}

/// What kind of file a variant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Container {
    /// A still picture, whatever its format.
    Image,
    /// An mp4 file.
    Mp4,
    /// A WebM file.
    WebM,
    /// A playlist of pieces: no file, and never chosen while there is one.
    Hls,
    /// Something else.
    Other,
}

/// How pictures are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// H.264, which plays everywhere.
    H264,
    /// H.265.
    Hevc,
    /// VP9.
    Vp9,
    /// AV1.
    Av1,
}

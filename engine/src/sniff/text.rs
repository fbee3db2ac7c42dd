//! Texts: pages, manifests, playlists and scripts, which people mistake for media and attackers dress as it.

/// Names the text that `head` is; `None` when it is no text.
pub(super) fn name(head: &[u8]) -> Option<&'static str> {
    let text = decode(head)?;
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == BOM).to_ascii_lowercase();
    Some(
        playlist(&text)
            .or_else(|| markup(&text))
            .or_else(|| data(&text))
            .unwrap_or("a text file, not a media file"),
    )
}

const BOM: char = '\u{FEFF}';

/// The characters of `head` if it is a text in UTF-8, UTF-16 with a byte order mark, or a Latin code page.
fn decode(head: &[u8]) -> Option<String> {
    let text = match head {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes)?,
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes)?,
        _ => match std::str::from_utf8(head) {
            Ok(text) => text.to_owned(),
            // The head may end within a character.
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                String::from_utf8_lossy(head).into_owned()
            }
            Err(_) => latin(head)?,
        },
    };
    let printable =
        |c: char| !c.is_ascii_control() || matches!(c, '\t' | '\n' | '\r' | '\x08' | '\x0C' | '\x1B');
    text.chars().all(printable).then_some(text)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, _) = bytes.as_chunks::<2>();
    // An unpaired surrogate can only be the last unit, where the head was cut.
    let decoded: Vec<_> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    let last = decoded.len().checked_sub(1)?;
    decoded
        .into_iter()
        .enumerate()
        .filter(|(at, unit)| *at != last || unit.is_ok())
        .map(|(_, unit)| unit.ok())
        .collect()
}

/// One byte, one character; only for texts that are mostly ASCII, since any bytes can be read like this.
fn latin(bytes: &[u8]) -> Option<String> {
    let high = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    (high.saturating_mul(4) <= bytes.len()).then(|| bytes.iter().map(|&byte| char::from(byte)).collect())
}

/// Texts that make a player open other files: never allowed, whatever they point to.
fn playlist(text: &str) -> Option<&'static str> {
    let begins = |prefix: &str| text.starts_with(prefix);
    if begins("#extm3u") || begins("#ext-x-") {
        Some("an HLS playlist is not allowed: only self-contained files are opened")
    } else if begins("ffconcat version") || begins("file '") || begins("file \"") {
        Some("a concat script is not allowed: only self-contained files are opened")
    } else if begins("[playlist]") {
        Some("a PLS playlist is not allowed: only self-contained files are opened")
    } else if begins("[reference]") {
        Some("an ASX playlist is not allowed: only self-contained files are opened")
    } else if begins("v=0") && text.contains("\no=") {
        Some("an SDP description of a network stream is not allowed: only self-contained files are opened")
    } else {
        None
    }
}

/// Texts with tags, by the first name that counts: of the document type or of the outermost element.
fn markup(text: &str) -> Option<&'static str> {
    let mut rest = text;
    let mut declared_xml = false;
    loop {
        rest = rest.trim_start();
        let skipped = if let Some(inner) = rest.strip_prefix("<?") {
            declared_xml |= inner.starts_with("xml");
            inner.split_once("?>")
        } else if let Some(inner) = rest.strip_prefix("<!--") {
            inner.split_once("-->")
        } else {
            break;
        };
        // A head that ends within a comment or declaration leaves nothing to name it by.
        rest = skipped.map_or("", |(_, after)| after);
    }
    let tag = rest.strip_prefix("<!doctype").map(str::trim_start).or_else(|| rest.strip_prefix('<'));
    let name = tag.and_then(|tag| tag.split(|c: char| c.is_whitespace() || "<>/![".contains(c)).next());
    let (prefix, local) = match name {
        Some(name) => name.split_once(':').unwrap_or(("", name)),
        None => ("", ""),
    };
    Some(match local {
        "html" | "head" | "body" | "title" | "meta" | "script" | "style" | "link" | "div" | "p"
        | "center" | "h1" | "table" | "iframe" | "a" | "br" => "an HTML page, not a media file",
        "mpd" => "a DASH manifest is not allowed: only self-contained files are opened",
        "smoothstreamingmedia" => "a streaming manifest is not allowed: only self-contained files are opened",
        "smil" => "a SMIL playlist is not allowed: only self-contained files are opened",
        "asx" => "an ASX playlist is not allowed: only self-contained files are opened",
        "playlist" => "an XSPF playlist is not allowed: only self-contained files are opened",
        "svg" => "SVG pictures are not supported",
        "" if !declared_xml => return None,
        _ if declared_xml || !prefix.is_empty() || rest.contains("</") || rest.contains("/>") => {
            "an XML file, not a media file"
        }
        _ => return None,
    })
}

/// Data for programs.
fn data(text: &str) -> Option<&'static str> {
    let second = || text.chars().skip(1).find(|c| !c.is_whitespace());
    let json = match text.chars().next() {
        Some('{') => matches!(second(), None | Some('"' | '}')),
        Some('[') => matches!(second(), Some('{' | '[' | '"' | ']' | '-' | '0'..='9')),
        _ => false,
    };
    if json {
        Some("a JSON file, not a media file")
    } else if text.starts_with("webvtt") || text.starts_with("[script info]") {
        Some("a subtitle file, not a media file")
    } else if matches!(text.as_bytes(), [b'p', b'1'..=b'3', b' ' | b'\n' | b'\r', ..]) {
        Some("PNM pictures are not supported")
    } else {
        None
    }
}

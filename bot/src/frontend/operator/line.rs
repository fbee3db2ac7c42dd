//! Lines of a bounded length.

use std::io;

use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The next line without its end; `None` when there is none any more. What is read is lost when this is dropped.
///
/// # Errors
/// `InvalidData` when it has more than `most` bytes: then the rest of it stands next. Else what the system says.
pub(super) async fn read(
    input: &mut (impl AsyncBufRead + Unpin),
    most: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    // One more for the end of the line.
    let room = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = input.take(room).read_until(b'\n', &mut line).await?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a line is longer than {most} bytes"),
        ));
    }
    Ok((read > 0).then_some(line))
}

/// Writes one line of JSON.
///
/// # Errors
/// What the system says.
pub(super) async fn write(output: &mut (impl AsyncWrite + Unpin), words: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(words)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}

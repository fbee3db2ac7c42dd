//! The commands: one thin file each. Each asks the engine and words the answer; none decides about media.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod console;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod fit;
pub(crate) mod get;
pub(crate) mod probe;
pub(crate) mod queue;
pub(crate) mod run;
mod service;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use azalea_engine::{ByteSize, Bytes, Error, LimitKind, Limits, Source};

use crate::exit::UsageError;
use crate::settings::Input;
use crate::terminal;

/// An input whose bytes can be asked for more than once.
#[derive(Clone, Debug)]
enum Ready {
    File(std::path::PathBuf),
    Memory(Bytes),
}

impl Ready {
    /// Reads what can be read only once, standard input and named pipes, into memory; leaves files alone. Blocks
    /// until the writer has finished.
    fn new(input: &Input, limits: &Limits) -> anyhow::Result<Self> {
        match input {
            Input::Stdin if io::stdin().is_terminal() => {
                Err(UsageError("standard input is a terminal; give a file or a pipe".to_owned()).into())
            }
            Input::Stdin => Ok(Self::Memory(read(io::stdin().lock(), "standard input", limits.input_bytes)?)),
            Input::File(path) if is_pipe(path) => {
                let what = terminal::path(path);
                let file = File::open(path)
                    .map_err(|cause| Error::Io { what: format!("cannot open {what}"), cause })?;
                Ok(Self::Memory(read(file, &what, limits.input_bytes)?))
            }
            Input::File(path) => Ok(Self::File(path.clone())),
        }
    }

    fn source(&self) -> Source {
        match self {
            Self::File(path) => Source::path(path),
            Self::Memory(bytes) => Source::bytes(bytes.clone()),
        }
    }
}

impl Input {
    /// The name that people know the input by.
    fn name(&self) -> &Path {
        match self {
            Self::Stdin => Path::new("-"),
            Self::File(path) => path,
        }
    }
}

fn read(mut from: impl Read, what: &str, most: ByteSize) -> Result<Bytes, Error> {
    let mut bytes = Vec::new();
    let unreadable = |cause| Error::Io { what: format!("cannot read {what}"), cause };
    let head = u64::try_from(azalea_engine::head_bytes()).unwrap_or(u64::MAX);
    from.by_ref().take(head.min(most.get())).read_to_end(&mut bytes).map_err(unreadable)?;
    // What is no media is refused by its first bytes, not after gigabytes of it.
    azalea_engine::recognise(&bytes)?;
    from.take(most.get().saturating_add(1).saturating_sub(ByteSize::of(&bytes).get()))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let found = ByteSize::of(&bytes);
    if found > most {
        return Err(Error::TooLarge {
            limit: LimitKind::InputBytes,
            found: found.get(),
            allowed: most.get(),
        });
    }
    Ok(bytes.into())
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_read_up_to_the_limit_and_no_further() {
        let most = ByteSize::new(13);
        let gif = b"GIF89a\x01\0\x01\0\0\0\0";
        assert_eq!(read(&gif[..], "x", most).unwrap(), &gif[..]);
        assert!(matches!(
            read(gif.chain(io::repeat(0)), "x", most),
            Err(Error::TooLarge { limit: LimitKind::InputBytes, found: 14, allowed: 13 })
        ));
    }

    #[test]
    fn a_pipe_of_no_media_is_refused_by_its_first_bytes() {
        let error = read(io::repeat(b'a'), "x", Limits::default().input_bytes).unwrap_err();
        assert_eq!(error.kind(), azalea_engine::ErrorKind::Unsupported);
    }
}

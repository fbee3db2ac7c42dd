//! A file that several readers read at places of their own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

/// One reader of a file. Readers share the open file and not its position, so a file that is renamed or removed
/// meanwhile is still the same for all of them.
pub(super) struct FileReader {
    file: Arc<File>,
    position: u64,
}

impl FileReader {
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), position: 0 }
    }

    /// Another reader, from the first byte on.
    pub(super) fn another(&self) -> Self {
        Self { file: Arc::clone(&self.file), position: 0 }
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = read_at(&self.file, buffer, self.position)?;
        self.position = self.position.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.position = target
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a seek to before the first byte"))?;
        Ok(self.position)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, position)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn readers_of_one_file_have_places_of_their_own() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let mut one = FileReader::new(file);
        let mut two = one.another();
        let read = |reader: &mut FileReader, from| {
            let mut bytes = [0; 3];
            reader.seek(from).unwrap();
            reader.read_exact(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(&read(&mut one, SeekFrom::Start(2)), b"234");
        assert_eq!(&read(&mut two, SeekFrom::Current(0)), b"012");
        assert_eq!(&read(&mut one, SeekFrom::Current(1)), b"678");
        assert_eq!(&read(&mut two, SeekFrom::End(-3)), b"789");
        assert!(two.seek(SeekFrom::Current(-11)).is_err());
    }
}

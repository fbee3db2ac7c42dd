use std::io::ErrorKind;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind as Kind;

fn control() -> Arc<Control> {
    Arc::new(Control::new())
}

fn open(source: Source) -> Reader {
    source.open(&control()).unwrap()
}

fn growing(capacity: u64, total: Option<u64>) -> (GrowingWriter, Reader) {
    let (writer, source) = Source::growing(ByteSize::new(capacity), total.map(ByteSize::new));
    (writer, open(source))
}

/// Bytes that tell where they stand.
fn pattern(length: usize) -> Bytes {
    (0..length).map(|at| u8::try_from((at * 31 + at / 251) % 256).unwrap()).collect()
}

fn read_all(reader: &mut Reader) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).map(|_| all)
}

fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().spawn(body).unwrap()
}

#[track_caller]
fn check_error<T: fmt::Debug>(result: io::Result<T>, kind: ErrorKind, text: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind);
    assert_eq!(error.to_string(), text);
}

#[test]
fn all_sources_give_the_same_bytes_forth_and_back() {
    let data = pattern(200_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    fs::write(&path, &data).unwrap();
    let mut used = Cursor::new(data.clone());
    used.set_position(77);
    let (mut writer, download) = Source::growing(ByteSize::mebibytes(1), None);
    writer.append(data.clone()).unwrap();
    writer.finish();
    for source in [Source::path(path), Source::bytes(data.clone()), Source::reader(used), download] {
        let mut reader = open(source);
        assert_eq!(reader.size().unwrap(), ByteSize::new(200_000));
        assert_eq!(read_all(&mut reader).unwrap(), data, "{reader:?}");
        reader.seek(SeekFrom::End(-3)).unwrap();
        assert_eq!(read_all(&mut reader).unwrap(), data[199_997..]);
        assert_eq!(reader.seek(SeekFrom::Start(10)).unwrap(), 10);
        assert_eq!(reader.seek(SeekFrom::Current(-5)).unwrap(), 5);
        assert!(reader.seek(SeekFrom::Current(-6)).is_err());
        assert_eq!(reader.stream_position().unwrap(), 5);
        assert_eq!(reader.seek(SeekFrom::Start(1 << 40)).unwrap(), 1 << 40);
        assert_eq!(read_all(&mut reader).unwrap(), b"");
    }
}

#[test]
fn missing_file_is_named_with_the_systems_answer() {
    let error = Source::path("/nowhere/at all.mp4").open(&control()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    let text = error.to_string();
    assert!(text.starts_with("cannot open /nowhere/at all.mp4: No such file"), "{text}");
}

#[test]
fn folder_and_device_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = Source::path(folder.path()).open(&control()).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().ends_with("it is a folder, not a regular file"));
    #[cfg(unix)]
    {
        let error = Source::path("/dev/null").open(&control()).unwrap_err();
        assert_eq!(error.to_string(), "cannot open /dev/null: it is a device, not a regular file");
    }
}

#[cfg(unix)]
#[test]
fn socket_is_refused_and_link_to_a_file_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = Source::path(socket).open(&control()).unwrap_err();
    assert!(error.to_string().ends_with("it is a socket, not a regular file"));

    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, b"abc").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(read_all(&mut open(Source::path(link))).unwrap(), b"abc");
}

#[test]
fn reader_that_claims_too_much_is_refused() {
    struct Liar;
    impl Read for Liar {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            Ok(buffer.len() + 1)
        }
    }
    impl Seek for Liar {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Ok(0)
        }
    }
    let mut reader = open(Source::reader(Liar));
    check_error(
        reader.read(&mut [0; 4]),
        ErrorKind::InvalidData,
        "the reader claims more bytes than it was asked for",
    );
}

#[test]
fn stopped_source_is_neither_read_nor_moved() {
    let control = control();
    let mut reader = Source::bytes(pattern(9)).open(&control).unwrap();
    control.cancel();
    check_error(reader.read(&mut [0; 4]), ErrorKind::TimedOut, "cancelled");
    check_error(reader.rewind(), ErrorKind::TimedOut, "cancelled");
    let error = reader.size().unwrap_err();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    assert!(matches!(inner, Some(Error::Cancelled)));
}

#[test]
fn read_waits_for_bytes_that_have_not_arrived() {
    let (mut writer, mut reader) = growing(100, None);
    let (say, said) = mpsc::channel();
    let consumer = spawn(move || {
        let mut seen = Vec::new();
        let mut buffer = [0; 64];
        loop {
            let count = reader.read(&mut buffer).unwrap();
            if count == 0 {
                return seen;
            }
            seen.extend_from_slice(&buffer[..count]);
            say.send(seen.len()).unwrap();
        }
    });
    for (piece, sum) in [("ab", 2), ("cde", 5), ("f", 6)] {
        writer.append(Bytes::from_static(piece.as_bytes())).unwrap();
        assert_eq!(said.recv().unwrap(), sum, "each piece is read before the next arrives");
    }
    writer.finish();
    assert_eq!(consumer.join().unwrap(), b"abcdef");
}

#[test]
fn arrival_tells_what_can_be_read_without_waiting() {
    type End = fn(GrowingWriter);
    let ends: [(&str, End); 2] = [("it is finished", GrowingWriter::finish), ("it is dropped", drop)];
    for (what, end) in ends {
        let (mut writer, reader) = growing(100, None);
        let arrival = reader.arrival().unwrap();
        assert_eq!(arrival.bytes(), Some(ByteSize::ZERO));
        writer.append(pattern(30)).unwrap();
        assert_eq!(arrival.bytes(), Some(ByteSize::new(30)));
        end(writer);
        assert_eq!(arrival.bytes(), None, "when {what}, nothing more is waited for");
    }
    let (mut writer, reader) = growing(100, Some(40));
    writer.append(pattern(40)).unwrap();
    assert_eq!(reader.arrival().unwrap().bytes(), None, "all that was announced is there");
    assert!(open(Source::bytes(pattern(40))).arrival().is_none());
}

#[test]
fn end_that_was_announced_is_known_before_it_arrives() {
    let (mut writer, mut reader) = growing(10, Some(6));
    assert_eq!(reader.size().unwrap(), ByteSize::new(6));
    assert_eq!(reader.seek(SeekFrom::End(-2)).unwrap(), 4);
    let tail = spawn(move || {
        let tail = read_all(&mut reader);
        reader.rewind().unwrap();
        (tail.unwrap(), read_all(&mut reader).unwrap())
    });
    for piece in ["abc", "def"] {
        writer.append(Bytes::from_static(piece.as_bytes())).unwrap();
    }
    // The end is reached although nobody has said so.
    assert_eq!(tail.join().unwrap(), (b"ef".to_vec(), b"abcdef".to_vec()));
    writer.finish();
}

#[test]
fn end_that_was_not_announced_is_waited_for() {
    let (mut writer, mut reader) = growing(10, None);
    writer.append(Bytes::from_static(b"abc")).unwrap();
    let (begin, begun) = mpsc::channel();
    let size = spawn(move || {
        begin.send(()).unwrap();
        reader.size()
    });
    begun.recv().unwrap();
    writer.append(Bytes::from_static(b"de")).unwrap();
    writer.finish();
    assert_eq!(size.join().unwrap().unwrap(), ByteSize::new(5));
}

#[test]
fn stop_ends_each_wait_for_a_download() {
    let waits: [fn(&mut Reader) -> io::Result<u64>; 2] =
        [|reader| reader.read(&mut [0; 4]).map(|_| 0), |reader| reader.seek(SeekFrom::End(0))];
    for wait in waits {
        let (_writer, source) = Source::growing(ByteSize::new(10), None);
        let control = control();
        let mut reader = source.open(&control).unwrap();
        let (begin, begun) = mpsc::channel();
        let waiter = spawn(move || {
            begin.send(()).unwrap();
            wait(&mut reader)
        });
        begun.recv().unwrap();
        control.cancel();
        check_error(waiter.join().unwrap(), ErrorKind::TimedOut, "cancelled");
    }
}

#[test]
fn dropped_writer_ends_the_download_after_what_has_arrived() {
    let (mut writer, mut reader) = growing(10, None);
    writer.append(Bytes::from_static(b"abc")).unwrap();
    drop(writer);
    let mut arrived = [0; 3];
    reader.read_exact(&mut arrived).unwrap();
    assert_eq!(&arrived, b"abc");
    let text = "the download stopped before it was whole";
    check_error(reader.read(&mut [0; 4]), ErrorKind::UnexpectedEof, text);
    check_error(reader.size(), ErrorKind::UnexpectedEof, text);
}

#[test]
fn failed_download_repeats_its_reason() {
    let (writer, mut reader) = growing(10, Some(4));
    writer.fail("connection reset by peer");
    check_error(reader.read(&mut [0; 4]), ErrorKind::Other, "the download failed: connection reset by peer");
}

#[test]
fn download_finished_short_of_its_total_is_not_whole() {
    let (mut writer, mut reader) = growing(10, Some(4));
    writer.append(Bytes::from_static(b"abc")).unwrap();
    writer.finish();
    check_error(
        read_all(&mut reader),
        ErrorKind::UnexpectedEof,
        "the download stopped at 3 bytes of 4 bytes",
    );
}

#[test]
fn append_keeps_to_capacity_and_total() {
    let (mut writer, mut reader) = growing(5, None);
    writer.append(Bytes::from_static(b"abc")).unwrap();
    let error = writer.append(Bytes::from_static(b"def")).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: crate::LimitKind::InputBytes, found: 6, allowed: 5 }));
    writer.append(Bytes::from_static(b"de")).unwrap();
    writer.append(Bytes::new()).unwrap();
    writer.finish();
    assert_eq!(read_all(&mut reader).unwrap(), b"abcde");

    let (mut writer, _reader) = growing(5, Some(4));
    assert_eq!(writer.append(pattern(5)).unwrap_err().kind(), Kind::Corrupt);
    writer.append(pattern(4)).unwrap();
}

#[test]
fn append_after_the_job_says_so_and_keeps_nothing() {
    let (mut writer, reader) = growing(10_000, None);
    let piece = Bytes::from(vec![0; 5000]);
    writer.append(piece.clone()).unwrap();
    assert!(!piece.is_unique());
    drop(reader);
    assert!(piece.is_unique(), "the buffer was freed");
    let error = writer.append(piece).unwrap_err();
    assert!(matches!(error, Error::Io { cause, .. } if cause.kind() == ErrorKind::BrokenPipe));
}

#[test]
fn large_pieces_are_not_copied_and_small_ones_are_gathered() {
    let (mut writer, reader) = growing(1 << 20, None);
    let (large, small) = (Bytes::from(vec![1; 4096]), Bytes::from(vec![2; 4095]));
    writer.append(large.clone()).unwrap();
    writer.append(small.clone()).unwrap();
    assert!(!large.is_unique());
    assert!(small.is_unique());
    drop(reader);
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_bytes_at_any_place(
        lengths in proptest::collection::vec(prop_oneof![0_usize..20, 4000_usize..4200, 60_000_usize..70_000], 0..24),
        places in proptest::collection::vec(any::<proptest::sample::Index>(), 1..16),
        announced in any::<bool>(),
    ) {
        let sum = lengths.iter().sum::<usize>();
        let data = pattern(sum);
        let length = u64::try_from(sum).unwrap();
        let (mut writer, mut reader) = growing(length, announced.then_some(length));
        let mut rest = data.clone();
        for length in lengths {
            writer.append(rest.split_to(length)).unwrap();
        }
        writer.finish();
        prop_assert_eq!(reader.size().unwrap(), ByteSize::new(length));
        prop_assert_eq!(&read_all(&mut reader).unwrap(), &data);
        for place in places {
            let at = place.index(sum + 1);
            reader.seek(SeekFrom::Start(u64::try_from(at).unwrap())).unwrap();
            let mut buffer = vec![0; 100.min(sum - at)];
            reader.read_exact(&mut buffer).unwrap();
            prop_assert_eq!(&buffer, &data[at..at + buffer.len()]);
        }
    }
}

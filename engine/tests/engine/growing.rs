//! A download that is still running gives the same result as the whole file.

use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use azalea_engine::{
    Action, ByteSize, Bytes, Engine, Error, ErrorKind, Fit, Fitted, GrowingWriter, JobHandle, Source, Stage,
    Warning,
};

use crate::support::clips::{self, H264, OLD, PICTURE, Place, TONE, make};
use crate::support::look::{Facts, Sound, assert_decodes};
use crate::support::{KIB, MIB, engine, fit, near, wait_until, within};

/// A thread that appends each piece it is handed, as a download does.
struct Download {
    hand: SyncSender<Bytes>,
    thread: JoinHandle<Result<GrowingWriter, Error>>,
}

impl Download {
    fn start(mut writer: GrowingWriter) -> Self {
        let (hand, pieces) = mpsc::sync_channel::<Bytes>(0);
        let append = move || {
            for piece in pieces {
                writer.append(piece)?;
            }
            Ok(writer)
        };
        Self { hand, thread: thread::Builder::new().name("download".into()).spawn(append).unwrap() }
    }

    /// Hands over these bytes in pieces whose size has nothing to do with what is in them.
    fn send(&self, bytes: &Bytes) {
        for start in (0..bytes.len()).step_by(PIECE) {
            let piece = bytes.slice(start..bytes.len().min(start + PIECE));
            self.hand.send(piece).expect("the download goes on");
        }
    }

    /// Ends the thread; the writer may say how the download ended.
    fn end(self) -> GrowingWriter {
        drop(self.hand);
        self.thread.join().unwrap().expect("the job reads on")
    }
}

const PIECE: usize = 1499;

fn begin(whole: &Bytes, announced: bool, fit: Fit) -> (Download, JobHandle) {
    let total = announced.then(|| ByteSize::of(whole));
    let (writer, source) = Source::growing(ByteSize::mebibytes(16), total);
    let job = engine().try_submit(source, fit).unwrap();
    (Download::start(writer), job)
}

/// Feeds a part, waits until the job has gone as far as it can be expected to, then feeds the rest.
#[track_caller]
fn grow(whole: &Bytes, announced: bool, fit: Fit, early: bool) -> Fitted {
    let (download, job) = begin(whole, announced, fit);
    let part = whole.len() * 9 / 10;
    download.send(&whole.slice(..part));
    wait_until("the job works before the last byte has arrived", || {
        let progress = job.progress();
        if early {
            !matches!(progress.stage, Stage::Queued | Stage::Probe)
        } else {
            progress.stage == Stage::Probe
        }
    });
    download.send(&whole.slice(part..));
    download.end().finish();
    job.wait().unwrap_or_else(|error| panic!("{error}"))
}

/// Compares results by growing with the result of the whole file; `early` when work can begin before the end.
#[track_caller]
fn check(whole: &Bytes, request: Fit, action: Action, early: bool) {
    let expected = fit(whole, request);
    assert_eq!(expected.report().action, action);
    for announced in [true, false] {
        let found = grow(whole, announced, request, early && announced);
        let (a, b) = (found.report(), expected.report());
        assert_eq!(
            (a.action, a.kind, a.frames, a.duration, a.dimensions, a.frame_rate, a.input_bytes),
            (b.action, b.kind, b.frames, b.duration, b.dimensions, b.frame_rate, b.input_bytes),
        );
        assert_eq!(a.warnings, b.warnings);
        if action == Action::Transcode {
            near("bytes", a.bytes.as_f64(), b.bytes.as_f64(), b.bytes.as_f64() * 0.01);
        } else {
            assert!(found.bytes() == expected.bytes(), "the bytes are the same");
        }
    }
}

#[test]
fn growing_file_with_its_index_first_is_passed() {
    check(&clips::plain(), within(MIB), Action::Pass, true);
}

#[test]
fn growing_file_with_its_index_last_is_remuxed() {
    let whole = make("last.mp4", &format!("{PICTURE} {TONE} {H264} -c:a aac"));
    check(&whole, within(MIB), Action::Remux, false);
}

#[test]
fn growing_file_with_its_index_first_is_transcoded() {
    let whole = make("first.mp4", &format!("{PICTURE} {TONE} {OLD} -movflags +faststart"));
    check(&whole, within(150 * KIB), Action::Transcode, true);
}

#[test]
fn growing_file_with_its_index_last_is_transcoded() {
    let whole = make("last.mp4", &format!("{PICTURE} {TONE} {OLD}"));
    check(&whole, within(150 * KIB), Action::Transcode, false);
}

#[test]
fn growing_matroska_is_transcoded() {
    check(&clips::old(), within(150 * KIB), Action::Transcode, false);
}

/// A download that ends after two thirds, in each of the ways it can.
#[track_caller]
fn check_stopped(whole: &Bytes, request: Fit) {
    let part = whole.slice(..whole.len() * 2 / 3);
    type End = fn(GrowingWriter);
    let ends: [(&str, End); 3] = [
        ("it is dropped", drop),
        ("it fails", |writer| writer.fail("the host is gone")),
        ("it ends too early", GrowingWriter::finish),
    ];
    for (end, how) in ends {
        let (download, job) = begin(whole, true, request);
        download.send(&part);
        how(download.end());
        let error = match job.wait() {
            Ok(fitted) => panic!("when {end}, there is no result: {:?}", fitted.report()),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Io, "when {end}: {error}");
        assert_eq!(error.to_string().lines().count(), 1);
        if end == "it fails" {
            assert!(error.to_string().contains("the host is gone"), "{error}");
        }
    }
}

#[test]
fn stopped_download_of_what_would_be_passed_is_an_error() {
    check_stopped(&clips::plain(), within(MIB));
}

#[test]
fn stopped_download_with_its_index_last_is_an_error() {
    check_stopped(&make("last.mp4", &format!("{PICTURE} {TONE} {H264} -c:a aac")), within(MIB));
}

#[test]
fn stopped_download_of_what_would_be_transcoded_is_an_error() {
    check_stopped(
        &make("first.mp4", &format!("{PICTURE} {TONE} {OLD} -movflags +faststart")),
        within(150 * KIB),
    );
    check_stopped(&clips::old(), within(150 * KIB));
    check_stopped(&make("old.ts", &format!("{PICTURE} {TONE} -c:v mpeg2video -c:a mp2")), within(150 * KIB));
}

#[test]
fn job_that_is_over_tells_the_download_to_stop() {
    let (mut writer, source) = Source::growing(ByteSize::mebibytes(1), None);
    let job = engine().try_submit(source, within(MIB)).unwrap();
    job.cancel();
    assert_eq!(job.wait().unwrap_err().kind(), ErrorKind::Cancelled);
    let mut refusal = None;
    wait_until("the buffer is let go of", || {
        refusal = writer.append(Bytes::from_static(b"more")).err();
        refusal.is_some()
    });
    assert_eq!(refusal.unwrap().kind(), ErrorKind::Io);
}

/// Eighteen seconds of noise in two segments, the index first, the bytes spread evenly.
fn long(name: &str, sound: &str) -> Bytes {
    long_with(name, "-g 30", sound)
}

fn long_with(name: &str, groups: &str, sound: &str) -> Bytes {
    let picture = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=18,noise=alls=40:allf=t+u:all_seed=7";
    let tone = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=18";
    make(name, &format!("{picture} {tone} {H264} {groups} -crf 23 {sound} -movflags +faststart"))
}

/// What is asked for has to be encoded, and is mostly pictures.
fn third(whole: &Bytes) -> Fit {
    within(u64::try_from(whole.len()).unwrap() / 3)
}

/// Feeds seven tenths, all of the first segment and some of the second, waits until more than the first is encoded,
/// feeds the rest.
#[track_caller]
fn grow_by_pictures(whole: &Bytes, request: Fit) -> Fitted {
    // The threads of the others' engine are busy with other tests.
    let engine = Engine::builder().threads(2).build().unwrap();
    let (writer, source) = Source::growing(ByteSize::mebibytes(64), Some(ByteSize::of(whole)));
    let job = engine.try_submit(source, request).unwrap();
    let download = Download::start(writer);
    let part = whole.len() * 7 / 10;
    download.send(&whole.slice(..part));
    wait_until("pictures are encoded before the rest has arrived", || job.progress().frames > 240);
    download.send(&whole.slice(part..));
    download.end().finish();
    let fitted = job.wait().unwrap_or_else(|error| panic!("{error}"));
    let report = fitted.report();
    assert_eq!((report.action, report.frames), (Action::Transcode, 540));
    assert!(fitted.bytes().len() <= usize::try_from(report.limit.get()).unwrap(), "it is above its limit");
    assert!(report.fill() > 0.96, "{}", report.fill());
    Facts::of(fitted.bytes()).assert_plays_inline();
    assert_decodes(fitted.bytes());
    fitted
}

#[test]
fn pictures_are_encoded_before_the_last_byte_has_arrived() {
    let whole = long("kept.mp4", "-c:a aac -b:a 64k");
    let fitted = grow_by_pictures(&whole, third(&whole));
    assert_eq!(fitted.report().warnings, []);
    let alone = Facts::of(&whole).stream("audio", "bit_rate").to_owned();
    assert_eq!(Facts::of(fitted.bytes()).stream("audio", "bit_rate"), alone, "the sound is kept");
}

#[test]
fn sound_of_a_growing_file_is_encoded_when_it_is_there() {
    let whole = long("encoded.mp4", "-c:a libmp3lame -b:a 96k");
    let fitted = grow_by_pictures(&whole, third(&whole));
    assert_eq!(fitted.report().warnings, []);
    near("seconds of sound", Sound::of(fitted.bytes()).seconds(), 18.0, 0.1);
}

#[test]
fn kept_sound_that_turns_out_bad_is_encoded_in_its_place() {
    let whole = long("bad.mp4", "-c:a aac -b:a 64k");
    let place = Place::new();
    place.write("bad.mp4", &whole);
    let words = "-v error -select_streams a -show_entries packet=pos,size -of csv=p=0 bad.mp4";
    let packets = place.run("ffprobe", &words.split(' ').collect::<Vec<_>>()).stdout;
    let mut broken = whole.to_vec();
    for line in String::from_utf8(packets).unwrap().lines().skip(750).take(40) {
        let numbers: Vec<usize> = line.trim_end_matches(',').split(',').map(|n| n.parse().unwrap()).collect();
        let [size, start] = numbers[..] else { panic!("{line}") };
        assert!(start > whole.len() * 7 / 10, "it comes with the rest");
        broken[start..start + size].iter_mut().for_each(|byte| *byte ^= 0x5a);
    }
    let fitted = grow_by_pictures(&broken.into(), third(&whole));
    let warnings = &fitted.report().warnings;
    assert!(matches!(warnings[..], [Warning::Damaged { .. }]), "{warnings:?}");
    near("seconds of sound", Sound::of(fitted.bytes()).seconds(), 18.0, 0.1);
}

/// A key frame a third of a second after the second has a time that no decimal number is exact for.
#[test]
fn no_picture_is_lost_where_a_growing_file_is_cut() {
    for (name, frame) in [("third.mp4", 250), ("two-thirds.mp4", 260), ("near.mp4", 268)] {
        let groups =
            format!("-bf 3 -g 600 -keyint_min 1 -sc_threshold 0 -force_key_frames expr:eq(n,{frame})");
        let whole = long_with(name, &groups, "-c:a aac -b:a 64k");
        let fitted = grow_by_pictures(&whole, third(&whole));
        assert_eq!(frames_of(&fitted), 540, "{name}");
    }
}

/// Pictures that a decoder gives.
fn frames_of(fitted: &Fitted) -> usize {
    let place = Place::new();
    place.write("fitted.mp4", fitted.bytes());
    let words = "-v error -select_streams v -show_entries frame=pts -of csv=p=0 fitted.mp4";
    let frames = place.run("ffprobe", &words.split(' ').collect::<Vec<_>>()).stdout;
    String::from_utf8(frames).unwrap().lines().count()
}

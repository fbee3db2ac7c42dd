//! Files that are cut or damaged never get the better of the engine.

use std::time::Duration;

use azalea_engine::{Action, Bytes, Error, ErrorKind, OutputKind, Wanted};

use crate::support::clips::make;
use crate::support::look::{assert_decodes, picture_times};
use crate::support::{KIB, try_fit, within};

/// A second of a small picture, and a tone where the container can hold one.
const SMALL: &str = "-f lavfi -i testsrc2=size=96x64:rate=10:duration=1";
const TONE: &str = "-f lavfi -i sine=frequency=440:sample_rate=24000:duration=1";
const LIMIT: u64 = 64 * KIB;
/// ffmpeg's clock for ten frames a second has 10,240 ticks a second.
const TICKS_OF_A_FRAME: u32 = 1024;
/// How many lengths a file is cut at, and how many times it is damaged.
const CASES: usize = 40;
/// Every how many-th result is decoded by an independent decoder, which takes longer than to make it.
const SAMPLE: usize = 8;

fn mp4() -> Bytes {
    make("d.mp4", &format!("{SMALL} {TONE} -c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart"))
}

fn webm() -> Bytes {
    make("d.webm", &format!("{SMALL} {TONE} -c:v libvpx -deadline realtime -c:a libopus"))
}

fn ts() -> Bytes {
    make("d.ts", &format!("{SMALL} {TONE} -c:v libx264 -pix_fmt yuv420p -c:a aac"))
}

fn gif() -> Bytes {
    make("d.gif", SMALL)
}

/// What may be said about a damaged file; anything else is a fault of ours.
fn is_expected(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::TooLarge | ErrorKind::CannotFit
    )
}

/// Each damaged file gives a whole result within the limit, or an honest error; how many results there were.
#[track_caller]
fn check(what: &str, damaged: impl Iterator<Item = Bytes>) -> usize {
    let mut results = 0;
    for (case, input) in damaged.enumerate() {
        match try_fit(&input, within(LIMIT)) {
            Ok(fitted) => {
                if results % SAMPLE == 0 || fitted.report().kind != OutputKind::Mp4 {
                    assert_decodes(fitted.bytes());
                }
                results += 1;
            }
            Err(error) => assert!(is_expected(&error), "{what} {case}: {error:?}"),
        }
    }
    results
}

fn cuts(whole: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..CASES).map(|case| whole.slice(..whole.len() * case / CASES))
}

/// The file with some bytes changed, the same ones on every run.
fn flips(whole: &Bytes) -> impl Iterator<Item = Bytes> {
    (1..=CASES).map(|seed| {
        let mut state = u64::try_from(seed).unwrap().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Marsaglia's xorshift.
        let mut next = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
        };
        let mut bytes = whole.to_vec();
        // Every other file is changed in its first bytes, where the headers are.
        let reach = if seed % 2 == 0 { bytes.len() } else { bytes.len().min(1200) };
        for _ in 0..=seed % 7 {
            bytes[next(reach)] ^= 1 << next(8);
        }
        Bytes::from(bytes)
    })
}

#[test]
fn cut_and_flipped_mp4_is_survived() {
    let whole = mp4();
    let kept = check("a cut mp4", cuts(&whole));
    assert!(kept > CASES / 3, "what can be saved is saved: {kept}");
    check("a flipped mp4", flips(&whole));
}

#[test]
fn cut_and_flipped_webm_is_survived() {
    let whole = webm();
    let kept = check("a cut webm", cuts(&whole));
    assert!(kept > CASES / 2, "what can be saved is saved: {kept}");
    check("a flipped webm", flips(&whole));
}

#[test]
fn cut_and_flipped_transport_stream_is_survived() {
    let whole = ts();
    let kept = check("a cut ts", cuts(&whole));
    assert!(kept > CASES / 2, "what can be saved is saved: {kept}");
    check("a flipped ts", flips(&whole));
}

#[test]
fn cut_and_flipped_gif_is_survived() {
    let whole = gif();
    let kept = check("a cut gif", cuts(&whole));
    assert!(kept > CASES / 2, "what can be saved is saved: {kept}");
    check("a flipped gif", flips(&whole));
}

#[test]
fn whole_pictures_with_wrong_times_are_not_passed_on() {
    let coded = "-c:v libx264 -bf 2 -pix_fmt yuv420p -fflags +bitexact -movflags +faststart";
    let source = make("w.mp4", &format!("{SMALL} {coded}"));
    assert_eq!(try_fit(&source, within(LIMIT)).unwrap().report().action, Action::Pass);
    let mut bytes = source.to_vec();
    // The box of the distances from decoding to presentation: name, version and flags, number of entries, and
    // for each entry a number of samples and their distance. One picture comes as late as the one after it.
    let third = bytes.windows(4).position(|window| window == b"ctts").unwrap() + 12 + 2 * 8 + 4;
    let distance = u32::from_be_bytes(bytes[third..third + 4].try_into().unwrap());
    bytes[third..third + 4].copy_from_slice(&(distance + TICKS_OF_A_FRAME).to_be_bytes());
    let fitted = try_fit(&bytes.into(), within(LIMIT)).unwrap();
    assert_eq!(fitted.report().action, Action::Transcode);
    assert!(picture_times(fitted.bytes()).is_sorted_by(|earlier, later| earlier < later));
}

#[test]
fn cut_file_gives_what_is_there_and_says_so() {
    let whole = mp4();
    let fitted = try_fit(&whole.slice(..whole.len() * 3 / 4), within(LIMIT)).unwrap();
    assert!(!fitted.report().warnings.is_empty());
    let seconds = fitted.report().duration.as_secs_f64();
    assert!((0.3..1.0).contains(&seconds), "{seconds}");
    assert_decodes(fitted.bytes());
}

#[test]
fn sound_that_is_over_before_the_first_picture_is_left_out() {
    let whole =
        make("e.flv", &format!("{SMALL} {TONE} -c:v libx264 -pix_fmt yuv420p -c:a aac -fflags +bitexact"));
    // One packet of sound has arrived, and it ends as the pictures, which are delayed for reordering, begin.
    let mut lost = 0;
    check(
        "a flv that is cut early",
        (2..CASES * 3).map(|case| whole.slice(..whole.len() * case / (CASES * 4))).inspect(|_| lost += 1),
    );
    assert_eq!(lost, CASES * 3 - 2);
}

/// Once, two days of silence were made, with a memory for it, and the job's thread went on long after its time was over.
#[test]
fn sound_that_claims_to_come_from_another_day_is_put_where_it_belongs() {
    let fragments = "-g 3 -movflags +frag_keyframe+empty_moov+default_base_moof";
    let whole = make("f.mp4", &format!("{SMALL} {TONE} -c:v libx264 -pix_fmt yuv420p -c:a aac {fragments}"));
    let mut bytes = whole.to_vec();
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|&at| &bytes[at..at + 4] == b"tfdt").collect();
    // Name, version and flags, and the time of a track's first sample in this fragment in 64 bits.
    let sound = places[1] + 8;
    bytes[sound..sound + 8].copy_from_slice(&(-(1_i64 << 32)).to_be_bytes());
    let fitted = try_fit(&bytes.into(), within(LIMIT).wanted(Wanted::AudioOnly)).unwrap();
    let seconds = fitted.report().duration.as_secs_f64();
    assert!((0.5..1.5).contains(&seconds), "{seconds}");
    assert!(fitted.report().wall < Duration::from_secs(10), "{:?}", fitted.report().wall);
}

#[test]
fn av1_that_is_damaged_at_its_end_is_survived() {
    let whole = make(
        "g.mkv",
        "-f lavfi -i testsrc2=size=96x64:rate=10:duration=0.6 -c:v libaom-av1 -cpu-used 8 -usage realtime",
    );
    let damaged = (0..whole.len()).rev().step_by(37).map(|at| {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 0x55;
        Bytes::from(bytes)
    });
    check("a flipped av1", damaged);
}

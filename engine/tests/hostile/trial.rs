//! One run: a whole file in many damages, each made to fit.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use azalea_engine::{
    ByteSize, Bytes, Engine, Error, ErrorKind, Fit, Fitted, Limits, Preset, Source, Verify, Wanted,
};

use crate::{TIME, harm};

/// No result is larger.
const LIMIT: u64 = 64 << 10;
/// What a process may hold in memory at most, in KiB: what the linked libraries take when they start, and an account of
/// 64 MiB for the largest pictures that these limits let in.
const MOST_MEMORY_KIB: u64 = 400 << 10;

/// Where the run for a seed notes what it is about to do.
pub(crate) fn note(seed: &str) -> String {
    format!("{seed}.case")
}

/// Makes each case fit; whether every promise was kept.
pub(crate) fn run(seed: &Path, cases: Range<usize>) -> bool {
    let whole = fs::read(seed).unwrap();
    let name = seed.file_name().unwrap().to_string_lossy();
    let engine = Engine::builder().threads(1).build().unwrap();
    let mut limits = Limits::default();
    limits.input_bytes = ByteSize::mebibytes(8);
    limits.frame_pixels = 1 << 20;
    limits.duration = Duration::from_secs(60);
    limits.frames = 400;
    limits.wall_time = TIME;
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut longest, mut open, mut broken) = (Duration::ZERO, None, 0);
    for case in cases.clone() {
        let (input, what) = harm::harm(&whole, case);
        fs::write(note(&name), format!("{case} {what}")).unwrap();
        if cases.len() == 1 {
            let kept = env::temp_dir().join(format!("azalea-hostile-{case}-{name}"));
            fs::write(&kept, &input).unwrap();
            eprintln!("{name}:{case} ({what}) is kept as {}", kept.display());
        }
        let began = Instant::now();
        let input = Bytes::from(input);
        let fit = request(&input, case).limits(limits);
        let result = attempt(&engine, &input, fit, case);
        let took = began.elapsed();
        longest = longest.max(took);
        let handles = fs::read_dir("/proc/self/fd").unwrap().count();
        let verdict = if took >= 2 * TIME {
            Err(format!("it hung for {took:?}"))
        } else if *open.get_or_insert(handles) != handles {
            Err("something was left open".to_owned())
        } else {
            judge(&engine, result)
        };
        match verdict {
            Ok(end) => {
                if took >= TIME {
                    eprintln!("{name}:{case} ({what}): {end}");
                }
                *ends.entry(end).or_default() += 1;
            }
            Err(promise) => {
                broken += 1;
                eprintln!("{name}:{case} ({what}): {promise}");
            }
        }
    }
    let peak = peak_memory_kib();
    if peak >= MOST_MEMORY_KIB {
        broken += 1;
        eprintln!("{name}: {} MiB were held at once", peak >> 10);
    }
    println!(
        "{} cases, {ends:?}, longest {} ms, memory {} MiB",
        cases.len(),
        longest.as_millis(),
        peak >> 10
    );
    broken == 0
}

/// Each case asks for something else. Half of them leave too little room for the file to be kept.
fn request(input: &Bytes, case: usize) -> Fit {
    let tight = ByteSize::of(input).get() * 2 / 3;
    let limit = if case.is_multiple_of(2) { LIMIT } else { tight.clamp(3 << 10, LIMIT) };
    let fit = Fit::within(ByteSize::new(limit)).preset(Preset::Fast);
    match case % 11 {
        0 => fit.wanted(Wanted::Gif),
        1 => fit.wanted(Wanted::AudioOnly),
        2 => fit.start(Duration::from_millis(200)),
        3 => fit.end(Duration::from_millis(300)).max_height(48),
        4 => fit.verify(Verify::Container),
        _ => fit,
    }
}

fn attempt(engine: &Engine, input: &Bytes, fit: Fit, case: usize) -> Result<Fitted, Error> {
    if !case.is_multiple_of(5) {
        return engine.try_submit(Source::bytes(input.clone()), fit).unwrap().wait();
    }
    // As it arrives, in pieces, sometimes without a length that was told before.
    let total = case.is_multiple_of(2).then(|| ByteSize::of(input));
    let (mut writer, source) = Source::growing(ByteSize::mebibytes(8), total);
    let job = engine.try_submit(source, fit).unwrap();
    for piece in input.chunks(1 + case % 4096) {
        if writer.append(Bytes::copy_from_slice(piece)).is_err() {
            break;
        }
    }
    writer.finish();
    job.wait()
}

/// How it ended, by a short name; or what is wrong with that.
fn judge(engine: &Engine, result: Result<Fitted, Error>) -> Result<&'static str, String> {
    match result {
        Ok(fitted) => {
            let (bytes, report) = (ByteSize::of(fitted.bytes()), fitted.report());
            if report.bytes != bytes || bytes > report.limit {
                return Err(format!("{} bytes are not within the limit of {:?}", bytes.get(), report));
            }
            match engine.probe(Source::bytes(fitted.bytes().clone()), &Limits::default()) {
                Ok(_) => Ok("fits"),
                Err(error) => Err(format!("the result cannot be read: {error:?}, {report:?}")),
            }
        }
        Err(error) => {
            let text = error.to_string();
            let expected = matches!(
                error.kind(),
                ErrorKind::Corrupt
                    | ErrorKind::Unsupported
                    | ErrorKind::TooLarge
                    | ErrorKind::CannotFit
                    | ErrorKind::Deadline
            );
            if expected && !text.is_empty() && text.lines().count() == 1 {
                Ok(error.kind().code())
            } else {
                Err(format!("{error:?}"))
            }
        }
    }
}

/// The most that this process ever held in memory.
fn peak_memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

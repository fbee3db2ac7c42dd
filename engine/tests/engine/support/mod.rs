//! An engine for all tests, the inputs that `ffmpeg` makes, and what it sees in results.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use azalea_engine::{ByteSize, Bytes, Engine, Error, Fit, Fitted, Preset, Source};

pub(crate) mod clips;
pub(crate) mod look;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// The engine that most tests share; two jobs at once, and room for all tests' jobs.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::builder().threads(2).queue_depth(256).build().unwrap())
}

/// A fast request for at most `limit` bytes.
pub(crate) fn within(limit: u64) -> Fit {
    Fit::within(ByteSize::new(limit)).preset(Preset::Fast)
}

/// Makes `input` fit, and holds the result to the promises that every result keeps.
#[track_caller]
pub(crate) fn try_fit(input: &Bytes, fit: Fit) -> Result<Fitted, Error> {
    let result = engine().try_submit(Source::bytes(input.clone()), fit).unwrap().wait();
    match &result {
        Ok(fitted) => {
            let (bytes, report) = (ByteSize::of(fitted.bytes()), fitted.report());
            assert_eq!((report.bytes, report.limit), (bytes, fit.limit()));
            assert!(bytes <= fit.limit(), "{} is above {}", bytes.get(), fit.limit().get());
            assert_eq!(report.input_bytes, ByteSize::of(input));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && text.lines().count() == 1, "{text:?}");
        }
    }
    result
}

/// Makes `input` fit, which must succeed.
#[track_caller]
pub(crate) fn fit(input: &Bytes, fit: Fit) -> Fitted {
    try_fit(input, fit).unwrap_or_else(|error| panic!("{error}"))
}

/// Makes `input` fit, which must fail.
#[track_caller]
pub(crate) fn fails(input: &Bytes, fit: Fit) -> Error {
    match try_fit(input, fit) {
        Ok(fitted) => panic!("an error was expected: {:?}", fitted.report()),
        Err(error) => error,
    }
}

/// Waits until something is so that another thread brings about.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "in vain: {what}");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// A count as a float.
pub(crate) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// Asserts that two numbers are within `tolerance` of each other.
#[track_caller]
pub(crate) fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found}, expected {expected} ± {tolerance}");
}

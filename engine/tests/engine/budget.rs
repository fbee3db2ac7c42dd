//! The limit is kept, and used where there is a use for it.

use azalea_engine::{Bytes, Error};

use crate::support::clips::{self, H264, make};
use crate::support::look::{Facts, assert_decodes};
use crate::support::{KIB, MIB, fit, near, try_fit, within};

/// Whatever the limit: the result is below it, whole, as long as the source, and not blown up.
#[track_caller]
fn check_grid(name: &str, input: &Bytes, seconds: f64) {
    let mut fits = false;
    for limit in [60, 250, 1024].map(|kib| kib * KIB) {
        let fitted = match try_fit(input, within(limit)) {
            Ok(fitted) => fitted,
            Err(Error::CannotFit { min_bytes, .. }) => {
                assert!(min_bytes.get() > limit && !fits, "{name}: {min_bytes} at {limit}");
                continue;
            }
            Err(error) => panic!("{name} at {limit}: {error}"),
        };
        fits = true;
        let report = fitted.report();
        // A little more is allowed for a container or a track that had to change.
        let most = report.input_bytes.as_f64() * 1.1 + 4096.0;
        assert!(report.bytes.as_f64() <= most, "{name}: {} from {}", report.bytes, report.input_bytes);
        assert_decodes(fitted.bytes());
        let facts = Facts::of(fitted.bytes());
        facts.assert_plays_inline();
        near(&format!("{name} at {limit}"), facts.seconds(), seconds, 0.06);
    }
    assert!(fits, "{name}: no limit is enough");
}

#[test]
fn limit_is_kept_for_a_test_picture() {
    check_grid("a test picture", &clips::old(), 2.0);
}

#[test]
fn limit_is_kept_for_noise() {
    check_grid("noise", &clips::noisy(), 2.0);
}

#[test]
fn limit_is_kept_for_scenes() {
    // Half of it stands still, half is hard: the bytes must go where they are needed.
    let scenes = "-f lavfi -i color=gray:s=320x180:r=30:d=1[still];\
                  mandelbrot=size=320x180:rate=30,trim=duration=1,noise=alls=30:allf=t[hard];[still][hard]concat";
    let source =
        make("scenes.mp4", &format!("{scenes} -c:v libx264 -preset ultrafast -qp 6 -pix_fmt yuv420p"));
    check_grid("scenes", &source, 2.0);
}

#[test]
fn limit_is_kept_for_much_sound() {
    let noise = "-f lavfi -i anoisesrc=d=3:c=white:r=48000:a=0.3,aformat=channel_layouts=stereo";
    let picture = "-f lavfi -i testsrc2=size=480x270:rate=30:duration=3";
    let source = make("loud.mkv", &format!("{picture} {noise} -c:v mpeg4 -q:v 1 -c:a pcm_s16le"));
    check_grid("much sound", &source, 3.0);
}

#[test]
fn limit_is_used_where_more_bytes_look_better() {
    let noise = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=8 -vf noise=alls=60:allf=t+u:all_seed=7";
    let source = make("long.mkv", &format!("{noise} -c:v mpeg4 -q:v 1"));
    for limit in [160 * KIB, 400 * KIB, MIB] {
        let fitted = fit(&source, within(limit));
        let report = fitted.report();
        assert!(report.input_bytes > report.limit && report.crf.is_some_and(|crf| crf > 18.0), "{report:?}");
        assert!(report.fill() >= 0.96, "{limit}: {}", report.fill());
    }
}

#[test]
fn small_inputs_stay_small() {
    let tone = "-f lavfi -i sine=frequency=440:duration=2 -c:a libmp3lame -b:a 32k";
    let easy = "-f lavfi -i color=navy:s=320x180:r=30:d=2";
    for (name, words) in [
        ("easy.mkv", format!("{easy} {tone} -c:v mpeg4 -q:v 10")),
        ("easy.mkv", format!("{easy} {tone} {}", H264.replace("yuv420p", "yuv444p"))),
        ("easy.gif", easy.to_owned()),
        ("easy.webm", format!("{easy} -c:v libvpx-vp9 -deadline realtime -b:v 50k")),
    ] {
        let source = make(name, &words);
        let fitted = fit(&source, within(8 * MIB));
        let most = (source.len() * 3 / 2).max(48 * 1024);
        assert!(fitted.bytes().len() <= most, "{words}: {} from {}", fitted.bytes().len(), source.len());
    }
}

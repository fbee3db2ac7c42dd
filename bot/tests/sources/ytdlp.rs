//! yt-dlp: the real program at a loopback page, its recorded output, and programs that behave badly.
//!
//! `vendor/install-deps.sh --dev` installs the real one where [`real`] looks for it. What stands in `data/ytdlp` was
//! printed by it; `record.py` there says how.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::domain::{Container, Failure, GoneReason, MediumKind, Post};
use azalea_bot::metrics::Tracker;
use azalea_bot::source::{Resolver, SourceName, SourceSettings, YtDlpFacts, YtDlpSettings};
use azalea_bot::store::Store;

use crate::support::server::Server;
use crate::{id, page};

/// The real yt-dlp: what `YTDLP` names, else the one that install-deps.sh puts into the user's own folder.
fn real() -> PathBuf {
    let named = std::env::var_os("YTDLP").map(PathBuf::from);
    let own = || Path::new(&std::env::var_os("HOME").unwrap()).join(".local/share/azalea/yt-dlp/bin/yt-dlp");
    let program = named.unwrap_or_else(own);
    assert!(program.exists(), "no {}; run sh vendor/install-deps.sh --dev", program.display());
    program
}

fn fake() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ytdlp/fake.sh")
}

fn settings(program: PathBuf, address: &str) -> SourceSettings {
    let ytdlp = YtDlpSettings { program, address: address.to_owned(), ..YtDlpSettings::default() };
    SourceSettings { order: vec![SourceName::YtDlp], ytdlp, ..SourceSettings::default() }
}

/// No web source is asked here.
fn resolver(settings: &SourceSettings) -> Resolver {
    Resolver::new(
        settings,
        &crate::support::http_to(&[]),
        Store::none(),
        Clock::system(),
        Tracker::new(false),
    )
    .unwrap()
}

async fn run(address: &str) -> Result<std::sync::Arc<Post>, Failure> {
    resolver(&settings(fake(), address)).resolve(id()).await
}

#[tokio::test]
async fn the_real_program_reads_a_page_with_two_videos() {
    let server = Server::start().await;
    let two = "<html><head><title>clips</title></head><body><video src=\"/a.mp4\"></video>\
        <video src=\"/b.mp4\"></video></body></html>";
    server.on("/20.html", [page(200, "text/html", two)]);
    let mut settings = settings(real(), &format!("{}{{id}}.html", server.base()));
    settings.ytdlp.extractors = "generic,html5".to_owned();
    settings.ytdlp.timeout = Duration::from_secs(120);
    let post = resolver(&settings).resolve(id()).await.unwrap();
    let media: Vec<_> =
        post.media.iter().map(|m| (m.kind, m.variants[0].url.clone(), m.variants[0].container)).collect();
    let wanted = ["/a.mp4", "/b.mp4"].map(|p| (MediumKind::Video, server.url(p).to_string(), Container::Mp4));
    assert_eq!(media, wanted);
}

#[tokio::test]
async fn the_real_program_follows_no_link_to_elsewhere() {
    let server = Server::start().await;
    let mut settings = settings(real(), &format!("{}{{id}}", server.base()));
    settings.ytdlp.timeout = Duration::from_secs(120);
    let failure = resolver(&settings).resolve(id()).await.unwrap_err();
    assert_eq!(failure.code(), "transient", "{failure}");
    assert_eq!(server.hits("/20"), 0, "only X's extractor may be used");
}

#[tokio::test]
async fn the_real_program_tells_its_version() {
    let settings = YtDlpSettings { program: real(), ..YtDlpSettings::default() };
    let facts = YtDlpFacts::look(&settings, &Clock::system()).await.unwrap();
    assert!(facts.age_days.is_some(), "{facts:?}");
}

#[tokio::test]
async fn age_is_counted_in_days() {
    let settings = YtDlpSettings { program: fake(), ..YtDlpSettings::default() };
    // The first of December 2026.
    let clock = Clock::manual(WallTime::from_millis(1_796_083_200_000));
    let facts = YtDlpFacts::look(&settings, &clock).await.unwrap();
    assert_eq!((facts.version.as_str(), facts.age_days), ("2026.10.26", Some(36)));
    clock.set(WallTime::from_millis(0));
    assert_eq!(YtDlpFacts::look(&settings, &clock).await.unwrap().age_days, Some(0));
    let missing = YtDlpSettings { program: PathBuf::from("/nowhere/yt-dlp"), ..YtDlpSettings::default() };
    let failure = YtDlpFacts::look(&missing, &clock).await.unwrap_err();
    assert_eq!(failure, Failure::ours("the program /nowhere/yt-dlp is not there"));
}

#[tokio::test]
async fn a_recorded_video_gives_its_files_and_never_the_thumbnail() {
    let post = run("exit:0:video").await.unwrap();
    assert!(post.sensitive);
    assert_eq!((post.author.handle.as_str(), post.text.as_str()), ("ann", "two words"));
    assert_eq!(post.media.len(), 1);
    let variants: Vec<_> = post.media[0].variants.iter().map(|v| (v.container, v.bit_rate)).collect();
    assert_eq!(
        variants,
        [(Container::Mp4, Some(2_176_000)), (Container::Mp4, Some(632_000)), (Container::Hls, None)]
    );
    assert!(post.media[0].variants.iter().all(|variant| !variant.url.contains("thumb")));
    assert!(post.media[0].variants[2].url.ends_with("/all.m3u8"), "the playlist with sound");
}

#[tokio::test]
async fn a_recorded_playlist_gives_its_media_in_order() {
    let post = run("exit:0:playlist").await.unwrap();
    let media: Vec<_> = post.media.iter().map(|medium| (medium.kind, medium.index.get())).collect();
    assert_eq!(media, [(MediumKind::Video, 1), (MediumKind::Gif, 2)]);
    assert_eq!(post.media[1].duration, None);
}

#[tokio::test]
async fn recorded_messages_have_their_class() {
    for (name, code) in [
        ("suspended", "gone"),
        ("unavailable", "gone"),
        ("deleted", "gone"),
        ("nsfw", "needs-login"),
        ("protected", "needs-login"),
        ("photo", "transient"),
        ("link", "transient"),
        ("unknown", "transient"),
        ("http-404", "transient"),
        ("http-503", "transient"),
        ("limited", "transient"),
        ("token", "transient"),
        ("api", "transient"),
        ("bug", "ours"),
    ] {
        let failure = run(&format!("exit:1:{name}")).await.unwrap_err();
        assert_eq!(failure.code(), code, "{name}: {failure}");
    }
    assert_eq!(run("exit:1:suspended").await, Err(Failure::Gone(GoneReason::Suspended)));
    assert_eq!(run("exit:1:deleted").await, Err(Failure::Gone(GoneReason::Deleted)));
}

#[tokio::test]
async fn exit_codes_count_before_messages() {
    for (code, wanted) in [(2, "ours"), (100, "transient"), (127, "gone")] {
        let failure = run(&format!("exit:{code}:suspended")).await.unwrap_err();
        assert_eq!(failure.code(), wanted, "{code}: {failure}");
    }
    assert_eq!(run("exit:127:nothing").await.unwrap_err().code(), "ours");
    assert_eq!(run("exit:0:nothing").await.unwrap_err().code(), "ours");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_our_fault() {
    for program in ["/nowhere/yt-dlp", "no-such-program-anywhere"] {
        let failure = resolver(&settings(program.into(), "x")).resolve(id()).await.unwrap_err();
        assert_eq!(failure, Failure::ours(format!("ytdlp: the program {program} is not there")));
    }
    let no_program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ytdlp/record.py");
    let failure = resolver(&settings(no_program, "x")).resolve(id()).await.unwrap_err();
    assert_eq!(failure.code(), "ours");
}

#[tokio::test]
async fn a_program_that_prints_too_much_is_ended() {
    for address in ["flood", "flood-errors"] {
        let failure = run(address).await.unwrap_err();
        assert_eq!(failure.code(), "ours", "{failure}");
        assert!(failure.to_string().contains("printed more than"), "{failure}");
    }
}

#[tokio::test]
async fn a_program_sees_only_the_variables_it_needs() {
    assert!(run("variables").await.is_ok());
}

/// A program that hangs, and the pipe that it and its child hold open.
struct Hanging {
    folder: tempfile::TempDir,
}

impl Hanging {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
        Self { folder }
    }

    fn settings(&self) -> SourceSettings {
        settings(fake(), &format!("hang:{}", self.pipe().display()))
    }

    fn pipe(&self) -> PathBuf {
        self.folder.path().join("pipe")
    }
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_by_the_time_out() {
    let hanging = Hanging::new();
    let mut settings = hanging.settings();
    settings.ytdlp.timeout = Duration::from_millis(300);
    let failure = resolver(&settings).resolve(id()).await.unwrap_err();
    assert_eq!(failure.code(), "transient");
    assert!(failure.to_string().contains("took longer"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_nobody_waits_for_ends_with_all_that_it_started() {
    let hanging = Hanging::new();
    let pipe = hanging.pipe();
    // Opening it waits for the program, and reading for its first word.
    let begun = tokio::task::spawn_blocking(move || {
        let mut pipe = std::fs::File::open(pipe).unwrap();
        let mut word = [0; 6];
        pipe.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"begun\n");
        pipe
    });
    let resolver = resolver(&hanging.settings());
    let mut pipe = tokio::select! {
        pipe = begun => pipe.unwrap(),
        outcome = resolver.resolve(id()) => panic!("{outcome:?}"),
    };
    drop(resolver);
    // It ends when the last of them is gone.
    let rest = tokio::task::spawn_blocking(move || pipe.read_to_end(&mut Vec::new()).unwrap());
    assert_eq!(rest.await.unwrap(), 0);
}

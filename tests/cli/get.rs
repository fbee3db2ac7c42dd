//! `get`: from a link, or a file, to files that fit.

use serde_json::{Value, json};

use crate::support::{Place, Run};
use crate::x::{self, X};

const LINK: &str = "https://x.com/ann/status/20";

/// A place with a clip, and an X whose post has it, below a picture.
fn album() -> (Place, X) {
    let (place, x) = (Place::new(), X::start());
    place.clip("clip.mp4");
    place.picture("clip.mp4", "picture.jpg");
    x.file("/v.mp4", &place.read("clip.mp4"));
    x.file("/p.jpg", &place.read("picture.jpg"));
    x.post(&json!([x.medium("image", "/p.jpg"), x.medium("video", "/v.mp4")]));
    (place, x)
}

/// What JSON tells of a failure, which is told in words as well.
#[track_caller]
fn fails(run: Run, code: i32, kind: &str, reason: &str) {
    let run = run.fails(code, reason);
    let error = &run.object()["error"];
    assert_eq!(error["kind"], kind, "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
}

#[test]
fn a_file_is_made_to_fit_and_told_as_json() {
    let place = Place::new();
    place.clip("clip.mp4");
    let run: Run = x::command(&place, &["get", "clip.mp4", "--json", "-o", "out"]).output().unwrap().into();
    let told = run.succeeds().object();
    assert_eq!((&told["link"], &told["post"]), (&Value::Null, &Value::Null), "{told}");
    // ffmpeg puts the index at the end, and nothing else is wrong with its file.
    assert_eq!(told["action"], "remux");
    assert!(told["stages"]["optimize"].is_u64(), "{told}");
    let files = told["files"].as_array().unwrap();
    assert_eq!(files.len(), 1);
    let file = &files[0];
    assert_eq!((&file["path"], &file["kind"]), (&json!("out/clip.mp4"), &json!("video")));
    assert_eq!(file["bytes"], place.read("out/clip.mp4").len());
    assert_eq!((&file["width"], &file["height"]), (&json!(320), &json!(180)));
    assert!((file["duration"].as_f64().unwrap() - 2.0).abs() < 0.1, "{file}");
    assert_eq!(file["alt"], Value::Null);
    assert_eq!(place.names_in("out"), ["clip.mp4"]);
    assert!(place.names().iter().all(|name| ["clip.mp4", "out", "store"].contains(&name.as_str())));
}

#[test]
fn a_file_is_made_as_small_as_it_is_wanted() {
    let place = Place::new();
    place.old_clip("old.avi");
    let words = ["get", "old.avi", "--json", "--limit", "100KiB", "-o", "out"];
    let run: Run = x::command(&place, &words).output().unwrap().into();
    let told = run.succeeds().object();
    assert_eq!(told["action"], "transcode");
    assert!(told["files"][0]["bytes"].as_u64().unwrap() <= 100 << 10, "{told}");
    assert_eq!(place.names_in("out"), ["old.mp4"]);
}

/// Once, only JSON said that a file is not all that it could be.
#[test]
fn what_is_wrong_with_a_file_that_could_be_made_is_said() {
    let place = Place::new();
    place.old_clip("old.avi");
    let whole = place.read("old.avi");
    place.write("cut.avi", &whole[..whole.len() / 2]);
    let run: Run = x::command(&place, &["get", "cut.avi", "-o", "out"]).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("warning: out/cut.mp4: 1 damaged piece of the input was left out"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_post_becomes_files_in_its_order() {
    let (place, x) = album();
    let told = x.run(&place, &["get", LINK, "--json", "-o", "out"]).succeeds().object();
    assert_eq!((&told["link"], &told["post"]), (&json!(LINK), &json!("x:20")));
    assert_eq!(told["author"], json!({ "name": "Ann", "handle": "ann" }));
    assert_eq!(
        (&told["action"], &told["spoiler"], &told["missing"]),
        (&json!("remux"), &json!(false), &json!([]))
    );
    for stage in ["resolve", "download", "optimize", "upload"] {
        assert!(told["stages"][stage].is_u64(), "{stage} in {told}");
    }
    let files = told["files"].as_array().unwrap();
    let column = |name: &str| files.iter().map(|file| file[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("path"), ["out/ann-20-1.jpg", "out/ann-20-2.mp4"]);
    assert_eq!(column("kind"), ["photo", "video"]);
    assert_eq!(column("alt"), ["what /p.jpg shows", "what /v.mp4 shows"]);
    assert_eq!(column("bytes"), [place.read("out/ann-20-1.jpg").len(), place.read("out/ann-20-2.mp4").len()]);
    assert_eq!(column("width"), [320, 320]);
    assert_eq!(column("quoted"), [false, false]);
    assert_eq!(place.names_in("out"), ["ann-20-1.jpg", "ann-20-2.mp4"]);
    // Nothing is left in the folder for temporary files, which is this one.
    assert_eq!(place.names(), ["clip.mp4", "out", "picture.jpg", "store"]);
}

#[test]
fn without_json_each_file_is_a_line() {
    let (place, x) = album();
    let run = x.run(&place, &["get", &format!("{LINK}/video/2"), "-o", "out"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let text = run.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("out/ann-20-2.mp4: video, 320x180, 2.0 s, "), "{text}");
    assert_eq!(place.names_in("out"), ["ann-20-2.mp4"]);
}

/// Once, only JSON and the console noticed that nothing was printed.
#[cfg(target_os = "linux")]
#[test]
fn a_line_that_cannot_be_printed_is_a_failure() {
    let (place, x) = album();
    for (words, name) in [
        (&["get", LINK, "-o", "out"][..], "ann-20-2.mp4"),
        (&["get", LINK, "--json", "-o", "out"], "ann-20-2.mp4"),
        (&["get", "clip.mp4", "-o", "out"], "clip.mp4"),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = x.command(&place, words);
        let run: Run = command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap().into();
        let run = run.fails(1, "cannot write to standard output");
        assert!(place.names_in("out").iter().any(|found| found == name), "{}", run.stderr);
    }
}

#[test]
fn media_of_a_quoted_post_are_named_by_its_author_and_marked() {
    let (place, x) = album();
    let quoted = json!({
        "tweetID": "19",
        "user_screen_name": "bob",
        "media_extended": [x.medium("image", "/p.jpg")],
    });
    let post = json!({ "tweetID": "20", "user_screen_name": "ann", "media_extended": [], "qrt": quoted });
    x.json("/i/status/20", &post);
    let told = x.run(&place, &["get", LINK, "--json", "-o", "out"]).succeeds().object();
    let file = &told["files"][0];
    assert_eq!((&file["path"], &file["quoted"]), (&json!("out/bob-19-1.jpg"), &json!(true)));
    assert_eq!(told["author"]["handle"], "ann");
}

#[test]
fn what_was_learnt_and_made_is_there_for_the_next_run() {
    let (place, x) = album();
    let first = x.run(&place, &["get", LINK, "--json", "-o", "one"]).succeeds().object();
    let second = x.run(&place, &["get", LINK, "--json", "-o", "two"]).succeeds().object();
    assert_eq!(first["action"], second["action"]);
    assert_eq!(place.read("one/ann-20-2.mp4"), place.read("two/ann-20-2.mp4"));
    assert_eq!(["/i/status/20", "/p.jpg", "/v.mp4"].map(|path| x.hits(path)), [1, 1, 1]);
}

#[test]
fn a_text_that_is_no_link_to_a_post_is_a_usage_error() {
    let place = Place::new();
    for link in ["https://example.com/ann/status/20", "https://x.com/ann", "ftp://x.com/ann/status/20"] {
        let run = x::command(&place, &["get", link, "--json"]).output().unwrap().into();
        fails(run, 2, "usage", "not a link to a post");
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_file_that_is_not_there_is_bad_input() {
    let place = Place::new();
    // A folder is there, but is no file.
    for name in ["missing.mp4", "."] {
        let run = x::command(&place, &["get", name, "--json", "-o", "out"]).output().unwrap().into();
        fails(run, 3, "unsupported", &format!("it cannot be used: cannot open {name}: "));
    }
    assert!(!place.names().contains(&"out".to_owned()));
}

#[test]
fn a_file_that_is_no_medium_is_bad_input() {
    let place = Place::new();
    place.write("notes.mp4", b"these are only words");
    let run = x::command(&place, &["get", "notes.mp4", "--json", "-o", "out"]).output().unwrap().into();
    fails(run, 3, "unsupported", "error: it cannot be used: ");
    assert!(!place.names().contains(&"out".to_owned()));
}

#[test]
fn a_post_that_is_gone_is_bad_input() {
    let (place, x) = album();
    x.json("/2/status/20", &json!({ "code": 404, "status": { "type": "tombstone", "reason": "deleted" } }));
    let mut command = x.command(&place, &["get", LINK, "--json", "-o", "out"]);
    fails(command.env("AZALEA_SOURCES__ORDER", "fxtwitter").output().unwrap().into(), 3, "gone", "deleted");
    assert!(!place.names().contains(&"out".to_owned()));
}

#[test]
fn a_post_without_media_is_bad_input() {
    let (place, x) = album();
    x.post(&json!([]));
    fails(x.run(&place, &["get", LINK, "--json", "-o", "out"]), 3, "no-media", "no media");
}

#[test]
fn a_source_that_is_down_is_the_network_s_fault() {
    let (place, x) = album();
    x.status("/i/status/20", 503);
    fails(x.run(&place, &["get", LINK, "--json", "-o", "out"]), 6, "transient", "503");
    // Nobody listens there: the port was free a moment ago.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = x.command(&place, &["get", LINK, "--json", "-o", "out"]);
    let run =
        command.env("AZALEA_SOURCES__VXTWITTER__BASE_URL", format!("http://{nobody}")).output().unwrap();
    fails(run.into(), 6, "transient", "vxtwitter");
    assert!(!place.names().contains(&"out".to_owned()));
}

#[test]
fn a_medium_that_is_elsewhere_is_forbidden() {
    let (place, x) = album();
    x.post(&json!([{ "type": "video", "url": "http://169.254.169.254/v.mp4" }]));
    fails(x.run(&place, &["get", LINK, "--json", "-o", "out"]), 3, "forbidden", "not an allowed address");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let (place, x) = album();
    x.stalling_file("/v.mp4", &place.read("clip.mp4"));
    let mut command = x.command(&place, &["get", LINK, "--json", "-o", "out"]);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    x.wait_for("/v.mp4");
    let kill = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    fails(child.wait_with_output().unwrap().into(), 5, "cancelled", "cancelled");
    assert_eq!(place.names(), ["clip.mp4", "picture.jpg", "store"]);
    assert!(place.names_in("store/artifacts").iter().all(|name| !name.ends_with(".part")));
}

//! `demo`: ten people, five channels, one transcode.

use crate::support::{Place, Run};
use crate::x;

#[test]
fn ten_mentions_cost_one_download_and_one_transcode() {
    let place = Place::new();
    let run: Run = x::command(&place, &["demo", "--seconds", "1", "-o", "out"]).output().unwrap().into();
    let text = run.succeeds().text();
    let sums = text.lines().find(|line| line.starts_with("resolved ")).unwrap_or_else(|| panic!("{text}"));
    for sum in ["resolved 1×", "downloaded 1×", "transcoded 1×"] {
        assert!(sums.contains(sum), "{sum} in {text}");
    }
    assert!(text.contains("delivered 5×   links to earlier posts 5×"), "{text}");
    assert!(text.contains("10 of 10 answered"), "{text}");
    let mut files = Vec::new();
    for channel in place.names_in("out") {
        for name in place.names_in(&format!("out/{channel}")) {
            files.push(place.read(format!("out/{channel}/{name}")));
        }
    }
    assert_eq!(files.len(), 5);
    assert!(files.iter().all(|file| *file == files[0] && !file.is_empty()));
    // Its own folder is gone, and what it keeps for others was not touched.
    assert_eq!(place.names(), ["out"]);
}

#[test]
fn a_demo_that_keeps_nothing_leaves_nothing() {
    let place = Place::new();
    let run: Run = x::command(&place, &["demo", "--seconds", "1"]).output().unwrap().into();
    let text = run.succeeds().text();
    assert!(text.contains("to keep the files: azalea demo -o DIR"), "{text}");
    assert_eq!(place.names(), [""; 0]);
}

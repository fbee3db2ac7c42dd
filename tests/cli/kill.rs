//! The built program is killed in the middle of its work, again and again: nothing is lost, and no post comes twice into
//! a channel, however many ask for it there.
#![cfg(unix)]

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Place, Run};
use crate::x::X;

/// Kills.
const ROUNDS: usize = 5;
/// Posts that are asked for before each.
const POSTS: usize = 8;

#[test]
fn what_was_accepted_is_delivered_once_however_often_the_program_is_killed() {
    let (place, x) = (Place::new(), X::start());
    place.clip("clip.mp4");
    let clip = place.read("clip.mp4");
    let posts = 100..100 + ROUNDS * POSTS;
    for post in posts.clone() {
        let path = format!("/v-{post}.mp4");
        x.file(&path, &clip);
        x.numbered_post(post, &json!([x.medium("video", &path)]));
    }
    for round in 0..ROUNDS {
        let mut command = x.command(&place, &["console", "-o", "answers"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let first = 100 + round * POSTS;
        for post in first..first + POSTS {
            // Others want it there too, and one of the round before, which may just have come.
            for (user, post) in [("ann", post), ("bob", post), ("eve", post.saturating_sub(POSTS).max(100))] {
                let line = format!("#c{} @{user}: https://x.com/ann/status/{post}\n", post % 3);
                input.write_all(line.as_bytes()).unwrap();
            }
        }
        // Killed a little further on in each round: while the first is fetched, while the last is.
        x.wait_for(&format!("/v-{}.mp4", first + round));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // As a kill leaves it that comes while a file is written.
    std::fs::create_dir_all(place.path("answers/c1")).unwrap();
    place.write("answers/c1/.azalea-00000000deadbeef.part", b"half");
    let mut command = x.command(&place, &["console", "-o", "answers"]);
    let run: Run = command.stdin(Stdio::null()).output().unwrap().into();
    let said = run.succeeds().text();

    let mut delivered = 0;
    let names: Vec<String> =
        (0..3).flat_map(|channel| place.names_in(&format!("answers/c{channel}"))).collect();
    for post in posts {
        let files = names.iter().filter(|name| name.ends_with(&format!("-ann-{post}-1.mp4"))).count();
        let asked = x.hits(&format!("/i/status/{post}"));
        // Whom the kill came before, nobody heard of; whoever is killed alone too often is told so.
        let told = said.contains("something is wrong with this bot");
        assert!(files == 1 || (files == 0 && (asked == 0 || told)), "post {post}: {files} files, {said}");
        delivered += files;
    }
    assert_eq!(names.len(), delivered, "nothing else stands there: {names:?}");
    assert!(delivered >= ROUNDS, "{delivered} were delivered");
}

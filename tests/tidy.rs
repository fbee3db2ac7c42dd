//! The house rules as tests: reads the sources and fails with file, line and rule.
//!
//! The rules stand in `tidy/rules.rs`. A new rule goes there, with a test here that shows it a bad file.

#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;

use std::path::Path;

use rules::{Finding, RULES, Rule};
use source::{Source, read_all};

/// Where Rust sources stand, each of which must have some.
const CODE: [&str; 4] = ["engine", "bot", "src", "tests"];

#[test]
fn the_house_rules_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = [&CODE[..], &["benches", "build.rs"]].concat();
    let mut sources = read_all(root, &code, &[".rs", ".md", ".toml"]).unwrap();
    for folder in CODE {
        let some =
            sources.iter().any(|source| source.is_rust() && source.path.starts_with(&format!("{folder}/")));
        assert!(some, "no sources found in {folder}/: the rules would hold for nothing");
    }
    let texts = ["docs", "vendor", ".ci", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    sources.extend(read_all(root, &texts, &[".md", ".sh", ".toml", "/run"]).unwrap());
    let found: Vec<Finding> =
        sources.iter().flat_map(|source| RULES.iter().flat_map(move |rule| rule(source))).collect();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

/// What a rule says about a file, by lines.
#[track_caller]
fn check(rule: Rule, path: &str, text: &str, lines: &[usize]) {
    let found = rule(&Source::new(path, text));
    let at: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(at, lines, "{path}: {text}\n{found:#?}");
}

#[test]
fn a_finding_names_file_line_and_rule() {
    let found = rules::direction(&Source::new("engine/src/units.rs", "\nuse crate::libav::Decoder;"));
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["engine/src/units.rs:2: direction: units must not know libav"]);
}

#[test]
fn engine_rooms_know_only_what_is_below_them() {
    let rule = rules::direction;
    check(rule, "engine/src/units.rs", "use crate::error::Error;", &[1]);
    check(rule, "engine/src/error.rs", "use crate::fit::Fit;", &[1]);
    check(rule, "engine/src/planner/rate.rs", "use crate::libav::Encoder;", &[1]);
    check(rule, "engine/src/planner/rate.rs", "use crate::{units::BitRate,\n libav};", &[2]);
    check(rule, "engine/src/planner/rate.rs", "let x = super::super::pool::threads();", &[1]);
    check(rule, "engine/src/planner/mod.rs", "use super::pipeline;", &[1]);
    check(rule, "engine/src/mp4/write.rs", "use crate::report::Report;", &[1]);
    check(rule, "engine/src/pipeline/mod.rs", "use crate::probe;", &[1]);
    check(rule, "engine/src/probe.rs", "use crate::engine::Engine;", &[1]);
    check(rule, "engine/src/engine.rs", "use azalea_bot::domain;", &[1]);
    check(
        rule,
        "engine/src/planner/rate.rs",
        "use crate::units::BitRate;\nuse super::budget;\nuse crate::planner::ladder;",
        &[],
    );
    check(rule, "engine/src/mp4/mod.rs", "use crate::{media, units::*, error::Error, limits};", &[]);
    check(
        rule,
        "engine/src/pipeline/mod.rs",
        "use crate::{libav, mp4, picture, planner, pool, sniff, source};",
        &[],
    );
    check(rule, "engine/src/lib.rs", "pub use crate::engine::Engine;", &[]);
}

#[test]
fn bot_rooms_know_only_what_is_below_them() {
    let rule = rules::direction;
    check(rule, "bot/src/domain/link.rs", "use crate::clock::Clock;", &[1]);
    check(rule, "bot/src/queue/state.rs", "use crate::dedup::Claim;", &[1]);
    check(rule, "bot/src/guard/rate.rs", "fn f() {\n crate::intake::take(); }", &[2]);
    check(rule, "bot/src/pipeline/worker.rs", "use crate::frontend::discord::Reply;", &[1]);
    check(rule, "bot/src/app.rs", "use azalea::settings::Settings;", &[1]);
    check(rule, "bot/src/pipeline/worker.rs", "use crate::domain::Link;\nuse crate::queue::Lease;", &[]);
    check(rule, "bot/src/app.rs", "use crate::{web, frontend, intake};", &[]);
}

#[test]
fn rooms_without_a_place_in_the_plan_are_found() {
    check(rules::direction, "engine/src/helpers.rs", "use crate::units::ByteSize;", &[1]);
    check(rules::direction, "engine/src/fit.rs", "use crate::ByteSize;", &[1]);
}

#[test]
fn test_code_may_name_what_it_needs() {
    let text = "#[cfg(test)]\nmod tests { use crate::libav::Decoder; }";
    check(rules::direction, "engine/src/mp4/mod.rs", text, &[]);
    check(rules::direction, "engine/src/mp4/tests.rs", "use crate::libav::Decoder;", &[]);
}

#[test]
fn each_foreign_crate_has_one_door() {
    let rule = rules::one_door;
    for (path, text) in [
        ("engine/src/pipeline/demux.rs", "use ffmpeg_next::format;"),
        ("engine/src/probe.rs", "use ffmpeg_next as ffmpeg;"),
        ("engine/src/probe.rs", "let x = ffmpeg_sys_next::avformat_version();"),
        ("engine/src/source.rs", "use crossbeam_channel::bounded;"),
        ("bot/src/dedup/processed.rs", "use ::redb::Database;"),
        ("bot/src/queue/state.rs", "use redb::{Database};"),
        ("bot/src/store/mod.rs", "use moka::sync::Cache;"),
        ("bot/src/source/vxtwitter.rs", "use reqwest::Client;"),
        ("bot/src/frontend/console.rs", "use serenity::all::Message;"),
        ("bot/src/queue/mod.rs", "use tokio_postgres::Client;"),
        ("bot/src/config.rs", "use clap::Parser;"),
        ("bot/src/pipeline/worker.rs", "use azalea_engine::Engine;"),
        ("src/main.rs", "use ffmpeg_next::init;"),
    ] {
        check(rule, path, text, &[1]);
    }
    for (path, text) in [
        ("engine/src/libav/mod.rs", "use ffmpeg_next as ffmpeg; use ffmpeg::format;"),
        ("engine/src/libav/mod.rs", "struct Facts { ffmpeg: String }"),
        ("engine/src/pipeline/mod.rs", "use crossbeam_channel::bounded;"),
        ("engine/src/report.rs", "// ffmpeg_next::format\nlet ffmpeg = \"redb::Database\";"),
        ("bot/src/queue/embedded/disk.rs", "use redb::Database;"),
        ("src/cli.rs", "use clap::Parser;"),
        ("src/command/fit.rs", "use azalea_engine::Fit;"),
        ("benches/engine.rs", "use ffmpeg_next::format;"),
    ] {
        check(rule, path, text, &[]);
    }
}

#[test]
fn the_planner_is_pure() {
    for text in [
        "use std::fs;",
        "use std::{fmt,\nthread};",
        "use std::time::{Duration, Instant};",
        "use std::time;\nfn f() { time::SystemTime::now(); }",
        "use rand::Rng;",
        "use crate::libav::Encoder;",
        "use ffmpeg_next::codec;",
        "fn f() { std::env::var(\"A\"); }",
    ] {
        check(rules::pure_planner, "engine/src/planner/rate.rs", text, &[text.lines().count()]);
        check(rules::pure_planner, "engine/src/pipeline/mod.rs", text, &[]);
    }
    check(rules::pure_planner, "engine/src/planner/rate.rs", "use std::{fmt, time::Duration};", &[]);
}

#[test]
fn long_files_are_found() {
    check(rules::file_length, "src/a.rs", &"\n".repeat(600), &[]);
    check(rules::file_length, "src/a.rs", &"\n".repeat(601), &[601]);
    check(rules::file_length, "docs/a.md", &"\n".repeat(601), &[]);
}

#[test]
fn unsafe_stands_in_libav_only() {
    for path in
        ["src/main.rs", "engine/src/pool.rs", "engine/src/libav.rs", "bot/src/a.rs", "engine/tests/a.rs"]
    {
        check(rules::unsafe_code, path, "// SAFETY: none\nunsafe { f() }", &[2]);
    }
    check(rules::unsafe_code, "src/main.rs", "#![forbid(unsafe_code)] // unsafe\nlet a = \"unsafe\";", &[]);
}

#[test]
fn unsafe_is_argued() {
    let check =
        |text: &str, lines: &[usize]| check(rules::unsafe_code, "engine/src/libav/io.rs", text, lines);
    check("unsafe { f() }", &[1]);
    check("// It is fine.\nunsafe { f() }", &[2]);
    check("// SAFETY: of another.\nlet a = 1;\nunsafe { f() }", &[3]);
    check("// SAFETY: of another.\n\nunsafe { f() }", &[3]);
    check("unsafe impl Send for A {}", &[1]);
    check("/// What it does.\npub(crate) unsafe fn f() {}", &[2]);
    check("unsafe extern \"C\" fn f() {}", &[1]);
    check("unsafe extern \"C\" { fn f(); }", &[1]);
    check("// SAFETY: it lives.\nunsafe { f() }", &[]);
    check("unsafe { f() } // SAFETY: it lives.", &[]);
    check("// SAFETY: it lives,\n// and long.\n#[allow(x)]\nlet a =\n    unsafe { f() };", &[]);
    check("// SAFETY: one owner.\nunsafe impl Send for A {}", &[]);
    check("/// Does.\n///\n/// # Safety\n/// It lives.\n#[inline]\npub unsafe fn f() {}", &[]);
    check("type F = unsafe extern \"C\" fn(*mut u8);", &[]);
}

#[test]
fn unfinished_work_is_found() {
    for text in [
        "todo!()",
        "unimplemented!(\"x\")",
        "dbg!(x)",
        "#[ignore]",
        "#[ignore = \"slow\"]",
        "#[cfg_attr(a, ignore)]",
    ] {
        check(rules::unfinished, "engine/tests/a.rs", &format!("\n{text}"), &[2]);
    }
    check(
        rules::unfinished,
        "src/a.rs",
        "// todo!()\nlet todo = \"dbg!()\"; #[must_use] fn ignore() {}",
        &[],
    );
}

#[test]
fn paths_of_one_machine_are_found() {
    for folder in ["home", "root", "Users", "work"] {
        check(rules::machine_paths, "docs/a.md", &format!("see\n`/{folder}/ann/a.mp4`"), &[2]);
        check(
            rules::machine_paths,
            "docs/a.md",
            &format!("see https://example.org/{folder}/a and ./{folder}/a"),
            &[],
        );
    }
}

#[test]
fn crate_roots_rule_out_unsafe_code() {
    for path in ["src/main.rs", "bot/src/lib.rs"] {
        check(rules::crate_roots, path, "//! #![forbid(unsafe_code)]\n#![deny(unsafe_code)]", &[1]);
        check(rules::crate_roots, path, "//! A.\n#![forbid(unsafe_code)]", &[]);
    }
    check(rules::crate_roots, "engine/src/lib.rs", "mod a;", &[1]);
    check(rules::crate_roots, "engine/src/lib.rs", "#![deny(unsafe_code)]", &[]);
}

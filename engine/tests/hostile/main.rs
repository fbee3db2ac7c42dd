//! Thousands of bad files, and the process never notices.
//!
//! This program starts itself once for each whole file: that run damages the file in as many ways as it was told to, the
//! same ones every time, makes each fit, and holds the engine to its word. It notes what it is about to do, so that
//! when it dies the first run can say of what.
//!
//! `AZALEA_HOSTILE_FILES` is how many files there are in all, 10,000 unless set. `AZALEA_HOSTILE_SEEDS` may name a folder
//! with more whole files of at most 1 MiB. `cargo test --test hostile -- gif:417` makes one case alone,
//! and keeps its file in the folder for temporary files.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that cannot go on must fail, and says how it goes"
)]

mod boxes;
mod harm;
mod seeds;
mod trial;

use std::collections::VecDeque;
use std::env;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use seeds::Seed;

/// Tells this program that it is the run for the seed at this path.
const PART: &str = "AZALEA_HOSTILE_PART";
/// How many files there are unless it is said.
const FILES: usize = 10_000;
/// Runs at once; each has an engine with one thread.
const SIDE_BY_SIDE: usize = 2;
/// What a run may map, in KiB: a file that makes libav ask for more is told no, as on a small host.
const ADDRESS_SPACE_KIB: usize = 6 << 20;

fn main() -> ExitCode {
    if let Some(path) = env::var_os(PART) {
        let words: Vec<usize> = env::args().skip(1).map(|word| word.parse().unwrap()).collect();
        return ExitCode::from(u8::from(!trial::run(Path::new(&path), words[0]..words[1])));
    }
    let wanted: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().unwrap();
    let seeds = seeds::all(folder.path());
    let files = env::var("AZALEA_HOSTILE_FILES").map_or(FILES, |text| text.parse().unwrap());
    let each = files.div_ceil(seeds.len());
    let mut waiting: VecDeque<Part> = seeds
        .into_iter()
        .filter_map(|seed| {
            let first = match wanted.first().map(|word| word.split_once(':').unwrap_or((word, ""))) {
                None => 0..each,
                Some((name, "")) if name == seed.name || "hostile".contains(name) => 0..each,
                Some((name, case)) if name == seed.name => {
                    let case: usize = case.parse().unwrap();
                    case..case + 1
                }
                Some(_) => return None,
            };
            Some(Part { seed, cases: first })
        })
        .collect();
    let began = Instant::now();
    println!("{} whole files, {each} cases of each, {files} in all", waiting.len());
    let (mut running, mut failed) = (VecDeque::new(), 0);
    loop {
        while running.len() < SIDE_BY_SIDE
            && let Some(part) = waiting.pop_front()
        {
            let child = part.start(folder.path());
            running.push_back((part, child));
        }
        let Some((part, child)) = running.pop_front() else { break };
        let (well, rest) = part.end(folder.path(), child);
        failed += usize::from(!well);
        waiting.extend(rest);
    }
    println!("{failed} of the runs went wrong; {} s", began.elapsed().as_secs());
    ExitCode::from(u8::from(failed > 0))
}

/// The cases of one seed.
struct Part {
    seed: Seed,
    cases: std::ops::Range<usize>,
}

impl Part {
    fn start(&self, folder: &Path) -> Child {
        // A shell sets the limit, since that takes a call that is not safe.
        Command::new("sh")
            .args(["-c", "ulimit -c 0; ulimit -v \"$1\"; exec \"$2\" \"$3\" \"$4\"", "sh"])
            .arg(ADDRESS_SPACE_KIB.to_string())
            .arg(env::current_exe().unwrap())
            .args([self.cases.start.to_string(), self.cases.end.to_string()])
            .env(PART, &self.seed.path)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits for the run; whether it went well, and what is left to do when the process died.
    fn end(self, folder: &Path, child: Child) -> (bool, Option<Self>) {
        let name = &self.seed.name;
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            println!("ok    {name}: {}\n{}", said.trim(), String::from_utf8_lossy(&output.stderr));
            return (true, None);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(1) {
            println!("WRONG {name}: {}\n{}", said.trim(), first_lines(&complaint));
            return (false, None);
        }
        let case = std::fs::read_to_string(folder.join(trial::note(name))).unwrap_or_default();
        println!("DIED  {name}:{case}, {}\n{}", output.status, first_lines(&complaint));
        let next = case
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .map_or(self.cases.end, |case: usize| case + 1);
        let rest = (next < self.cases.end).then_some(Self { cases: next..self.cases.end, seed: self.seed });
        (false, rest)
    }
}

fn first_lines(text: &str) -> String {
    text.lines().take(30).collect::<Vec<_>>().join("\n")
}

/// What a case may take by the clock; twice as much is a hang.
const TIME: Duration = Duration::from_secs(5);

//! Ten thousand who ask for one post: what it costs, and that it costs one file.

use std::collections::HashMap;
use std::time::Instant;

use azalea_bot::dedup::Delivered;
use azalea_bot::domain::ChannelId;
use azalea_bot::intake::{Intake, Outcome};
use azalea_bot::metrics::Counter;
use azalea_engine::ByteSize;
use tokio::task::JoinSet;

use crate::clip::SMALL;
use crate::house::{House, ask, server};

/// Less than the small clip has, so that it must be encoded anew.
const LIMIT: u64 = 512 << 10;
/// As fast as a line at home.
const BYTES_PER_SECOND: u64 = 12_500_000;

/// How many ask in how many channels.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    asks: u64,
    channels: u64,
}

impl Crowd {
    const ONE: Self = Self { asks: 1, channels: 1 };
    const FEW: Self = Self { asks: 200, channels: 10 };
    const MANY: Self = Self { asks: 10_000, channels: 100 };

    /// How many come when all is over. One in ten.
    const fn late(self) -> u64 {
        self.asks / 10
    }
}

/// What somebody got.
enum Got {
    /// The video, in the asker's channel.
    Video,
    /// Word of where it stands, after a while or at once.
    Pointer { channel: ChannelId, delivered: Delivered, waited: bool },
    /// Nothing.
    Nothing(String),
}

/// One who asks alone, then the crowd; whether all counts are right.
pub(crate) async fn run(quick: bool) -> bool {
    let clip = SMALL.index_first();
    let mut right = true;
    let mut peaks = vec![peak()];
    for crowd in [Crowd::ONE, if quick { Crowd::FEW } else { Crowd::MANY }] {
        let server = server(&clip, SMALL, BYTES_PER_SECOND).await;
        let mut house = House::start(&server, LIMIT).await;
        let begun = Instant::now();
        let mut got = all(&house.app.intake, 0..crowd.asks - crowd.late(), crowd.channels).await;
        let posted = house.all_posted(crowd.channels).await;
        let first = begun.elapsed();
        let late = Instant::now();
        got.extend(all(&house.app.intake, crowd.asks - crowd.late()..crowd.asks, crowd.channels).await);
        let (late, wall) = (late.elapsed(), begun.elapsed());

        let places = posted.into_iter().map(|(channel, posted)| (channel, posted.delivered)).collect();
        let tally = Tally::of(got, &places);
        let tracker = house.app.rooms.tracker.clone();
        let besides = house.stop().await;
        let totals = tracker.totals();
        let counts = server.stop().await;
        peaks.push(peak());
        println!(
            "crowd: {} asks over {} channels: {wall:.2?}, of these {first:.2?} until all videos stood there and {} had \
             an answer, {late:.2?} for {} who came later",
            crowd.asks,
            crowd.channels,
            crowd.asks - crowd.late(),
            crowd.late(),
        );
        println!(
            "crowd: of the pointers, {} waited for it and {} were given at once",
            tally.waited, tally.at_once
        );
        let channels_served = u64::try_from(places.len()).unwrap();
        right &= check(&[
            ("asked", totals.counter(Counter::Requests), crowd.asks),
            ("resolved", counts.api_requests, 1),
            ("downloaded", counts.media_requests, 1),
            ("files made", totals.counter(Counter::ArtifactMisses), 1),
            ("transcoded", totals.counter(Counter::Transcodes), 1),
            ("delivered", totals.counter(Counter::Delivered), crowd.channels),
            ("posted", crowd.channels + besides, crowd.channels),
            ("channels with the video", channels_served, crowd.channels),
            ("given the video", tally.videos, crowd.channels),
            ("given a pointer", tally.waited + tally.at_once, crowd.asks - crowd.channels),
            ("given a wrong pointer", tally.wrong, 0),
            ("given nothing", tally.nothing, 0),
        ]);
    }
    match peaks[..] {
        [Some(before), Some(one), Some(many)] => println!(
            "crowd: peak of resident memory {before} at the start, {one} with one ask, {many} with the crowd: {} more",
            many.saturating_sub(one)
        ),
        _ => println!("crowd: this system does not tell the peak of resident memory"),
    }
    right
}

/// Lets these ask at once, each a task, until all have an answer.
async fn all(intake: &Intake, numbers: std::ops::Range<u64>, channels: u64) -> Vec<Got> {
    let mut asking = JoinSet::new();
    for number in numbers {
        let intake = intake.clone();
        asking.spawn(async move { answer(ask(&intake, number, number % channels).await).await });
    }
    asking.join_all().await
}

async fn answer(outcome: Outcome) -> Got {
    match outcome {
        Outcome::Accepted(_) => Got::Video,
        Outcome::Joined { request, waiting } => {
            let end = waiting.end().await;
            waiting.settle().await;
            match end {
                Some(Ok(delivered)) => {
                    Got::Pointer { channel: request.destination.channel, delivered, waited: true }
                }
                other => Got::Nothing(format!("{other:?}")),
            }
        }
        Outcome::AlreadyThere { request, delivered } => {
            Got::Pointer { channel: request.destination.channel, delivered, waited: false }
        }
        other => Got::Nothing(format!("{other:?}")),
    }
}

/// How many got what.
#[derive(Debug, Default)]
struct Tally {
    videos: u64,
    waited: u64,
    at_once: u64,
    /// Pointers to another place than the one where the video stands in the asker's channel.
    wrong: u64,
    nothing: u64,
}

impl Tally {
    fn of(got: Vec<Got>, places: &HashMap<ChannelId, Delivered>) -> Self {
        let mut tally = Self::default();
        for got in got {
            match got {
                // That it was posted is counted where it is posted.
                Got::Video => tally.videos += 1,
                Got::Pointer { channel, delivered, waited } => {
                    *(if waited { &mut tally.waited } else { &mut tally.at_once }) += 1;
                    tally.wrong += u64::from(places.get(&channel) != Some(&delivered));
                }
                Got::Nothing(why) => {
                    println!("crowd: somebody got nothing: {why}");
                    tally.nothing += 1;
                }
            }
        }
        tally
    }
}

/// Prints counts beside what they must be; whether all are.
fn check(counts: &[(&str, u64, u64)]) -> bool {
    let mut right = true;
    for (what, count, expected) in counts {
        if count == expected {
            println!("crowd:   {what} {count}");
        } else {
            right = false;
            println!("crowd:   {what} {count}, and it must be {expected}: WRONG");
        }
    }
    right
}

/// The most memory that this process ever had; only Linux tells.
fn peak() -> Option<ByteSize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(ByteSize::new(kibibytes << 10))
}

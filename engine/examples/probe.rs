//! Tells what files are, without decoding them.
//!
//! ```sh
//! cargo run -p azalea-engine --example probe -- holiday.mov cat.gif
//! ```

use std::error::Error;

use azalea_engine::{Engine, Limits, MediaInfo, Source};

fn main() -> Result<(), Box<dyn Error>> {
    // Probing works on the calling thread, so one thread for jobs is enough here.
    let engine = Engine::builder().threads(1).build()?;
    for path in std::env::args().skip(1) {
        match engine.probe(Source::path(&path), &Limits::default()) {
            Ok(info) => print(&path, &info),
            // The kind is for programs, the text for people.
            Err(error) => println!("{path}: {}: {error}", error.kind().code()),
        }
    }
    Ok(())
}

fn print(path: &str, info: &MediaInfo) {
    print!("{path}: {} ({})", info.kind, info.container);
    if let Some(duration) = info.duration {
        print!(", {:.1} s", duration.as_secs_f64());
    }
    println!();
    if let Some(video) = &info.video {
        print!("  {} {}", video.codec, video.display);
        if let Some(rate) = video.frame_rate {
            print!(", {rate}");
        }
        println!();
    }
    if let Some(audio) = &info.audio {
        println!("  {}, {} channels, {} Hz", audio.codec, audio.channels, audio.sample_rate);
    }
    if info.plays_inline {
        println!("  plays inline as it is");
    }
    for hindrance in &info.hindrances {
        println!("  {hindrance}");
    }
}

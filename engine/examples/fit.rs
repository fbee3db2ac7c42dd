//! Makes one file fit under a size, and shows how far it is.
//!
//! ```sh
//! cargo run -p azalea-engine --example fit -- holiday.mov holiday.mp4 10MiB
//! ```

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::Duration;

use azalea_engine::{ByteSize, Engine, Fit, JobControl, Source, Stage};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, limit] = arguments.as_slice() else {
        return Err("usage: fit INPUT OUTPUT LIMIT".into());
    };
    let limit: ByteSize = limit.parse()?;

    // One engine per process: it owns the threads that all jobs run on.
    let engine = Engine::builder().build()?;
    let job = engine.try_submit(Source::path(input), Fit::within(limit))?;

    // A control watches the job from another thread while this one waits for the result.
    let control = job.control();
    let fitted = thread::scope(|scope| {
        scope.spawn(|| show(&control));
        job.wait()
    })?;

    // Whole or not at all, and never above the limit.
    fitted.write_to(Path::new(output))?;
    let report = fitted.report();
    println!("{output}: {} of {}, {}", report.bytes, report.limit, report.action.name());
    for warning in &report.warnings {
        println!("note: {warning}");
    }
    Ok(())
}

/// Prints the progress until the job is over, one way or the other.
fn show(control: &JobControl) {
    loop {
        let progress = control.progress();
        if progress.stage == Stage::Done {
            return;
        }
        let percent = progress.fraction * 100.0;
        eprintln!("{:>3.0} %  {}  {} frames", percent, progress.stage.name(), progress.frames);
        thread::sleep(Duration::from_millis(250));
    }
}

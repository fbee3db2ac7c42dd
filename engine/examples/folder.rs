//! Makes every file of a folder fit, several at once, without ever holding more jobs than the engine takes.
//!
//! ```sh
//! cargo run -p azalea-engine --example folder -- photos small 10MiB
//! ```

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::fs;
use std::path::{Path, PathBuf};

use azalea_engine::{ByteSize, Engine, Error, Fit, JobHandle, Source};

fn main() -> Result<(), Box<dyn StdError>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, limit] = arguments.as_slice() else {
        return Err("usage: folder FROM TO LIMIT".into());
    };
    let fit = Fit::within(limit.parse::<ByteSize>()?);
    fs::create_dir_all(to)?;

    // As many jobs run at once as there are threads, and as many more may wait as the queue is deep.
    let engine = Engine::builder().queue_depth(4).build()?;
    let mut running: VecDeque<(PathBuf, JobHandle)> = VecDeque::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if !path.is_file() {
            continue;
        }
        let job = loop {
            match engine.try_submit(Source::path(&path), fit) {
                Ok(job) => break job,
                // The queue is full: the oldest job makes room before the next file is tried again.
                Err(Error::Busy { .. }) => match running.pop_front() {
                    Some((path, job)) => finish(&path, job, Path::new(to)),
                    None => return Err("the queue is full, but no job is ours".into()),
                },
                Err(error) => return Err(error.into()),
            }
        };
        running.push_back((path, job));
    }
    for (path, job) in running {
        finish(&path, job, Path::new(to));
    }
    Ok(())
}

/// Waits for a job and writes its file; a job that fails does not stop the others.
fn finish(path: &Path, job: JobHandle, to: &Path) {
    let written = job.wait().and_then(|fitted| {
        let report = fitted.report();
        // The result may be of another kind than the input: cat.gif becomes cat.gif.mp4.
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", report.kind.extension()));
        let target = to.join(name);
        fitted.write_to(&target)?;
        Ok(format!("{}: {} of {}", target.display(), report.bytes, report.limit))
    });
    match written {
        Ok(line) => println!("{line}"),
        Err(error) => println!("{}: {}: {error}", path.display(), error.kind().code()),
    }
}

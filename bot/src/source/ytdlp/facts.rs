//! What an operator wants to know about the installed yt-dlp.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock::{Clock, WallTime};
use crate::domain::Failure;
use crate::source::YtDlpSettings;
use crate::source::failure::excerpt;
use crate::source::ytdlp::process::{self, Bounds, Ended};

/// An installed yt-dlp. X changes often, so that an old one is of little use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YtDlpFacts {
    /// The program, as it is configured.
    pub program: PathBuf,
    /// Its version as it prints it, a date such as `2026.10.26`.
    pub version: String,
    /// How old that version is, in whole days; zero when it is newer than the clock. `None` when its version is no
    /// date.
    pub age_days: Option<u64>,
}

impl YtDlpFacts {
    /// Asks the installed program for its version; at most ten seconds.
    ///
    /// # Errors
    /// [`Failure::Ours`], when it is not there, does not run, or is another program.
    pub async fn look(settings: &YtDlpSettings, clock: &Clock) -> Result<Self, Failure> {
        let program = settings.program.clone();
        let arguments = ["--ignore-config".to_owned(), "--version".to_owned()];
        let run = process::run(&program, &arguments, BOUNDS);
        let Ended { status, stdout, .. } = tokio::time::timeout(PATIENCE, run)
            .await
            .map_err(|_| Failure::ours(format!("{} --version takes too long", program.display())))?
            .map_err(|error| Failure::ours(error.to_string()))?;
        let version = excerpt(&String::from_utf8_lossy(&stdout));
        if !status.success() || version.is_empty() {
            return Err(Failure::ours(format!("{} --version fails ({status})", program.display())));
        }
        let age_days = released(&version).map(|at| clock.now().since(at).as_secs() / DAY.as_secs());
        Ok(Self { program, version, age_days })
    }
}

/// The beginning of the day that a version names; versions of the same day have a fourth part.
fn released(version: &str) -> Option<WallTime> {
    let mut parts = version.split('.').map(str::parse::<u64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if !(1970..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day at the end, and then one formula fits all months.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_year = year * 365 + year / 4 - year / 100 + year / 400;
    let before_month = (month * 153 + 2) / 5;
    let days = (before_year + before_month + day - 1).checked_sub(DAYS_BEFORE_1970)?;
    Some(WallTime::default().plus(DAY.checked_mul(u32::try_from(days).ok()?)?))
}

const BOUNDS: Bounds = Bounds { stdout: 4_096, stderr: 256 * 1_024 };
/// Python alone may take seconds to start on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(86_400);
/// From the first of March of the year 0 to the first of January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_date() {
        let at = |version: &str| released(version).map(WallTime::as_millis);
        assert_eq!(at("1970.01.01"), Some(0));
        assert_eq!(at("2000.02.29"), Some(951_782_400_000));
        assert_eq!(at("2026.10.26"), Some(1_792_972_800_000));
        assert_eq!(at("2026.10.26.123456"), at("2026.10.26"));
        assert_eq!(at("2027.01.01").zip(at("2026.12.31")).map(|(a, b)| a - b), Some(86_400_000));
        for other in ["", "2026", "2026.10", "2026.13.01", "2026.00.01", "2026.01.00", "a.b.c", "1.2.3"] {
            assert_eq!(at(other), None, "{other}");
        }
    }
}

//! The numbers in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::domain::Stage;
use crate::metrics::counter::Counter;
use crate::metrics::gauge::Gauge;
use crate::metrics::snapshot::Snapshot;

/// The totals, and how things stand, as a page for Prometheus to read; its content type is `text/plain; version=0.0.4`.
pub fn prometheus(totals: &Snapshot, gauges: &[(Gauge, u64)]) -> String {
    let mut page = Page(String::new());
    for counter in Counter::ALL {
        let name = format!("azalea_{}_total", counter.name());
        page.family(&name, "counter", &format!("Counts {}.", counter.help()));
        page.sample(&name, &[], totals.counter(counter));
    }
    for (gauge, value) in gauges {
        let name = format!("azalea_{}", gauge.name());
        page.family(&name, "gauge", &format!("Tells {}.", gauge.help()));
        page.sample(&name, &[], value);
    }
    let name = "azalea_stage_seconds";
    page.family(name, "histogram", "How long runs of each stage took, failed ones included.");
    for stage in Stage::ALL {
        let times = totals.stage(stage).times();
        let labels = ("stage", stage.code());
        for (bound, count) in times.cumulative() {
            let bound = bound.map_or_else(|| "+Inf".to_owned(), seconds);
            page.sample(&format!("{name}_bucket"), &[labels, ("le", &bound)], count);
        }
        page.sample(&format!("{name}_sum"), &[labels], seconds(times.total()));
        page.sample(&format!("{name}_count"), &[labels], times.count());
    }
    let name = "azalea_stage_failures_total";
    page.family(name, "counter", "Counts runs of each stage that failed.");
    for stage in Stage::ALL {
        page.sample(name, &[("stage", stage.code())], totals.stage(stage).failures());
    }
    let name = "azalea_errors_total";
    page.family(name, "counter", "Counts failures of each stage by kind.");
    for (kind, stage, count) in totals.errors() {
        page.sample(name, &[("stage", stage.code()), ("kind", kind)], count);
    }
    page.0
}

/// A page being written. Writing to a string cannot fail.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

/// Seconds in their shortest exact form.
fn seconds(time: Duration) -> String {
    let text = format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Tracker;

    fn page() -> String {
        let tracker = Tracker::new(true);
        tracker.count(Counter::DownloadBytes, 1_234);
        tracker.stage(Stage::Resolve, Duration::from_millis(3));
        tracker.stage(Stage::Resolve, Duration::from_millis(1_500));
        tracker.stage(Stage::Resolve, Duration::from_secs(5_000));
        tracker.failure(Stage::Resolve, "gone");
        tracker.failure(Stage::Upload, "odd \"\\\n");
        tracker.gauge(Gauge::QueueDead, 3);
        tracker.gauge(Gauge::QueueDead, 2);
        prometheus(&tracker.totals(), &tracker.gauges())
    }

    #[track_caller]
    fn section<'a>(page: &'a str, family: &str) -> Vec<&'a str> {
        let mut lines = page.lines().skip_while(|line| !line.starts_with(&format!("# HELP {family} ")));
        let head: Vec<&str> = lines.by_ref().take(2).collect();
        head.into_iter().chain(lines.take_while(|line| !line.starts_with('#'))).collect()
    }

    #[test]
    fn counters_have_help_type_and_value() {
        assert_eq!(
            section(&page(), "azalea_download_bytes_total"),
            [
                "# HELP azalea_download_bytes_total Counts bytes downloaded.",
                "# TYPE azalea_download_bytes_total counter",
                "azalea_download_bytes_total 1234",
            ]
        );
    }

    #[test]
    fn gauges_have_help_type_and_what_was_set_last() {
        let lines = [
            "# HELP azalea_queue_dead Tells jobs that are put aside.",
            "# TYPE azalea_queue_dead gauge",
            "azalea_queue_dead 2",
        ];
        assert_eq!(section(&page(), "azalea_queue_dead"), lines);
    }

    #[test]
    fn histograms_have_cumulative_buckets_sum_and_count() {
        let page = page();
        let lines = section(&page, "azalea_stage_seconds");
        assert_eq!(lines[1], "# TYPE azalea_stage_seconds histogram");
        let resolve: Vec<&str> = lines.into_iter().filter(|line| line.contains("\"resolve\"")).collect();
        let buckets = [
            ("0.001", 0),
            ("0.002", 0),
            ("0.005", 1),
            ("0.01", 1),
            ("0.02", 1),
            ("0.05", 1),
            ("0.1", 1),
            ("0.2", 1),
            ("0.5", 1),
            ("1", 1),
            ("2", 2),
            ("5", 2),
            ("10", 2),
            ("20", 2),
            ("50", 2),
            ("100", 2),
            ("200", 2),
            ("500", 2),
            ("1000", 2),
            ("+Inf", 3),
        ];
        let mut wanted: Vec<String> = buckets
            .iter()
            .map(|(le, n)| format!("azalea_stage_seconds_bucket{{stage=\"resolve\",le=\"{le}\"}} {n}"))
            .collect();
        wanted.push("azalea_stage_seconds_sum{stage=\"resolve\"} 5001.503".to_owned());
        wanted.push("azalea_stage_seconds_count{stage=\"resolve\"} 3".to_owned());
        assert_eq!(resolve, wanted);
    }

    #[test]
    fn errors_are_told_by_stage_and_kind_with_escaped_labels() {
        let page = page();
        assert_eq!(
            section(&page, "azalea_errors_total")[2..],
            [
                r#"azalea_errors_total{stage="resolve",kind="gone"} 1"#,
                r#"azalea_errors_total{stage="upload",kind="odd \"\\\n"} 1"#,
            ]
        );
        assert_eq!(
            section(&page, "azalea_stage_failures_total")[2..],
            [
                r#"azalea_stage_failures_total{stage="resolve"} 1"#,
                r#"azalea_stage_failures_total{stage="download"} 0"#,
                r#"azalea_stage_failures_total{stage="optimize"} 0"#,
                r#"azalea_stage_failures_total{stage="upload"} 1"#,
            ]
        );
    }

    #[test]
    fn every_line_is_a_comment_or_one_sample_and_every_family_comes_once() {
        let page = page();
        let mut families = Vec::new();
        assert!(page.ends_with('\n'));
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let name = rest.split(' ').next().unwrap();
                assert!(!families.contains(&name), "{name}");
                families.push(name);
            } else if !line.starts_with("# TYPE ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(name.starts_with(families.last().unwrap()), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}

//! What goes up and down: a closed list.

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the gauges with the name that Prometheus knows them by, and what each tells.
macro_rules! gauges {
    ($($variant:ident = $name:literal, $help:literal;)+) => {
        /// Something that goes up and down. The names are exported: they do not change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Gauge {
            $(#[doc = concat!("Tells ", $help, ".")] $variant,)+
        }

        impl Gauge {
            /// All gauges, in the order in which they are exported.
            pub const ALL: [Self; GAUGES] = [$(Self::$variant),+];

            /// Its stable name, in snake case and without prefix.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What it tells: a noun, without full stop.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),+ }
            }
        }

        /// How many gauges there are.
        const GAUGES: usize = [$($name),+].len();
    };
}

gauges! {
    QueueReady = "queue_ready", "jobs that may be worked on now";
    QueueDelayed = "queue_delayed", "jobs that wait for a moment to come";
    QueueLeased = "queue_leased", "jobs that a worker holds";
    QueueDead = "queue_dead", "jobs that are put aside";
    QueueOldestSeconds = "queue_oldest_ready_seconds", "for how long the oldest job waits that may be worked on now";
    QueueInTrouble = "queue_in_trouble", "whether the queue cannot store what is accepted";
}

/// All gauges as they stand, or as they stood.
#[derive(Debug, Default)]
pub(super) struct Needles([AtomicU64; GAUGES]);

impl Needles {
    pub(super) fn set(&self, gauge: Gauge, value: u64) {
        // The value of a variant, not a number that could be cut.
        if let Some(needle) = self.0.get(gauge as usize) {
            // Relaxed: the gauges say nothing about each other.
            needle.store(value, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> [(Gauge, u64); GAUGES] {
        Gauge::ALL.map(|gauge| {
            (gauge, self.0.get(gauge as usize).map_or(0, |needle| needle.load(Ordering::Relaxed)))
        })
    }
}

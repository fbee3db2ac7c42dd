//! The queue on disk against what happens to disks and processes: kills, aborts, damage, no room, a second process.
//!
//! Where a process has to die or a disk has to be small, the test runs its own program once more: a test that does
//! nothing unless a variable tells it to is what then runs there.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "queue/mod.rs"]
mod contract;
#[path = "queue_disk/crash.rs"]
mod crash;
#[path = "queue_disk/damage.rs"]
mod damage;
#[path = "queue_disk/full.rs"]
mod full;
#[path = "queue_disk/house.rs"]
mod house;
#[path = "queue_disk/contract.rs"]
mod kept;
#[path = "queue_disk/life.rs"]
mod life;
#[path = "queue_disk/poison.rs"]
mod poison;
#[path = "queue_disk/size.rs"]
mod size;

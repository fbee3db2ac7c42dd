//! Jobs for this room's tests.

use crate::clock::WallTime;
use crate::domain::{Destination, FrontEnd, Options, Request, RequestId};
use crate::queue::{NewJob, Priority};

pub(super) const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);

pub(super) fn job(id: u64) -> NewJob {
    let origin = id.to_string().parse().unwrap();
    let channel = "5".parse().unwrap();
    let request = Request {
        id: RequestId::new(FrontEnd::Discord, origin, 0),
        requester: "7".parse().unwrap(),
        link: format!("https://x.com/a/status/{}", id + 20).parse().unwrap(),
        destination: Destination { front_end: FrontEnd::Discord, guild: None, channel, reply_to: None },
        options: Options::default(),
    };
    let deadline = NOW.plus(std::time::Duration::from_secs(86_400));
    NewJob { request, priority: Priority::Interactive, not_before: NOW, deadline }
}

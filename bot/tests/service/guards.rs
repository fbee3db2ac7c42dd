//! Who may ask how often, who may see what, and where nobody is sent.

use std::time::Duration;

use azalea_bot::config::SensitivePolicy;
use azalea_bot::domain::Failure;
use azalea_bot::frontend::words;
use azalea_bot::intake::Outcome;
use azalea_bot::metrics::Counter;
use azalea_bot::pipeline::delivery::Notice;
use serde_json::json;

use crate::films;
use crate::house::{House, LINK, POST, accepted, page, tweet};
use crate::support::reply::Reply;

#[tokio::test]
async fn the_third_request_of_two_is_told_when_to_come_back() {
    let mut house = House::with_video(films::ready()).await;
    house.config.rate_limit.max_requests = 2;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    recorder.posted(1).await;
    // A repeated request counts as well.
    assert!(matches!(house.ask(&app.intake, 1, LINK).await, Outcome::AlreadyThere { .. }));
    let Outcome::Limited { retry_after, request } = house.ask(&app.intake, 1, LINK).await else {
        panic!("it is not limited");
    };
    let window = house.config.rate_limit.window;
    assert!(retry_after > Duration::ZERO && retry_after <= window, "{retry_after:?}");
    assert_eq!(request.requester.get(), 1);
    // That is one person's matter.
    accepted(house.ask(&app.intake, 2, LINK).await);
    recorder.posted(2).await;
    assert_eq!(app.rooms.tracker.totals().counter(Counter::RateLimited), 1);
    app.stop().await;
}

/// A house with a sensitive post and this policy.
async fn sensitive(policy: SensitivePolicy) -> House {
    let mut house = House::with_video(films::ready()).await;
    house.config.audience.sensitive = policy;
    let mut post = tweet(20, &json!([house.video("/v.mp4")]));
    post["possibly_sensitive"] = json!(true);
    house.x.on(POST, [page(&post)]);
    house
}

#[tokio::test]
async fn a_sensitive_post_comes_behind_a_spoiler() {
    let house = sensitive(SensitivePolicy::Spoiler).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    assert!(recorder.posted(1).await[0].spoiler);
    app.stop().await;
}

#[tokio::test]
async fn a_sensitive_post_is_refused_where_the_operator_says_so() {
    let house = sensitive(SensitivePolicy::Refuse).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    assert_eq!(recorder.told(1).await[0].1, Notice::Failed(Failure::Sensitive));
    app.stop().await;
    assert_eq!(house.cdn.hits("/v.mp4"), 0);
    assert_eq!(recorder.of(|seen| seen.posted.len()), 0);
}

#[tokio::test]
async fn a_link_behind_a_spoiler_gives_a_spoiler() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, &format!("||{LINK}||")).await);
    assert!(recorder.posted(1).await[0].spoiler);
    app.stop().await;
}

/// What is told of a post with these media, which lead somewhere else.
async fn told_of(house: &House, media: &serde_json::Value) -> Failure {
    house.post(media);
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    let told = recorder.told(1).await;
    assert_eq!(app.rooms.tracker.totals().counter(Counter::Retries), 0, "{told:?}");
    app.stop().await;
    let Notice::Failed(failure) = told[0].1.clone() else { panic!("{told:?}") };
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (0, 1));
    failure
}

/// A house in which private addresses are not asked.
async fn guarded(hosts: &[&str]) -> House {
    let mut house = House::new().await;
    house.config.download.allow_private = false;
    house.config.download.allow_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    house.cdn.on("/secret", [Reply::file(films::ready())]);
    house
}

#[tokio::test]
async fn a_medium_that_leads_into_the_inside_is_asked_nowhere() {
    let mut house = guarded(&["127.0.0.1"]).await;
    // Or the first step would not be taken.
    house.config.download.allow_private = true;
    let neighbour = house.cdn.url("/secret").as_str().replace("127.0.0.1", "localhost");
    let ways = [
        "http://169.254.169.254/latest/meta-data/",
        "https://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/secret",
        "//169.254.169.254/latest/meta-data/",
        // Nothing is wrong with it but that it is not on the list. It is no name that anybody has.
        "https://media.invalid/secret",
        neighbour.as_str(),
    ];
    for (number, to) in ways.into_iter().enumerate() {
        // Each a post of its own, since posts are remembered.
        let path = format!("/media/{number}.mp4");
        house.x.on(&path, [Reply::redirect(to)]);
        let mut medium = house.video("/unused");
        medium["url"] = json!(house.x.url(&path).as_str());
        let number = 30 + u64::try_from(number).unwrap();
        house.x.on(&format!("/i/status/{number}"), [page(&tweet(number, &json!([medium])))]);
        let recorder = house.recorder();
        let app = house.start(&recorder).await;
        accepted(house.ask(&app.intake, 1, &format!("https://x.com/ann/status/{number}")).await);
        let told = recorder.told(1).await;
        assert!(matches!(&told[0].1, Notice::Failed(Failure::Forbidden { .. })), "{to}: {told:?}");
        assert_eq!(app.rooms.tracker.totals().counter(Counter::Retries), 0, "{to}");
        app.stop().await;
        let Notice::Failed(failure) = &told[0].1 else { panic!("{told:?}") };
        let said = words(failure);
        assert_eq!(said, "the post points at a place that is not asked from here", "{to}");
        assert_eq!(house.x.hits(&path), 1, "{to}");
    }
    assert_eq!(house.cdn.hits("/secret"), 0);
}

#[tokio::test]
async fn an_address_of_the_inside_is_not_asked_even_when_its_host_is_on_the_list() {
    let house = guarded(&["169.254.169.254", "127.0.0.1"]).await;
    let mut medium = house.video("/unused");
    medium["url"] = json!("https://169.254.169.254/latest/meta-data/");
    let failure = told_of(&house, &json!([medium])).await;
    assert!(matches!(failure, Failure::Forbidden { .. }), "{failure:?}");
}

/// Once, what was configured as the address of a source was asked for media too, whatever is said of those.
#[tokio::test]
async fn a_medium_that_stands_where_a_source_does_is_judged_like_all_others() {
    let house = guarded(&["*.twimg.com"]).await;
    house.x.on("/v.mp4", [Reply::file(films::ready())]);
    let mut medium = house.video("/unused");
    medium["url"] = json!(house.x.url("/v.mp4").as_str());
    let failure = told_of(&house, &json!([medium])).await;
    assert!(matches!(failure, Failure::Forbidden { .. }), "{failure:?}");
    assert_eq!(house.x.hits("/v.mp4"), 0);
}

#[tokio::test]
async fn a_post_that_names_a_place_of_the_inside_itself_is_forbidden() {
    let house = guarded(&["*.twimg.com"]).await;
    let failure = told_of(&house, &json!([house.video("/secret")])).await;
    assert!(matches!(failure, Failure::Forbidden { .. }), "{failure:?}");
    assert_eq!(house.cdn.hits("/secret"), 0);
}

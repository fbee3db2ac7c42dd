//! Faults on demand, and rate limits.

use std::time::Duration;

use crate::client::{House, body, refusal};
use crate::discord::{Fault, Scope};

const MESSAGES: &str = "/channels/*/messages";

#[tokio::test]
async fn a_fault_comes_as_often_as_it_was_asked_for() {
    let house = House::new().await;
    house.discord.fail_next("POST", MESSAGES, Fault::Code(400, 200_000), 2);
    house.discord.fail_next("POST", MESSAGES, Fault::Status(502), 1);
    house.discord.fail_next("DELETE", "/channels/**", Fault::Code(503, 130_000), 1);
    for (status, code) in [(400, 200_000), (400, 200_000), (502, -1)] {
        assert_eq!(house.send(house.channel, &body("text", "n")).await, Err((status, code)));
    }
    let sent = house.send(house.channel, &body("text", "n")).await.unwrap();
    let deleted = house.http.delete_message(house.channel, sent, None).await;
    assert_eq!(refusal(&deleted.unwrap_err()), (503, 130_000));
    assert_eq!(house.discord.messages(house.channel).len(), 1);
    let statuses: Vec<u16> = house.discord.requests().iter().map(|(_, _, status)| *status).collect();
    assert_eq!(statuses, [400, 400, 502, 200, 503]);
    house.all_good();
}

#[tokio::test]
async fn a_lost_answer_may_have_been_done_or_not() {
    let house = House::new().await;
    house.discord.fail_next("POST", MESSAGES, Fault::Drop, 1);
    house.discord.fail_next("POST", MESSAGES, Fault::DropAfterDone, 1);
    let send =
        async |nonce: &str| house.http.send_message(house.channel, Vec::new(), &body("text", nonce)).await;
    let lost = |sent: serenity::Result<_>| {
        let error = sent.map(drop).unwrap_err();
        assert!(matches!(error, serenity::Error::Http(serenity::http::HttpError::Request(_))), "{error:?}");
    };
    lost(send("n").await.map(drop));
    assert_eq!(house.discord.messages(house.channel).len(), 0);
    lost(send("n").await.map(drop));
    let there = house.discord.messages(house.channel);
    assert_eq!(there.len(), 1);
    // The nonce finds it.
    assert_eq!(send("n").await.unwrap().id, there[0].id);
    house.all_good();
}

#[tokio::test]
async fn a_hanging_request_is_never_answered_and_does_nothing() {
    let house = House::new().await;
    house.discord.fail_next("*", MESSAGES, Fault::Hang, 1);
    let form = body("text", "n");
    let sent = house.http.send_message(house.channel, Vec::new(), &form);
    let arrived = house.discord.wait_until(|state| state.requests().len() == 1);
    tokio::select! {
        sent = sent => panic!("answered with {sent:?}"),
        () = arrived => {}
    }
    assert_eq!(house.discord.requests()[0].2, 0);
    assert_eq!(house.discord.messages(house.channel).len(), 0);
    house.all_good();
}

#[tokio::test]
async fn each_scope_of_429_has_its_headers_and_only_shared_ones_are_not_counted() {
    let house = House::new().await;
    let agent = reqwest::Client::new();
    let url = house.discord.base().join(&format!("/api/v10/channels/{}/typing", house.channel)).unwrap();
    let ask = async || {
        let request =
            agent.post(url.clone()).header("authorization", format!("Bot {}", house.discord.token()));
        request.header("user-agent", "DiscordBot (https://example.org, 1.0)").send().await.unwrap()
    };
    for (scope, word) in [(Scope::User, "user"), (Scope::Shared, "shared"), (Scope::Global, "global")] {
        house.discord.fail_next(
            "POST",
            "/channels/*/typing",
            Fault::Limited { scope, retry_after_ms: 1200 },
            1,
        );
        let limited = ask().await;
        let header = |name: &str| limited.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(limited.status(), 429);
        assert_eq!(header("x-ratelimit-scope").as_deref(), Some(word));
        assert_eq!(header("retry-after").as_deref(), Some("2"));
        assert_eq!(header("x-ratelimit-global").is_some(), scope == Scope::Global);
        let said: serde_json::Value = serde_json::from_str(&limited.text().await.unwrap()).unwrap();
        assert_eq!(
            (said["retry_after"].as_f64(), said["global"].as_bool()),
            (Some(1.2), Some(scope == Scope::Global))
        );
    }
    assert_eq!(house.discord.look(|state| state.invalid_requests()), 2);
    house.all_good();
}

#[tokio::test]
async fn a_route_that_is_asked_too_often_answers_429_and_the_headers_say_so_before() {
    let house = House::new().await;
    house.discord.set_limit("POST", MESSAGES, 2, Duration::from_secs(600));
    for nonce in ["a", "b"] {
        house.send(house.channel, &body("text", nonce)).await.unwrap();
    }
    assert_eq!(house.send(house.channel, &body("text", "c")).await, Err((429, -1)));
    // Another channel has a limit of its own.
    let other = house.discord.text_channel(house.guild);
    house.send(other, &body("text", "d")).await.unwrap();
    // Who is told to wait and does not is noted, unless the request may have been on its way.
    house.discord.set_on_its_way(Duration::from_secs(600));
    assert_eq!(house.send(house.channel, &body("text", "e")).await, Err((429, -1)));
    assert_eq!(house.discord.hurried(), Vec::<String>::new());
    house.discord.set_on_its_way(Duration::ZERO);
    assert_eq!(house.send(house.channel, &body("text", "f")).await, Err((429, -1)));
    assert_eq!(house.discord.hurried().len(), 1);
    house.all_good();
}

#[tokio::test]
async fn the_global_limit_leaves_out_interactions() {
    let house = House::new().await;
    house.discord.set_global_limit(1, Duration::from_secs(600));
    house.send(house.channel, &body("text", "a")).await.unwrap();
    assert_eq!(refusal(&house.http.get_channel(house.channel).await.unwrap_err()), (429, -1));
    let unknown = house.http.get_original_interaction_response("no-such-token").await.unwrap_err();
    assert_eq!(refusal(&unknown), (404, 10015));
    house.all_good();
}

#[tokio::test]
#[should_panic(expected = "GET /gateway/bot 200")]
async fn who_waits_in_vain_is_told_what_was_asked() {
    let house = House::new().await;
    house.http.get_bot_gateway().await.unwrap();
    tokio::time::pause();
    house.discord.wait_until(|state| state.requests().len() == 2).await;
}

#[tokio::test]
async fn what_leads_nowhere_is_noted() {
    let house = House::new().await;
    assert_eq!(refusal(&house.http.get_voice_regions().await.unwrap_err()), (404, 0));
    let old = house.discord.base().join("/api/v9/gateway").unwrap();
    assert_eq!(reqwest::get(old).await.unwrap().status(), 404);
    let violations = house.discord.violations();
    assert_eq!(violations.len(), 2, "{violations:?}");
}

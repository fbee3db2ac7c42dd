//! Discord does not answer as it should, or the process ends in between: each request still has one answer.

use std::time::Duration;

use azalea_bot::frontend::discord::{Ended, GatewayFailure};
use serde_json::json;

use crate::bot::Bot;
use crate::double::GuildSpec;
use crate::double::{Fault, Scope};
use crate::films::{self, Film};
use crate::house::{House, LINK};
use crate::support::reply::Reply;

/// Asks once while messages cannot be created in these ways; how many answers there are with media.
async fn ask_through(faults: &[Fault]) -> usize {
    let bot = Bot::with_video(films::ready()).await;
    for fault in faults {
        bot.discord.fail_next("POST", "/channels/*/messages", *fault, 1);
    }
    let asked = bot.mention(bot.ann, LINK);
    let answers = bot.answers_to(asked, 1).await;
    assert!(answers.iter().all(|answer| answer.attachments.len() == 1), "{answers:?}");
    bot.idle().await;
    let answers = bot.answers_to(asked, 1).await.len();
    bot.end().await;
    answers
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let limited = |scope| Fault::Limited { scope, retry_after_ms: 50 };
    for faults in [
        [Fault::Status(502), Fault::Code(500, 0)],
        [Fault::Drop, Fault::Code(503, 130_000)],
        [limited(Scope::User), limited(Scope::Shared)],
        [limited(Scope::Global), Fault::Status(502)],
    ] {
        assert_eq!(ask_through(&faults).await, 1, "{faults:?}");
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_on_its_way_back_is_not_posted_again() {
    assert_eq!(ask_through(&[Fault::DropAfterDone]).await, 1);
    assert_eq!(ask_through(&[Fault::DropAfterDone, Fault::DropAfterDone]).await, 1);
}

#[tokio::test]
async fn what_discord_refuses_for_good_is_said() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Code(400, 20_009), 1);
    let asked = bot.mention(bot.ann, LINK);
    let told = bot.answers_to(asked, 1).await;
    assert!(told[0].content.contains("filters"), "{}", told[0].content);
    bot.idle().await;
    bot.end().await;
}

/// Once, a word that Discord did not take three times in half a second was lost.
#[tokio::test]
async fn a_word_waits_until_discord_takes_it() {
    let house = House::new().await;
    house.post(&json!([]));
    let bot = Bot::in_house(house).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Status(502), 7);
    let asked = bot.mention(bot.ann, LINK);
    let told = bot.answers_to(asked, 1).await;
    assert!(told[0].content.contains("no photo, video or GIF"), "{}", told[0].content);
    bot.idle().await;
    assert_eq!(bot.answers_to(asked, 1).await.len(), 1);
    bot.end().await;
}

#[tokio::test]
async fn what_could_not_be_had_is_asked_for_again_by_its_button() {
    let mut house = House::with_video(films::ready()).await;
    house.config.queue.max_attempts = 1;
    house.x.on(crate::house::POST, [Reply::status(503)]);
    let bot = Bot::in_house(house).await;
    let asked = bot.mention(bot.ann, LINK);
    let failed = bot.answers_to(asked, 1).await.remove(0);
    assert!(failed.content.starts_with("No media: X or its mirrors do not answer"), "{}", failed.content);
    let (label, button) = failed.buttons().remove(0);
    assert_eq!(label, "Try again");
    bot.idle().await;
    bot.house.post(&json!([bot.house.video("/v.mp4")]));
    bot.discord.press(failed.id, bot.ann, &button);
    let media = bot.discord.wait_until(move |state| {
        let replies = state.replies(bot.channel);
        replies.len() == 1 && replies[0].attachments.len() == 1 && replies[0].reference == Some(asked)
    });
    media.await;
    bot.idle().await;
    // It belongs to its question like any answer.
    bot.discord.delete(asked);
    bot.discord.wait_until(|state| state.replies(bot.channel).is_empty()).await;
    bot.end().await;
}

#[tokio::test]
async fn what_trying_again_cannot_help_has_no_button() {
    let house = House::new().await;
    house.post(&json!([]));
    let bot = Bot::in_house(house).await;
    let asked = bot.mention(bot.ann, LINK);
    assert!(bot.answers_to(asked, 1).await[0].buttons().is_empty());
    bot.end().await;
}

#[tokio::test]
async fn what_was_asked_before_the_end_is_answered_after_it() {
    let house = House::with_video(films::ready()).await;
    let film = films::ready();
    let stalling = Reply::file(Film::clone(&film)).stall_after(film.len() / 2);
    house.cdn.on("/v.mp4", [stalling, Reply::file(film)]);
    let mut bot = Bot::in_house(house).await;
    let (first, second) = (bot.mention(bot.ann, LINK), bot.mention(bot.bob, LINK));
    bot.house.cdn.requests(1).await;
    bot.discord.wait_until(|state| state.typing(bot.channel) == 2).await;
    bot.stop().await;
    assert!(
        bot.discord.look(|state| state.replies(bot.channel)).iter().all(|reply| reply.attachments.is_empty())
    );
    bot.start().await;
    let media = bot.answers_to(first, 1).await;
    let pointer = bot.answers_to(second, 1).await;
    let with_media = |answers: &[crate::double::Message]| {
        answers.iter().filter(|answer| !answer.attachments.is_empty()).count()
    };
    assert_eq!(with_media(&media) + with_media(&pointer), 1);
    bot.idle().await;
    bot.end().await;
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_said_plainly() {
    let mut bot = Bot::asleep(House::new().await, GuildSpec::default()).await;
    bot.house.post(&json!([]));
    let config = bot.house.config.clone();
    let wrong = azalea_bot::config::Secret::new("MTA.wrong.token-that-nobody-knows".to_owned());
    let rooms = azalea_bot::app::Rooms::new(&config, bot.house.clock.clone()).unwrap();
    let failure = azalea_bot::frontend::discord::Discord::connect(
        &config,
        &wrong,
        rooms.store.clone(),
        rooms.withdrawals.clone(),
        bot.house.clock.clone(),
    )
    .await
    .unwrap_err();
    assert!(matches!(failure, GatewayFailure::Token), "{failure}");
    rooms.store.close().await;
    bot.start().await;
    bot.end().await;
}

#[tokio::test]
async fn a_token_that_becomes_invalid_ends_the_session() {
    let mut bot = Bot::with_video(films::ready()).await;
    bot.discord.revoke_token();
    let ended = bot.over().await;
    assert!(matches!(ended, Ended::Gateway(GatewayFailure::Token)), "{ended:?}");
}

#[tokio::test]
async fn a_refused_token_in_one_answer_ends_the_session_too() {
    let mut bot = Bot::with_video(films::ready()).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Code(401, 0), 1);
    bot.mention(bot.ann, LINK);
    let ended = bot.over().await;
    assert!(matches!(ended, Ended::Gateway(GatewayFailure::Token)), "{ended:?}");
}

/// Once, a connection was given up that never came back, and what the library did for it went on beside the next one.
#[tokio::test]
async fn a_connection_that_stays_away_is_made_anew() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    bot.patience.0 = Duration::from_secs(1);
    bot.start().await;
    let looked_up = || bot.discord.requests().iter().filter(|(_, path, _)| path == "/gateway/bot").count();
    let before = looked_up();
    bot.discord.shut_gateway(true);
    bot.discord.drop_connections();
    while looked_up() < before + 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bot.discord.shut_gateway(false);
    bot.discord.wait_until(|state| state.connected() == 1).await;
    let asked = bot.mention(bot.ann, LINK);
    assert_eq!(bot.answers_to(asked, 1).await[0].attachments.len(), 1);
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| (state.connected(), state.identified().len())), (1, 2));
    bot.end().await;
}

/// Once, a gateway that took the connection and then said nothing left the bot deaf: the library waits for it without end, and
/// takes itself for connected.
#[tokio::test]
async fn a_gateway_that_falls_silent_is_left() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    bot.patience.1 = Duration::from_secs(3);
    bot.discord.set_heartbeat(Duration::from_millis(300));
    bot.start().await;
    bot.discord.silence_gateway(true);
    bot.discord.drop_connections();
    tokio::time::sleep(Duration::from_secs(1)).await;
    bot.discord.silence_gateway(false);
    bot.discord.wait_until(|state| state.connected() == 1).await;
    let asked = bot.mention(bot.ann, LINK);
    assert_eq!(bot.answers_to(asked, 1).await[0].attachments.len(), 1);
    bot.idle().await;
    bot.end().await;
}

/// Once, what says nothing about a request was said three times within half a second, and then never.
#[tokio::test]
async fn a_hint_waits_until_discord_takes_it() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Status(502), 4);
    let asked = bot.mention(bot.ann, "hello");
    assert!(bot.answers_to(asked, 1).await[0].content.starts_with("Mention me together with a link"));
    bot.end().await;
}

#[tokio::test]
async fn the_last_identifications_of_a_day_are_left_alone() {
    let mut bot = Bot::asleep(House::new().await, GuildSpec::default()).await;
    bot.house.post(&json!([]));
    bot.discord.set_starts_left(50);
    let failure = bot.try_start().await.unwrap_err();
    assert!(failure.may_pass() && failure.to_string().contains("14400 s"), "{failure}");
    assert_eq!(bot.discord.look(|state| state.identified().len()), 0);
    bot.discord.set_starts_left(51);
    bot.start().await;
    bot.end().await;
}

/// Once, each request in a channel where the bot is timed out cost some refusals, which count for all servers.
#[tokio::test]
async fn a_channel_that_refuses_is_left_alone_for_a_while() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Code(403, 50_013), 100);
    bot.mention(bot.ann, LINK);
    let messages = || {
        let sent = bot.discord.requests().into_iter();
        sent.filter(|(method, path, status)| {
            method == "POST" && path.ends_with("/messages") && *status == 403
        })
        .count()
    };
    while messages() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bot.idle().await;
    let before = messages();
    for _ in 0..5 {
        bot.mention(bot.bob, LINK);
        bot.idle().await;
    }
    // One more at most: the direct message in which somebody is told.
    assert!(messages() <= before + 1, "{} {}", before, messages());
    bot.discord.heal();
    bot.end().await;
}

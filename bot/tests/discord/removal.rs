//! What is taken away, by whom, and after a restart too.

use std::time::Duration;

use serde_json::json;

use crate::bot::Bot;
use crate::double::{Fault, GuildSpec, Use};
use crate::films;
use crate::house::{House, LINK};
use crate::limits::album;

#[tokio::test]
async fn a_message_that_is_deleted_takes_its_answer_along_even_after_a_restart() {
    let mut bot = Bot::with_video(films::ready()).await;
    let (first, second) = (bot.mention(bot.ann, LINK), bot.mention(bot.bob, "hello"));
    let answer = bot.answers_to(first, 1).await[0].id;
    let hint = bot.answers_to(second, 1).await[0].id;
    let third = bot.mention(bot.bob, LINK);
    let pointer = bot.answers_to(third, 1).await[0].id;
    bot.idle().await;
    bot.stop().await;
    bot.start().await;
    // A pointer goes alone: what it points at is somebody else's.
    bot.discord.delete(third);
    bot.discord.wait_until(|state| state.message(pointer).unwrap().gone.is_some()).await;
    assert!(bot.discord.message(answer).gone.is_none());
    bot.discord.delete_bulk(bot.channel, &[first, second]);
    bot.discord
        .wait_until(|state| [answer, hint].iter().all(|id| state.message(*id).unwrap().gone.is_some()))
        .await;
    bot.end().await;
}

#[tokio::test]
async fn an_answer_is_removed_by_who_asked_or_a_moderator_and_nobody_else() {
    let bot = Bot::with_video(films::ready()).await;
    let moderator = bot.discord.user("mod");
    bot.discord.make_moderator(bot.guild, moderator);
    for who in [bot.ann, moderator] {
        let asked = bot.mention(bot.ann, LINK);
        let answer = bot.answers_to(asked, 1).await.remove(0);
        // Who asks again before that is stored as done hears of the answer that is gone by then.
        bot.idle().await;
        let button = answer.buttons()[0].1.clone();
        let pressed = bot.discord.press(answer.id, bot.bob, &button);
        bot.discord.wait_until(|state| state.original(pressed).is_some()).await;
        let told = bot.discord.look(|state| state.original(pressed).unwrap().clone());
        assert!(told.is_ephemeral() && told.content.starts_with("Only the one who asked"), "{told:?}");
        assert!(bot.discord.message(answer.id).gone.is_none());
        bot.discord.press(answer.id, who, &button);
        bot.discord.wait_until(|state| state.message(answer.id).unwrap().gone.is_some()).await;
    }
    bot.end().await;
}

#[tokio::test]
async fn who_waits_long_sees_how_it_goes_and_can_stop_it() {
    let bot = Bot::with_video(films::endless()).await;
    let asked = bot.mention(bot.ann, LINK);
    let status = bot.replies(1).await.remove(0);
    assert_eq!(status.reference, Some(asked));
    assert!(status.content.ends_with('…'), "{}", status.content);
    let (label, button) = status.buttons().remove(0);
    assert_eq!(label, "Cancel");
    bot.discord.press(status.id, bot.ann, &button);
    bot.discord.wait_until(|state| state.message(status.id).unwrap().gone.is_some()).await;
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

#[tokio::test]
async fn work_for_a_message_that_is_deleted_ends_without_a_word() {
    let bot = Bot::with_video(films::endless()).await;
    let asked = bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    bot.discord.delete(asked);
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

#[tokio::test]
async fn work_of_an_earlier_run_ends_with_its_message_too() {
    let mut bot = Bot::with_video(films::endless()).await;
    let asked = bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    bot.stop().await;
    bot.start().await;
    bot.house.cdn.requests(2).await;
    bot.discord.delete(asked);
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

/// Once, a question that was deleted while its answer was sent left that answer behind.
#[tokio::test]
async fn what_is_taken_back_while_it_is_posted_does_not_stay() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Late(400), 1);
    let asked = bot.mention(bot.ann, LINK);
    bot.discord.wait_until(|state| !state.replies(bot.channel).is_empty()).await;
    bot.discord.delete(asked);
    bot.discord.wait_until(|state| state.replies(bot.channel).is_empty()).await;
    bot.idle().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    // Who asks then gets it, and no link to what is gone.
    let again = bot.mention(bot.bob, LINK);
    assert_eq!(bot.answers_to(again, 1).await[0].attachments.len(), 1);
    bot.end().await;
}

/// Once, what an attempt had posted whose answer was lost stayed when it was taken back before the next one.
#[tokio::test]
async fn what_is_taken_back_between_two_attempts_does_not_stay() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::DropAfterDone, 3);
    let asked = bot.mention(bot.ann, LINK);
    bot.discord.wait_until(|state| !state.replies(bot.channel).is_empty()).await;
    bot.discord.delete(asked);
    bot.discord.wait_until(|state| state.replies(bot.channel).is_empty()).await;
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

/// Once, the parts that came after the button was pressed stayed.
#[tokio::test]
async fn an_answer_that_is_removed_while_it_is_posted_goes_as_a_whole() {
    let bot = Bot::in_house(album(12).await).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Spared, 1);
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Late(700), 1);
    let asked = bot.mention(bot.ann, LINK);
    let first = bot.answers_to(asked, 1).await.remove(0);
    let (_, button) = first.buttons().remove(0);
    bot.discord.press(first.id, bot.ann, &button);
    bot.discord.wait_until(|state| state.replies(bot.channel).is_empty()).await;
    bot.idle().await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

#[tokio::test]
async fn what_was_taken_back_is_not_done_by_the_next_run() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    let film = films::ready();
    let stalling = crate::support::reply::Reply::file(films::Film::clone(&film)).stall_after(film.len() / 2);
    bot.house.cdn.on("/v.mp4", [stalling, crate::support::reply::Reply::file(film)]);
    bot.start().await;
    let asked = bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    // Its end does not come to be noted, as when the process is killed.
    let request = format!("withdrawn/discord-{asked}-0");
    let later = bot.house.clock.now().plus(Duration::from_secs(60));
    bot.app().rooms.store.put(azalea_bot::store::Shelf::Discord, request, Vec::new(), later);
    bot.stop().await;
    bot.start().await;
    bot.house.cdn.requests(2).await;
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

/// Once, the first part of an answer stayed without a button when a later one was refused.
#[tokio::test]
async fn an_answer_that_is_refused_in_the_middle_goes_as_a_whole() {
    let bot = Bot::in_house(album(12).await).await;
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Spared, 1);
    bot.discord.fail_next("POST", "/channels/*/messages", Fault::Code(400, 20_009), 1);
    let asked = bot.mention(bot.ann, LINK);
    let told = bot.discord.wait_until(move |state| {
        let replies = state.replies(bot.channel);
        replies.len() == 1 && replies[0].content.contains("filters") && replies[0].reference == Some(asked)
    });
    told.await;
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 1);
    bot.end().await;
}

/// Once, "Fetch media" took the preview away from a message of somebody else.
#[tokio::test]
async fn the_preview_of_somebody_elses_message_stays() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let said = bot.discord.say(bot.channel, bot.bob, LINK);
    bot.discord.context_menu(&Use::new(bot.channel, bot.ann), "Fetch media", said);
    bot.answers_to(said, 1).await;
    bot.idle().await;
    bot.discord.embed_arrives(said);
    let own = bot.mention(bot.ann, LINK);
    bot.answers_to(own, 1).await;
    bot.idle().await;
    assert!(!bot.discord.message(said).is_suppressed());
    bot.end().await;
}

/// Once, a command that waited behind a request that was taken back heard nothing more, and got nothing.
#[tokio::test]
async fn a_command_behind_a_request_that_is_taken_back_gets_its_media() {
    let house = House::with_video(films::ready()).await;
    let film = films::ready();
    let stalling = crate::support::reply::Reply::file(films::Film::clone(&film)).stall_after(film.len() / 2);
    house.cdn.on("/v.mp4", [stalling, crate::support::reply::Reply::file(film)]);
    let bot = Bot::in_house(house).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let asked = bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    let options = json!([{"type": 3, "name": "url", "value": LINK}]);
    let command = bot.discord.command(&Use::new(bot.channel, bot.bob), "fetch", &options);
    bot.discord.wait_until(|state| state.original(command).is_some_and(|answer| !answer.is_loading())).await;
    let told = bot.discord.look(|state| state.original(command).unwrap().clone());
    assert!(told.content.starts_with("Somebody asked for it here"), "{}", told.content);
    bot.discord.delete(asked);
    bot.discord
        .wait_until(|state| state.replies(bot.channel).iter().any(|reply| !reply.attachments.is_empty()))
        .await;
    bot.idle().await;
    bot.end().await;
}

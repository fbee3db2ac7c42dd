//! Commands: answered to the one who gave them, while the media go to the channel.

use serde_json::json;

use crate::bot::Bot;
use crate::double::{Fault, Use};
use crate::films;
use crate::house::LINK;

#[tokio::test]
async fn fetch_posts_in_the_channel_and_answers_in_private() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let options = json!([
        {"type": 3, "name": "url", "value": LINK},
        {"type": 3, "name": "as", "value": "audio"},
        {"type": 5, "name": "spoiler", "value": true},
    ]);
    let asked = bot.discord.command(&Use::new(bot.channel, bot.ann), "fetch", &options);
    bot.discord.wait_until(|state| state.original(asked).is_some_and(|answer| !answer.is_loading())).await;
    let told = bot.discord.look(|state| state.original(asked).unwrap().clone());
    assert!(told.is_ephemeral() && told.content == "On its way.", "{told:?}");
    bot.discord
        .wait_until(|state| state.replies(bot.channel).iter().any(|reply| !reply.attachments.is_empty()))
        .await;
    let all = bot.discord.look(|state| state.replies(bot.channel));
    let media = all.iter().find(|reply| !reply.attachments.is_empty()).unwrap();
    assert_eq!(media.attachments[0].name, "SPOILER_ann-20-1.m4a");
    assert!(media.attachments[0].spoiler);
    bot.end().await;
}

#[tokio::test]
async fn the_menu_of_a_message_fetches_its_links() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let said = bot.discord.say(bot.channel, bot.bob, LINK);
    let plain = bot.discord.say(bot.channel, bot.bob, "no link");
    bot.discord.context_menu(&Use::new(bot.channel, bot.ann), "Fetch media", said);
    assert_eq!(bot.answers_to(said, 1).await[0].attachments.len(), 1);
    let asked = bot.discord.context_menu(&Use::new(bot.channel, bot.ann), "Fetch media", plain);
    bot.discord.wait_until(|state| state.original(asked).is_some_and(|answer| !answer.is_loading())).await;
    let told = bot.discord.look(|state| state.original(asked).unwrap().clone());
    assert_eq!(told.content, "There is no link to a post in that message.");
    bot.end().await;
}

#[tokio::test]
async fn check_says_what_is_lacking() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let check = json!([{"type": 1, "name": "check", "options": []}]);
    let asked = bot.discord.command(&Use::new(bot.channel, bot.ann), "azalea", &check);
    bot.discord.wait_until(|state| state.original(asked).is_some_and(|answer| !answer.is_loading())).await;
    let told = bot.discord.look(|state| state.original(asked).unwrap().clone());
    assert_eq!(told.content, "I can post here.");
    bot.end().await;
}

#[tokio::test]
async fn an_acknowledgement_whose_answer_is_lost_loses_no_command() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    bot.discord.fail_next("POST", "/interactions/*/*/callback", Fault::DropAfterDone, 1);
    let options = json!([{"type": 3, "name": "url", "value": LINK}]);
    let asked = bot.discord.command(&Use::new(bot.channel, bot.ann), "fetch", &options);
    bot.discord.wait_until(|state| state.original(asked).is_some_and(|answer| !answer.is_loading())).await;
    let told = bot.discord.look(|state| state.original(asked).unwrap().clone());
    assert_eq!(told.content, "On its way.");
    bot.idle().await;
    bot.end().await;
}

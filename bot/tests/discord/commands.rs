//! Commands: answered to the one who gave them, while the media go to the channel.

use serde_json::json;

use crate::bot::Bot;
use crate::double::{Fault, GuildSpec, Use};
use crate::films;
use crate::house::{House, LINK, page, tweet};

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

/// What somebody is told who gives this command.
async fn told(
    bot: &Bot,
    who: serenity::model::id::UserId,
    under: &str,
    options: serde_json::Value,
) -> String {
    let words = json!([{"type": 1, "name": under, "options": options}]);
    let asked = bot.discord.command(&Use::new(bot.channel, who), "azalea", &words);
    bot.discord.wait_until(|state| state.original(asked).is_some_and(|answer| !answer.is_loading())).await;
    bot.discord.look(|state| state.original(asked).unwrap().content.clone())
}

#[tokio::test]
async fn moderators_say_what_holds_in_their_server() {
    let mut bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let moderator = bot.discord.user("mod");
    bot.discord.make_moderator(bot.guild, moderator);
    let bare =
        json!([{"type": 5, "name": "caption", "value": false}, {"type": 5, "name": "here", "value": true}]);
    let refused = told(&bot, bot.ann, "settings", bare.clone()).await;
    assert_eq!(refused, "Only those who may manage the server can change that.");
    let changed = told(&bot, moderator, "settings", bare).await;
    assert!(changed.contains("Author and text above the media: off"), "{changed}");
    assert!(changed.ends_with(&format!("I post: <#{}>", bot.channel)), "{changed}");
    // Over a restart too.
    bot.stop().await;
    bot.start().await;
    let asked = bot.mention(bot.ann, LINK);
    let answer = bot.answers_to(asked, 1).await.remove(0);
    assert_eq!((answer.content.as_str(), answer.attachments.len()), ("", 1));
    let here = bot.channel;
    bot.channel = bot.discord.text_channel(bot.guild);
    let asked = bot.mention(bot.ann, LINK);
    let answer = bot.answers_to(asked, 1).await.remove(0);
    assert_eq!(answer.content, format!("Here I post in <#{here}> only."));
    bot.end().await;
}

#[tokio::test]
async fn links_are_answered_without_a_mention_where_moderators_want_it() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    bot.house.config.discord.message_content = true;
    bot.discord.grant_content(true);
    bot.house.x.on("/i/status/21", [page(&tweet(21, &json!([])))]);
    bot.start().await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let moderator = bot.discord.user("mod");
    bot.discord.make_moderator(bot.guild, moderator);
    let on = told(&bot, moderator, "settings", json!([{"type": 5, "name": "auto", "value": true}])).await;
    assert!(on.starts_with("Links without a mention: on\n"), "{on}");
    // A post without media is no reason to say something, nor is one that stands there already.
    bot.discord.say(bot.channel, bot.ann, "https://x.com/i/status/21");
    let said = bot.discord.say(bot.channel, bot.ann, &format!("look: {LINK}"));
    assert_eq!(bot.answers_to(said, 1).await[0].attachments.len(), 1);
    bot.discord.say(bot.channel, bot.bob, LINK);
    let asked = bot.mention(bot.bob, LINK);
    assert!(bot.answers_to(asked, 1).await[0].content.starts_with("Already here"));
    bot.idle().await;
    let mut all = bot.discord.look(|state| state.replies(bot.channel));
    all.retain(|reply| !reply.is_ephemeral());
    assert_eq!(all.len(), 2, "{all:#?}");
    bot.end().await;
}

#[tokio::test]
async fn what_somebody_asked_for_is_forgotten_when_they_say_so() {
    let bot = Bot::with_video(films::endless()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    let words = told(&bot, bot.ann, "forget", json!([])).await;
    assert!(words.starts_with("1 request of yours is forgotten."), "{words}");
    bot.idle().await;
    // What said how it went goes too.
    bot.discord.wait_until(|state| state.replies(bot.channel).iter().all(|reply| reply.is_ephemeral())).await;
    bot.end().await;
}

#[tokio::test]
async fn why_says_what_was_done_for_a_post() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.wait_until(|state| state.registrations() == 1).await;
    let url = json!([{"type": 3, "name": "url", "value": LINK}]);
    assert!(told(&bot, bot.ann, "why", url.clone()).await.starts_with("I did nothing for that post"));
    let asked = bot.mention(bot.ann, LINK);
    bot.answers_to(asked, 1).await;
    bot.idle().await;
    let words = told(&bot, bot.ann, "why", url).await;
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines.len(), 3, "{words}");
    for (line, part) in
        lines.iter().zip(["vxtwitter: gave the post, ", "medium 1: pass, ", "posting it: done, "])
    {
        assert!(line.contains(part), "{words}");
    }
    bot.end().await;
}

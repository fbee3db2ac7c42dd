//! Who is heard, and what they see.

use azalea_bot::metrics::Counter;
use serde_json::json;
use serenity::model::gateway::GatewayIntents;

use crate::bot::Bot;
use crate::films;
use crate::house::{House, LINK, POST, page, tweet};
use crate::support::reply::Reply;

#[tokio::test]
async fn a_mention_with_a_link_is_answered_with_the_media_once() {
    let bot = Bot::with_video(films::ready()).await;
    let asked = bot.mention(bot.ann, &format!("look {LINK} !"));
    bot.discord.embed_arrives(asked);
    let answers = bot.answers_to(asked, 1).await;
    let [answer] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(answer.content, "**Ann** (@ann)\nlook\n<https://x.com/i/status/20>");
    let [file] = answer.attachments.as_slice() else { panic!("{answer:?}") };
    assert_eq!((file.name.as_str(), file.spoiler), ("ann-20-1.mp4", false));
    assert_eq!(file.description.as_deref(), Some("the film /v.mp4"));
    assert_eq!(file.bytes.as_deref(), Some(&films::ready()[..]));
    assert_eq!(answer.buttons().iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["Delete"]);
    // Seen to be at work at once, and the preview is gone.
    bot.discord.wait_until(|state| state.typing(answer.channel) == 1).await;
    bot.discord.wait_until(|state| state.message(asked).unwrap().is_suppressed()).await;
    // A preview that comes late goes, too.
    bot.discord.embed_arrives(asked);
    bot.idle().await;
    assert_eq!(bot.replies(1).await.len(), 1);
    let intents = GatewayIntents::GUILDS | GatewayIntents::GUILD_MESSAGES | GatewayIntents::DIRECT_MESSAGES;
    assert_eq!(bot.discord.look(|state| state.identified().to_vec()), [intents]);
    bot.end().await;
}

#[tokio::test]
async fn who_asks_second_gets_a_link_to_the_first_answer() {
    let bot = Bot::with_video(films::ready()).await;
    let first = bot.mention(bot.ann, LINK);
    let media = bot.answers_to(first, 1).await[0].id;
    let second = bot.mention(bot.bob, &format!("{LINK}?s=20"));
    let pointer = bot.answers_to(second, 1).await;
    let expected = format!("https://discord.com/channels/{}/{}/{media}", bot.guild, bot.channel);
    assert!(pointer[0].content.ends_with(&expected), "{}", pointer[0].content);
    // Where the answer is gone, it is given again.
    bot.discord.delete(media);
    let third = bot.mention(bot.bob, LINK);
    let again = bot.answers_to(third, 1).await;
    assert_eq!(again[0].attachments.len(), 1, "{again:?}");
    assert_eq!(bot.house.cdn.seen("/v.mp4").len(), 1, "it was made before");
    bot.end().await;
}

#[tokio::test]
async fn links_in_the_message_that_is_answered_count() {
    let bot = Bot::with_video(films::ready()).await;
    bot.discord.reveal_referenced(true);
    let posted = bot.discord.say(bot.channel, bot.bob, LINK);
    let asked = bot.discord.reply(bot.channel, bot.ann, posted, &format!("<@{}> please", bot.discord.bot()));
    assert_eq!(bot.answers_to(asked, 1).await[0].attachments.len(), 1);
    bot.end().await;
}

#[tokio::test]
async fn several_links_are_several_answers() {
    let house = House::with_video(films::ready()).await;
    house.cdn.on("/p.jpg", [Reply::file(films::photo("red")).header("Content-Type", "image/jpeg")]);
    let photo = house.photo("/p.jpg");
    house.x.on("/i/status/21", [page(&tweet(21, &json!([photo])))]);
    let bot = Bot::in_house(house).await;
    let asked = bot.mention(bot.ann, &format!("{LINK} and https://fixupx.com/b/status/21 {LINK}"));
    let mut names: Vec<String> =
        bot.answers_to(asked, 2).await.into_iter().map(|answer| answer.attachments[0].name.clone()).collect();
    names.sort();
    assert_eq!(names, ["ann-20-1.mp4", "ann-21-1.jpg"]);
    bot.idle().await;
    assert_eq!(bot.replies(2).await.len(), 2);
    bot.end().await;
}

#[tokio::test]
async fn who_does_not_mean_the_bot_hears_nothing() {
    let bot = Bot::with_video(films::ready()).await;
    let me = bot.discord.bot();
    let said = bot.discord.say(bot.channel, bot.bob, LINK);
    // The bot's own words mention itself, and its answers hold links.
    bot.discord.say(bot.channel, me, &format!("<@{me}> {LINK}"));
    let asked = bot.mention(bot.ann, LINK);
    let answer = bot.answers_to(asked, 1).await[0].id;
    // An answer to the bot mentions it, and asks for nothing.
    let thanks = bot.discord.reply(bot.channel, bot.ann, answer, "thank you");
    // What comes last is answered last: everything before it was looked at by then.
    let help = bot.mention(bot.ann, "what do you do?");
    let told = bot.answers_to(help, 1).await;
    assert!(told[0].content.starts_with("Mention me together with a link"), "{}", told[0].content);
    let answered = bot.discord.look(|state| {
        state
            .replies(bot.channel)
            .into_iter()
            .filter(|reply| reply.reference == Some(said) || reply.reference == Some(thanks))
            .count()
    });
    assert_eq!(answered, 0);
    bot.idle().await;
    bot.end().await;
}

#[tokio::test]
async fn a_role_that_is_mentioned_instead_is_told_how() {
    let bot = Bot::with_video(films::ready()).await;
    let role = bot.discord.bot_role(bot.guild);
    let asked = bot.discord.say(bot.channel, bot.ann, &format!("<@&{role}> {LINK}"));
    let told = bot.answers_to(asked, 1).await;
    assert!(told[0].content.contains("Mention me by name"), "{}", told[0].content);
    bot.end().await;
}

#[tokio::test]
async fn direct_messages_need_no_mention() {
    let mut bot = Bot::with_video(films::ready()).await;
    bot.channel = bot.discord.dm(bot.ann);
    let asked = bot.discord.say(bot.channel, bot.ann, LINK);
    assert_eq!(bot.answers_to(asked, 1).await[0].attachments.len(), 1);
    bot.end().await;
}

#[tokio::test]
async fn what_the_gateway_says_twice_is_done_once() {
    let bot = Bot::with_video(films::ready()).await;
    let asked = bot.mention(bot.ann, LINK);
    bot.discord.replay(1);
    bot.answers_to(asked, 1).await;
    bot.discord.drop_connections();
    bot.discord.wait_until(|state| state.resumed() == 1).await;
    bot.discord.replay(5);
    let later = bot.mention(bot.bob, "hello?");
    bot.answers_to(later, 1).await;
    bot.idle().await;
    let all = bot.replies(2).await;
    assert_eq!(all.len(), 2, "{all:?}");
    let counts = bot.app().rooms.tracker.totals();
    assert_eq!(counts.counter(Counter::Requests), 1);
    bot.end().await;
}

#[tokio::test]
async fn a_post_that_is_gone_is_said_in_a_sentence() {
    let house = House::new().await;
    house.post(&json!([]));
    let bot = Bot::in_house(house).await;
    let asked = bot.mention(bot.ann, LINK);
    let told = bot.answers_to(asked, 1).await;
    let expected = format!("No media: the post has no photo, video or GIF.\n-# discord-{asked}-0");
    assert_eq!(told[0].content, expected);
    assert_eq!(bot.house.x.seen(POST).len(), 1);
    bot.end().await;
}

#[tokio::test]
async fn a_link_behind_a_spoiler_is_answered_behind_one() {
    let bot = Bot::with_video(films::ready()).await;
    let asked = bot.mention(bot.ann, &format!("||{LINK}||"));
    let answer = bot.answers_to(asked, 1).await.remove(0);
    assert!(answer.attachments[0].spoiler, "{answer:?}");
    assert!(answer.content.contains("||look||"), "{}", answer.content);
    bot.end().await;
}

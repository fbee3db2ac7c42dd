//! Many who ask at once, while Discord drops connections and answers with errors now and then.

use std::collections::HashMap;

use azalea_bot::metrics::Counter;
use serde_json::json;
use serenity::model::id::MessageId;

use crate::bot::Bot;
use crate::double::{Fault, Scope};
use crate::films;
use crate::house::{House, LINK, page, tweet};

const CHANNELS: usize = 20;
const MENTIONS: usize = 200;
const POSTS: u64 = 4;

#[tokio::test]
async fn each_of_two_hundred_mentions_has_one_answer_through_all_trouble() {
    let house = House::with_video(films::old()).await;
    for number in 21..20 + POSTS {
        house.x.on(&format!("/i/status/{number}"), [page(&tweet(number, &json!([house.video("/v.mp4")])))]);
    }
    let bot = Bot::in_house(house).await;
    let channels: Vec<_> = (0..CHANNELS).map(|_| bot.discord.text_channel(bot.guild)).collect();
    let mut asked: Vec<MessageId> = Vec::new();
    for mention in 0..MENTIONS {
        let link = LINK.replace("20", &(20 + mention as u64 % POSTS).to_string());
        let who = bot.discord.user(&format!("user {mention}"));
        asked.push(bot.mention_in(channels[mention % CHANNELS], who, &link));
        match mention {
            50 | 150 => bot.discord.drop_connections(),
            20 | 120 => bot.discord.fail_next("POST", "/channels/*/messages", Fault::Status(502), 2),
            80 => bot.discord.fail_next("POST", "/channels/*/messages", Fault::DropAfterDone, 2),
            100 => {
                let limited = Fault::Limited { scope: Scope::User, retry_after_ms: 100 };
                bot.discord.fail_next("POST", "/channels/*/messages", limited, 2);
            }
            _ => {}
        }
    }
    let (wanted, places) = (asked.clone(), channels.clone());
    bot.discord
        .wait_until(move |state| {
            let answered: Vec<MessageId> = places
                .iter()
                .flat_map(|channel| state.replies(*channel))
                .filter_map(|reply| reply.reference)
                .collect();
            wanted.iter().all(|message| answered.contains(message))
        })
        .await;
    bot.idle().await;
    let mut answers: HashMap<MessageId, usize> = HashMap::new();
    let mut media = 0;
    for channel in &channels {
        for reply in bot.discord.look(|state| state.replies(*channel)) {
            media += usize::from(!reply.attachments.is_empty());
            *answers.entry(reply.reference.unwrap()).or_default() += 1;
        }
    }
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
    assert_eq!(answers.len(), MENTIONS);
    // In each channel one post was asked for, and it stands there once.
    assert_eq!(media, CHANNELS);
    assert_eq!(bot.app().rooms.tracker.totals().counter(Counter::ArtifactMisses), POSTS);
    bot.end().await;
}

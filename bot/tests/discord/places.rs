//! Places of all kinds: threads, posts of forums, voice channels, and servers of several shards.

use crate::bot::Bot;
use crate::double::{ChannelSpec, GuildSpec, Kind};
use crate::films;
use crate::house::{House, LINK};

fn place(kind: Kind) -> ChannelSpec {
    ChannelSpec { kind, name: "a place".to_owned(), ..ChannelSpec::default() }
}

#[tokio::test]
async fn whoever_asks_in_a_thread_is_answered_there() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    let forum = bot.discord.add_channel(bot.guild, place(Kind::Forum));
    let thread = |parent, archived| place(Kind::PublicThread { parent, archived, locked: false });
    let places = [
        bot.discord.add_channel(bot.guild, thread(bot.channel, false)),
        bot.discord.add_channel(bot.guild, thread(bot.channel, true)),
        bot.discord.add_channel(bot.guild, thread(forum, false)),
        bot.discord.add_channel(bot.guild, place(Kind::Voice)),
        bot.discord.add_channel(bot.guild, place(Kind::News)),
    ];
    bot.start().await;
    for place in places {
        bot.channel = place;
        let asked = bot.mention(bot.ann, LINK);
        assert_eq!(bot.answers_to(asked, 1).await[0].attachments.len(), 1);
    }
    bot.end().await;
}

#[tokio::test]
async fn who_asks_in_a_locked_thread_is_told_directly() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    let locked = Kind::PublicThread { parent: bot.channel, archived: false, locked: true };
    let thread = bot.discord.add_channel(bot.guild, place(locked));
    bot.start().await;
    let direct = bot.discord.dm(bot.ann);
    bot.mention_in(thread, bot.ann, LINK);
    bot.discord.wait_until(|state| !state.replies(direct).is_empty()).await;
    let told = bot.discord.messages(direct);
    assert!(told[0].content.contains("Discord does not let me write there"), "{}", told[0].content);
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(thread)).len(), 0);
    bot.end().await;
}

#[tokio::test]
async fn as_many_shards_are_opened_as_discord_recommends() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    bot.discord.set_shards(2);
    bot.start().await;
    bot.discord.wait_until(|state| state.identified().len() == 2).await;
    let asked = bot.mention(bot.ann, LINK);
    assert_eq!(bot.answers_to(asked, 1).await[0].attachments.len(), 1);
    bot.idle().await;
    bot.end().await;
}

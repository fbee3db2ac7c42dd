//! How much goes into a message, and what is learned about it.

use serde_json::json;
use serenity::model::Permissions;

use crate::bot::Bot;
use crate::double::{ChannelSpec, GuildSpec, Kind, Overwrite, Whose};
use crate::films::{self, Film};
use crate::house::{House, LINK};
use crate::support::reply::Reply;

/// A post with so many photos.
pub(crate) async fn album(photos: usize) -> House {
    let house = House::new().await;
    let film = films::photo("red");
    let media: Vec<_> = (0..photos)
        .map(|place| {
            let path = format!("/{place}.jpg");
            house.cdn.on(&path, [Reply::file(film.clone()).header("Content-Type", "image/jpeg")]);
            house.photo(&path)
        })
        .collect();
    house.post(&json!(media));
    house
}

/// Three seconds of noise, half a megabyte: what fits, and is more than some take.
fn noise() -> Film {
    let source = "nullsrc=size=320x240:rate=25:duration=3,geq=random(1)*255:128:128";
    let codec = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "1500k", "-pix_fmt", "yuv420p"];
    films::make(
        &[&["-f", "lavfi", "-i", source][..], &codec, &["-movflags", "+faststart"]].concat(),
        "noise.mp4",
    )
}

#[tokio::test]
async fn all_media_come_in_order_and_in_as_few_messages_as_there_can_be() {
    let bot = Bot::in_house(album(12).await).await;
    let asked = bot.mention(bot.ann, LINK);
    let answers = bot.answers_to(asked, 2).await;
    let names: Vec<Vec<&str>> = answers
        .iter()
        .map(|answer| answer.attachments.iter().map(|file| file.name.as_str()).collect())
        .collect();
    let expected: Vec<String> = (1..=12).map(|place| format!("ann-20-{place}.jpg")).collect();
    assert_eq!(names.iter().map(Vec::len).collect::<Vec<_>>(), [10, 2]);
    assert_eq!(names.concat(), expected);
    // Words above the first, a button below each, so that one that stands alone can be removed too.
    assert!(!answers[0].content.is_empty() && answers[1].content.is_empty());
    assert!(answers.iter().all(|answer| answer.buttons().len() == 1));
    bot.end().await;
}

#[tokio::test]
async fn a_file_that_is_refused_is_made_smaller_and_the_server_remembered() {
    let mut bot = Bot::asleep(
        House::with_video(films::old()).await,
        GuildSpec { premium_tier: 2, ..GuildSpec::default() },
    )
    .await;
    // Its boosts would give 50 MiB; in truth nothing above 300 KiB is taken.
    bot.discord.set_upload_limit(bot.guild, 300 << 10);
    bot.house.cdn.on("/v.mp4", [Reply::file(noise())]);
    bot.start().await;
    let asked = bot.mention(bot.ann, LINK);
    let answers = bot.answers_to(asked, 1).await;
    assert_eq!(answers.len(), 1);
    assert!(answers[0].attachments[0].length <= 300 << 10, "{answers:?}");
    let refused = bot.discord.requests().into_iter().filter(|(_, _, status)| *status == 413).count();
    assert!(refused >= 1);
    bot.end().await;
}

#[tokio::test]
async fn files_that_are_too_much_together_come_apart() {
    let house = House::new().await;
    let film = noise();
    let media: Vec<_> = (0..4)
        .map(|place| {
            let path = format!("/{place}.mp4");
            house.cdn.on(&path, [Reply::file(film.clone())]);
            house.video(&path)
        })
        .collect();
    house.post(&json!(media));
    let mut bot = Bot::asleep(house, GuildSpec::default()).await;
    let one = u64::try_from(film.len()).unwrap();
    // Three of them and what is around them.
    bot.discord.set_request_limit(Some(one * 3 + one / 2));
    bot.start().await;
    let asked = bot.mention(bot.ann, LINK);
    let answers = bot.answers_to(asked, 2).await;
    bot.idle().await;
    let counts: Vec<usize> = answers.iter().map(|answer| answer.attachments.len()).collect();
    assert_eq!(counts, [2, 2]);
    bot.end().await;
}

#[tokio::test]
async fn sensitive_media_are_hidden_in_ordinary_channels_and_shown_in_restricted_ones() {
    let house = House::with_video(films::ready()).await;
    let mut tweet = crate::house::tweet(20, &json!([house.video("/v.mp4")]));
    tweet["possibly_sensitive"] = json!(true);
    house.x.on(crate::house::POST, [crate::house::page(&tweet)]);
    let mut bot = Bot::asleep(house, GuildSpec::default()).await;
    let ordinary = bot.channel;
    let restricted = bot.discord.add_channel(
        bot.guild,
        ChannelSpec { nsfw: true, name: "late".to_owned(), ..ChannelSpec::default() },
    );
    let thread = bot.discord.add_channel(
        bot.guild,
        ChannelSpec {
            kind: Kind::PublicThread { parent: restricted, archived: false, locked: false },
            name: "deeper".to_owned(),
            ..ChannelSpec::default()
        },
    );
    bot.start().await;
    for (channel, hidden) in [(ordinary, true), (restricted, false), (thread, false)] {
        bot.channel = channel;
        let asked = bot.mention(bot.ann, LINK);
        let answer = bot.answers_to(asked, 1).await.remove(0);
        assert_eq!(answer.attachments[0].spoiler, hidden, "{channel}");
    }
    bot.end().await;
}

#[tokio::test]
async fn where_history_is_hidden_it_posts_below() {
    let house = House::with_video(films::ready()).await;
    let permissions = Permissions::VIEW_CHANNEL | Permissions::SEND_MESSAGES | Permissions::ATTACH_FILES;
    let spec = GuildSpec { bot_permissions: permissions, ..GuildSpec::default() };
    let mut bot = Bot::asleep(house, spec).await;
    bot.start().await;
    bot.mention(bot.ann, LINK);
    let answers = bot.replies(1).await;
    assert_eq!((answers[0].reference, answers[0].attachments.len()), (None, 1));
    bot.end().await;
}

#[tokio::test]
async fn what_the_bot_lacks_is_said_before_anything_is_fetched() {
    let mut bot = Bot::asleep(House::with_video(films::ready()).await, GuildSpec::default()).await;
    let deny = |deny| vec![Overwrite { whose: Whose::BotRole, allow: Permissions::empty(), deny }];
    bot.discord.change_channel(bot.channel, |channel| channel.overwrites = deny(Permissions::ATTACH_FILES));
    bot.start().await;
    let asked = bot.mention(bot.ann, LINK);
    let told = bot.answers_to(asked, 1).await;
    assert_eq!(told[0].content, "I cannot post here: I lack the permissions Attach Files.");
    // Where it may not even speak, it says so directly, once.
    bot.discord.change_channel(bot.channel, |channel| channel.overwrites = deny(Permissions::SEND_MESSAGES));
    let direct = bot.discord.dm(bot.bob);
    bot.mention(bot.bob, LINK);
    bot.mention(bot.bob, LINK);
    bot.discord.wait_until(|state| !state.replies(direct).is_empty()).await;
    let told = bot.discord.messages(direct);
    assert!(told[0].content.contains("I lack the permissions Send Messages there"), "{}", told[0].content);
    assert_eq!(bot.house.x.seen(crate::house::POST).len(), 0);
    bot.end().await;
}

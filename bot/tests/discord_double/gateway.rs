//! Sessions: how they begin, what they are told, and how they go on after each way to break.

use std::time::Duration;

use serenity::gateway::GatewayError;
use serenity::model::Permissions;
use serenity::model::event::{Event, ResumedEvent};
use serenity::model::gateway::GatewayIntents;

use crate::client::{Bot, House, body, plain_intents, refusal};
use crate::discord::{ChannelSpec, GuildSpec, Kind, Overwrite, State, Whose};

/// The text of a message event.
fn text(event: Event) -> Option<String> {
    match event {
        Event::MessageCreate(created) => Some(created.message.content),
        _ => None,
    }
}

fn resumed(event: Event) -> Option<ResumedEvent> {
    if let Event::Resumed(resumed) = event { Some(resumed) } else { None }
}

fn session(event: Event) -> Option<String> {
    match event {
        Event::Ready(ready) => Some(ready.ready.session_id),
        _ => None,
    }
}

#[tokio::test]
async fn a_client_identifies_and_is_told_of_its_guilds() {
    let house = House::new().await;
    let mut bot = Bot::start(&house.discord, plain_intents()).await;

    let ready =
        bot.hear(|event| if let Event::Ready(ready) = event { Some(ready.ready) } else { None }).await;
    assert_eq!(ready.user.id, house.discord.bot());
    assert_eq!(ready.application.id, house.discord.application());
    assert_eq!(
        ready.guilds.iter().map(|guild| (guild.id, guild.unavailable)).collect::<Vec<_>>(),
        [(house.guild, true)]
    );
    let guild = bot.hear_guild().await;
    assert_eq!((guild.id, guild.unavailable), (house.guild, false));
    assert_eq!(guild.channels[&house.channel].name, "talk");
    let own = &guild.roles[&house.discord.bot_role(house.guild)];
    assert_eq!((own.managed, own.tags.bot_id), (true, Some(house.discord.bot())));
    assert_eq!(guild.members[&house.discord.bot()].roles, [own.id]);
    assert_eq!(house.discord.look(|state| state.identified().to_vec()), [plain_intents()]);

    bot.stop().await;
    house.discord.wait_until(|state| state.connected() == 0).await;
    house.all_good();
}

#[tokio::test]
async fn without_the_intent_content_is_there_only_for_those_who_are_meant() {
    let house = House::new().await;
    let (discord, ann) = (&house.discord, house.ann);
    let mut bot = Bot::start(discord, plain_intents()).await;
    bot.hear_guild().await;
    let own = discord.bot();

    discord.say(house.channel, ann, "nobody is meant https://x.com/i/status/1");
    assert_eq!(bot.hear_message().await.content, "");
    let meant = discord.say(house.channel, ann, &format!("<@{own}> https://x.com/i/status/2"));
    let heard = bot.hear_message().await;
    assert_eq!((heard.id, heard.content), (meant, format!("<@{own}> https://x.com/i/status/2")));
    assert_eq!((heard.guild_id, heard.mentions[0].id, heard.author.id), (Some(house.guild), own, ann));
    discord.say(discord.dm(ann), ann, "between us");
    assert_eq!(bot.hear_message().await.content, "between us");

    // The role of the bot is no mention of the bot.
    let role = discord.bot_role(house.guild);
    discord.say(house.channel, ann, &format!("<@&{role}> https://x.com/i/status/3"));
    let heard = bot.hear_message().await;
    assert_eq!((heard.content, heard.mention_roles, heard.mentions.len()), (String::new(), vec![role], 0));

    // Whether the message that a reply is to has its content is not known: both can be had.
    let first = discord.say(house.channel, ann, "https://x.com/i/status/4");
    bot.hear_message().await;
    for (revealed, content) in [(false, ""), (true, "https://x.com/i/status/4")] {
        discord.reveal_referenced(revealed);
        discord.reply(house.channel, ann, first, &format!("<@{own}> this one"));
        let referenced = bot.hear_message().await.referenced_message.unwrap();
        assert_eq!((referenced.id, referenced.content), (first, content.to_owned()));
    }
    house.all_good();
}

#[tokio::test]
async fn a_reply_mentions_the_author_of_an_ordinary_message() {
    let house = House::new().await;
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    bot.hear_guild().await;
    let sent = house.send(house.channel, &body("here you are", "n1")).await.unwrap();
    let own = bot.hear_message().await;
    assert_eq!((own.id, own.content.as_str()), (sent, "here you are"));
    assert!(matches!(own.nonce, Some(serenity::model::channel::Nonce::String(nonce)) if nonce == "n1"));

    house.discord.reply(house.channel, house.ann, sent, "thank you");
    let heard = bot.hear_message().await;
    assert_eq!((heard.content.as_str(), heard.mentions[0].id), ("thank you", house.discord.bot()));
    house.all_good();
}

#[tokio::test]
async fn an_intent_that_was_not_granted_ends_the_client() {
    let house = House::new().await;
    let wanted = plain_intents() | GatewayIntents::MESSAGE_CONTENT;
    let bot = Bot::start(&house.discord, wanted).await;
    let ended = bot.task.await.unwrap().unwrap_err();
    assert!(matches!(ended, serenity::Error::Gateway(GatewayError::DisallowedGatewayIntents)), "{ended:?}");

    house.discord.grant_content(true);
    let mut bot = Bot::start(&house.discord, wanted).await;
    bot.hear_guild().await;
    house.discord.say(house.channel, house.ann, "all is seen");
    assert_eq!(bot.hear_message().await.content, "all is seen");
    house.all_good();
}

#[tokio::test]
async fn a_token_that_is_not_valid_any_more_is_refused_by_rest_and_gateway() {
    let house = House::new().await;
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    bot.hear_guild().await;
    house.discord.revoke_token();
    house.discord.drop_connections();
    let ended = bot.task.await.unwrap().unwrap_err();
    assert!(matches!(ended, serenity::Error::Gateway(GatewayError::InvalidAuthentication)), "{ended:?}");
    assert_eq!(refusal(&house.http.get_bot_gateway().await.unwrap_err()), (401, 0));
    assert_eq!(house.discord.look(State::invalid_requests), 1);
    house.all_good();
}

#[tokio::test]
async fn a_cut_session_resumes_and_hears_what_it_missed() {
    let house = House::new().await;
    let discord = &house.discord;
    let mut bot = Bot::start(discord, plain_intents()).await;
    bot.hear_guild().await;
    let say = |text: &str| discord.say(house.channel, house.ann, &format!("<@{}> {text}", discord.bot()));
    say("before");
    assert!(bot.hear(text).await.ends_with("before"));

    discord.drop_connections();
    say("meanwhile");
    assert!(bot.hear(text).await.ends_with("meanwhile"));
    bot.hear(resumed).await;
    say("after");
    assert!(bot.hear(text).await.ends_with("after"));

    discord.ask_to_reconnect();
    bot.hear(resumed).await;
    discord.close_connections(4000);
    bot.hear(resumed).await;
    discord.invalidate(true);
    bot.hear(resumed).await;
    say("at last");
    assert!(bot.hear(text).await.ends_with("at last"));
    assert_eq!(discord.look(|state| (state.identified().len(), state.resumed())), (1, 4));
    house.all_good();
}

#[tokio::test]
async fn an_invalid_session_begins_anew_and_uses_up_a_start() {
    let house = House::new().await;
    house.discord.set_starts_left(10);
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    let first = bot.hear(session).await;
    house.discord.invalidate(false);
    let second = bot.hear(session).await;
    assert_ne!(first, second);
    let limit = house.http.get_bot_gateway().await.unwrap().session_start_limit;
    assert_eq!((limit.total, limit.remaining, limit.max_concurrency), (1000, 8, 1));
    house.all_good();
}

#[tokio::test]
async fn a_zombie_connection_takes_heartbeats_and_gives_nothing() {
    let house = House::new().await;
    house.discord.set_heartbeat(Duration::from_millis(300));
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    let first = bot.hear(session).await;
    house.discord.go_zombie();
    house.discord.say(house.channel, house.ann, "nobody hears this");
    // The client finds out by its heartbeats, and begins anew.
    let second = bot.hear(session).await;
    assert_ne!(first, second);
    house.all_good();
}

#[tokio::test]
async fn events_can_come_twice() {
    let house = House::new().await;
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    bot.hear_guild().await;
    let mention = |text: &str| format!("<@{}> {text}", house.discord.bot());
    let said = [
        house.discord.say(house.channel, house.ann, &mention("one")),
        house.discord.say(house.channel, house.ann, &mention("two")),
    ];
    for id in said {
        assert_eq!(bot.hear_message().await.id, id);
    }
    house.discord.replay(2);
    for id in said {
        assert_eq!(bot.hear_message().await.id, id);
    }
    house.all_good();
}

#[tokio::test]
async fn what_the_bot_must_not_see_it_is_not_told() {
    let house = House::new().await;
    let hide =
        Overwrite { whose: Whose::BotRole, allow: Permissions::empty(), deny: Permissions::VIEW_CHANNEL };
    let hidden = ChannelSpec { overwrites: vec![hide], ..ChannelSpec::default() };
    let hidden = house.discord.add_channel(house.guild, hidden);
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    bot.hear_guild().await;
    let mention = format!("<@{}>", house.discord.bot());
    house.discord.say(hidden, house.ann, &mention);
    let seen = house.discord.say(house.channel, house.ann, &mention);
    assert_eq!(bot.hear_message().await.id, seen);
    house.all_good();
}

#[tokio::test]
async fn deletes_edits_and_late_previews_are_told() {
    let house = House::new().await;
    let discord = &house.discord;
    let mut bot = Bot::start(discord, plain_intents()).await;
    bot.hear_guild().await;
    let said: Vec<_> = (0..4)
        .map(|at| {
            discord.say(
                house.channel,
                house.ann,
                &format!("<@{}> https://x.com/i/status/{at}", discord.bot()),
            )
        })
        .collect();

    discord.embed_arrives(said[0]);
    let update =
        bot.hear(|event| if let Event::MessageUpdate(update) = event { Some(update) } else { None }).await;
    assert_eq!(
        (update.id, update.embeds.unwrap()[0].url.as_deref()),
        (said[0], Some("https://x.com/i/status/0"))
    );
    discord.delete(said[1]);
    let gone = bot.hear(|event| if let Event::MessageDelete(gone) = event { Some(gone) } else { None }).await;
    assert_eq!(
        (gone.message_id, gone.channel_id, gone.guild_id),
        (said[1], house.channel, Some(house.guild))
    );
    discord.delete_bulk(house.channel, &said[2..]);
    let gone =
        bot.hear(|event| if let Event::MessageDeleteBulk(gone) = event { Some(gone) } else { None }).await;
    assert_eq!(gone.ids, &said[2..]);
    assert_eq!(discord.messages(house.channel).len(), 1);
    assert_eq!(discord.deleted().iter().map(|message| message.id).collect::<Vec<_>>(), &said[1..]);
    house.all_good();
}

#[tokio::test]
async fn changes_of_guilds_and_channels_are_told() {
    let house = House::new().await;
    let discord = &house.discord;
    let mut bot = Bot::start(discord, plain_intents()).await;
    bot.hear_guild().await;

    let second = discord.add_guild(GuildSpec { name: "second".to_owned(), ..GuildSpec::default() });
    assert_eq!(bot.hear_guild().await.id, second);
    discord.set_permissions(second, Permissions::VIEW_CHANNEL);
    let role =
        bot.hear(|event| if let Event::GuildRoleUpdate(update) = event { Some(update.role) } else { None });
    assert_eq!(role.await.permissions, Permissions::VIEW_CHANNEL);
    discord.change_channel(house.channel, |channel| channel.nsfw = true);
    let changed = |event| if let Event::ChannelUpdate(update) = event { Some(update.channel) } else { None };
    assert!(bot.hear(changed).await.nsfw);
    let kind = Kind::PublicThread { parent: house.channel, archived: false, locked: false };
    let thread = discord.add_channel(house.guild, ChannelSpec { kind, ..ChannelSpec::default() });
    let made = |event| if let Event::ThreadCreate(made) = event { Some(made.thread) } else { None };
    let made = bot.hear(made).await;
    assert_eq!((made.id, made.parent_id, made.guild_id), (thread, Some(house.channel), house.guild));
    discord.throw_out(second);
    let left =
        bot.hear(|event| if let Event::GuildDelete(left) = event { Some(left.guild) } else { None }).await;
    assert_eq!((left.id, left.unavailable), (second, false));
    assert_eq!(refusal(&house.http.get_guild(second).await.unwrap_err()), (403, 50001));
    house.all_good();
}

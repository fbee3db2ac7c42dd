//! What the bot may where: channels, threads, forums, direct messages.

use serde_json::json;
use serenity::model::Permissions;
use serenity::model::channel::ReactionType;
use serenity::model::guild::{NsfwLevel, PremiumTier};
use serenity::model::id::ChannelId;

use crate::client::{House, body, refusal};
use crate::discord::{ChannelSpec, GuildSpec, Kind, Overwrite, Whose};

fn all_but(missing: Permissions) -> GuildSpec {
    let spec = GuildSpec::default();
    GuildSpec { bot_permissions: spec.bot_permissions - missing, ..spec }
}

#[tokio::test]
async fn each_missing_right_has_its_refusal() {
    let house = House::new().await;
    let mut count = 0;
    let mut check = async |missing: Permissions, expected: Result<(), (u16, isize)>| {
        count += 1;
        let channel = house.discord.text_channel(house.guild);
        house.discord.set_permissions(house.guild, all_but(missing).bot_permissions);
        let sent = house.send(channel, &body("text", &format!("n{count}"))).await;
        assert_eq!(sent.map(drop), expected, "{missing:?}");
    };
    check(Permissions::empty(), Ok(())).await;
    check(Permissions::VIEW_CHANNEL, Err((403, 50001))).await;
    check(Permissions::SEND_MESSAGES, Err((403, 50013))).await;
    check(Permissions::READ_MESSAGE_HISTORY, Ok(())).await;
    check(Permissions::ATTACH_FILES, Ok(())).await;
    assert_eq!(house.send(ChannelId::new(7), &body("text", "x")).await, Err((404, 10003)));
    house.all_good();
}

#[tokio::test]
async fn a_reply_needs_the_history_and_outlives_what_it_is_to() {
    let house = House::new().await;
    let said = house.discord.say(house.channel, house.ann, "hello");
    let reply = |nonce: &str, fail: bool| {
        let mut form = body("hello yourself", nonce);
        form["message_reference"] = json!({"message_id": said, "fail_if_not_exists": fail});
        form
    };
    let sent = house.send(house.channel, &reply("a", false)).await.unwrap();
    assert_eq!(house.discord.message(sent).reference, Some(said));
    house.discord.delete(said);
    let sent = house.send(house.channel, &reply("b", false)).await.unwrap();
    assert_eq!(house.discord.message(sent).reference, None);
    assert_eq!(house.send(house.channel, &reply("c", true)).await, Err((400, 50035)));
    house.discord.set_permissions(house.guild, all_but(Permissions::READ_MESSAGE_HISTORY).bot_permissions);
    assert_eq!(house.send(house.channel, &reply("d", false)).await, Err((400, 160_002)));
    house.all_good();
}

#[tokio::test]
async fn each_kind_of_channel_has_its_rules() {
    let house = House::with(all_but(Permissions::SEND_MESSAGES)).await;
    let add =
        |kind: Kind| house.discord.add_channel(house.guild, ChannelSpec { kind, ..ChannelSpec::default() });
    let thread =
        |archived: bool, locked: bool| add(Kind::PublicThread { parent: house.channel, archived, locked });
    let mut count = 0;
    let mut send = async |channel: ChannelId| {
        count += 1;
        house.send(channel, &body("text", &format!("n{count}"))).await.map(drop)
    };
    // In threads it is another right that counts.
    assert_eq!(send(house.channel).await, Err((403, 50013)));
    assert_eq!(send(thread(false, false)).await, Ok(()));
    assert_eq!(send(thread(false, true)).await, Err((400, 160_005)));
    assert_eq!(send(thread(true, true)).await, Err((400, 50083)));
    assert_eq!(send(add(Kind::Forum)).await, Err((400, 40058)));
    assert_eq!(send(add(Kind::Category)).await, Err((400, 50008)));
    let archived = thread(true, false);
    assert_eq!(send(archived).await, Ok(()));
    let thread = house.http.get_channel(archived).await.unwrap().guild().unwrap();
    assert!(!thread.thread_metadata.unwrap().archived);
    assert_eq!((thread.nsfw, thread.parent_id), (false, Some(house.channel)));

    let dm = house.http.create_private_channel(&json!({"recipient_id": house.ann})).await.unwrap();
    assert_eq!(dm.id, house.discord.dm(house.ann));
    assert_eq!(send(dm.id).await, Ok(()));
    house.discord.close_dms(house.ann);
    assert_eq!(send(dm.id).await, Err((403, 50007)));
    house.all_good();
}

#[tokio::test]
async fn a_channel_overrules_the_guild() {
    let house = House::with(all_but(Permissions::SEND_MESSAGES)).await;
    let overwrite = |whose, allow, deny| Overwrite { whose, allow, deny };
    let nothing = Permissions::empty();
    let overwrites = vec![
        overwrite(Whose::Everyone, nothing, Permissions::SEND_MESSAGES),
        overwrite(Whose::BotRole, Permissions::SEND_MESSAGES, nothing),
    ];
    let allowed =
        house.discord.add_channel(house.guild, ChannelSpec { overwrites, ..ChannelSpec::default() });
    house.send(allowed, &body("text", "a")).await.unwrap();
    let member = overwrite(Whose::Member(house.discord.bot()), nothing, Permissions::SEND_MESSAGES);
    house.discord.change_channel(allowed, |channel| channel.overwrites.push(member));
    assert_eq!(house.send(allowed, &body("text", "b")).await, Err((403, 50013)));
    house.all_good();
}

#[tokio::test]
async fn others_messages_and_new_reactions_need_their_rights() {
    let missing = Permissions::MANAGE_MESSAGES | Permissions::ADD_REACTIONS;
    let house = House::with(all_but(missing)).await;
    let said = house.discord.say(house.channel, house.ann, "hello");
    let http = &house.http;
    assert_eq!(refusal(&http.delete_message(house.channel, said, None).await.unwrap_err()), (403, 50013));
    let hide = http.edit_message(house.channel, said, &json!({"flags": 4}), Vec::new()).await;
    assert_eq!(refusal(&hide.unwrap_err()), (403, 50013));
    let eyes = ReactionType::Unicode("👀".to_owned());
    assert_eq!(refusal(&http.create_reaction(house.channel, said, &eyes).await.unwrap_err()), (403, 50013));
    assert_eq!(house.discord.look(|state| state.invalid_requests()), 3);
    house.all_good();
}

#[tokio::test]
async fn who_and_where_the_bot_is_can_be_asked() {
    let spec = GuildSpec { name: "films".to_owned(), premium_tier: 2, nsfw_level: 3, ..GuildSpec::default() };
    let house = House::with(spec).await;
    let (discord, http) = (&house.discord, &house.http);
    let guild = http.get_guild(house.guild).await.unwrap();
    assert_eq!(
        (guild.name.as_str(), guild.premium_tier, guild.nsfw_level),
        ("films", PremiumTier::Tier2, NsfwLevel::AgeRestricted)
    );
    assert_eq!(http.get_current_user().await.unwrap().id, discord.bot());
    assert_eq!(http.get_current_application_info().await.unwrap().id, discord.application());
    let guilds = http.get_guilds(None, None).await.unwrap();
    assert_eq!((guilds[0].id, guilds[0].permissions), (house.guild, GuildSpec::default().bot_permissions));
    let own = http.get_member(house.guild, discord.bot()).await.unwrap();
    assert_eq!(own.roles, [discord.bot_role(house.guild)]);
    let adult = discord.add_channel(house.guild, ChannelSpec { nsfw: true, ..ChannelSpec::default() });
    assert!(http.get_channel(adult).await.unwrap().guild().unwrap().nsfw);
    house.all_good();
}

//! Commands, menus and buttons.

use std::time::Duration;

use serde_json::{Value, json};
use serenity::model::Permissions;
use serenity::model::application::{Interaction, ResolvedTarget};
use serenity::model::event::Event;
use serenity::model::id::InteractionId;

use crate::client::{Bot, House, body, plain_intents, refusal};
use crate::discord::{GuildSpec, State, Use};

const NOBODY: &str = r#"{"parse":[]}"#;

fn commands() -> Value {
    let url = json!({"type": 3, "name": "url", "description": "A link", "required": true});
    json!([
        {"name": "fetch", "description": "Fetches media", "options": [url]},
        {"name": "Fetch media", "type": 3},
    ])
}

/// An answer with this text.
fn answer(text: &str) -> Value {
    let nobody: Value = serde_json::from_str(NOBODY).unwrap();
    json!({"type": 4, "data": {"content": text, "allowed_mentions": nobody}})
}

fn edit(text: &str) -> Value {
    let nobody: Value = serde_json::from_str(NOBODY).unwrap();
    json!({"content": text, "allowed_mentions": nobody})
}

fn interaction(event: Event) -> Option<Interaction> {
    if let Event::InteractionCreate(created) = event { Some(created.interaction) } else { None }
}

/// A house with the commands in it, and a use of one.
async fn house_with_use() -> (House, InteractionId, String) {
    let house = House::new().await;
    house.http.create_global_commands(&commands()).await.unwrap();
    let id = house.discord.command(&Use::new(house.channel, house.ann), "fetch", &json!([]));
    let token = token(&house, id);
    (house, id, token)
}

fn token(house: &House, id: InteractionId) -> String {
    house.discord.look(|state| state.interaction(id).token.clone())
}

#[tokio::test]
async fn commands_keep_their_ids_when_they_are_registered_again() {
    let house = House::new().await;
    let first = house.http.create_global_commands(&commands()).await.unwrap();
    let again = house.http.create_global_commands(&commands()).await.unwrap();
    let ids =
        |made: &[serenity::model::application::Command]| made.iter().map(|made| made.id).collect::<Vec<_>>();
    assert_eq!(ids(&first), ids(&again));
    assert_eq!(ids(&house.http.get_global_commands().await.unwrap()), ids(&first));
    assert_eq!(house.discord.look(State::registrations), 2);
    for wrong in [
        json!([{"name": "Fetch", "description": "capitals are for menus"}]),
        json!([{"name": "fetch"}]),
        json!([{"name": "Fetch media", "type": 3, "description": "menus have none"}]),
        json!([{"name": "fetch", "description": "x", "colour": "red"}]),
    ] {
        let refused = house.http.create_global_commands(&wrong).await.unwrap_err();
        assert_eq!(refusal(&refused), (400, 50035), "{wrong}");
    }
    house.all_good();
}

#[tokio::test]
async fn a_command_comes_with_its_limits_and_its_user() {
    let house = House::with(GuildSpec { premium_tier: 3, ..GuildSpec::default() }).await;
    house.http.create_global_commands(&commands()).await.unwrap();
    house.discord.make_moderator(house.guild, house.ann);
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    bot.hear_guild().await;
    let options = json!([{"name": "url", "type": 3, "value": "https://x.com/i/status/1"}]);
    house.discord.command(&Use::new(house.channel, house.ann), "fetch", &options);

    let Interaction::Command(used) = bot.hear(interaction).await else { panic!("another interaction") };
    assert_eq!((used.data.name.as_str(), used.user.id), ("fetch", house.ann));
    assert_eq!(used.data.options[0].value.as_str(), Some("https://x.com/i/status/1"));
    assert_eq!(used.attachment_size_limit, 104_857_600);
    assert_eq!(used.app_permissions, Some(GuildSpec::default().bot_permissions));
    assert!(used.member.unwrap().permissions.unwrap().contains(Permissions::MANAGE_MESSAGES));

    // In a menu the content of the message is there.
    let said = house.discord.say(house.channel, house.ann, "https://x.com/i/status/2");
    let how =
        Use { told_limit: Some(500_000_000), real_limit: Some(10), ..Use::new(house.channel, house.ann) };
    let id = house.discord.context_menu(&how, "Fetch media", said);
    let Interaction::Command(used) = bot.hear(interaction).await else { panic!("another interaction") };
    let Some(ResolvedTarget::Message(target)) = used.data.target() else { panic!("no message") };
    assert_eq!((target.id, target.content.as_str()), (said, "https://x.com/i/status/2"));
    assert_eq!(used.attachment_size_limit, 500_000_000);
    assert_eq!(house.discord.look(|state| state.interaction(id).upload_limit), 10);
    house.all_good();
}

#[tokio::test]
async fn an_interaction_is_answered_once_and_in_time() {
    let (house, id, token) = house_with_use().await;
    let respond = async |id: InteractionId, token: &str, body: &Value| {
        let sent = house.http.create_interaction_response(id, token, body, Vec::new()).await;
        sent.map_err(|error| refusal(&error))
    };
    assert_eq!(respond(id, &token, &json!({"type": 7})).await, Err((400, 50035)));
    assert_eq!(respond(id, &token, &answer("here")).await, Ok(()));
    assert_eq!(respond(id, &token, &answer("here")).await, Err((400, 40060)));
    assert_eq!(house.discord.look(|state| state.original(id).unwrap().content.clone()), "here");
    assert_eq!(house.discord.messages(house.channel).len(), 1);

    let late = house.discord.command(&Use::new(house.channel, house.ann), "fetch", &json!([]));
    house.discord.advance(Duration::from_millis(3001));
    let late_token = crate::interactions::token(&house, late);
    assert_eq!(respond(late, &late_token, &answer("too late")).await, Err((404, 10062)));
    house.all_good();
}

#[tokio::test]
async fn an_announced_answer_is_filled_until_its_token_ends() {
    let (house, id, token) = house_with_use().await;
    let http = &house.http;
    let early = http.edit_original_interaction_response(&token, &edit("early"), Vec::new()).await;
    assert_eq!(refusal(&early.unwrap_err()), (404, 10015));
    http.create_interaction_response(id, &token, &json!({"type": 5, "data": {"flags": 64}}), Vec::new())
        .await
        .unwrap();
    let original = house.discord.look(|state| state.original(id).unwrap().clone());
    assert!(original.is_loading() && original.is_ephemeral());

    http.edit_original_interaction_response(&token, &edit("done"), Vec::new()).await.unwrap();
    let original = house.discord.look(|state| state.original(id).unwrap().clone());
    assert_eq!(
        (original.content.as_str(), original.is_loading(), original.is_ephemeral()),
        ("done", false, true)
    );
    // Others do not see it in the channel.
    assert_eq!(refusal(&http.get_message(house.channel, original.id).await.unwrap_err()), (404, 10008));
    let more = http.create_followup_message(&token, &edit("and more"), Vec::new()).await.unwrap();
    assert_eq!(house.discord.message(more.id).content, "and more");
    let mut with_nonce = edit("twice?");
    with_nonce["nonce"] = json!("n");
    let refused = http.create_followup_message(&token, &with_nonce, Vec::new()).await;
    assert_eq!(refusal(&refused.unwrap_err()), (400, 50035));

    house.discord.advance(Duration::from_secs(15 * 60 + 1));
    let late = http.edit_original_interaction_response(&token, &edit("late"), Vec::new()).await;
    assert_eq!(refusal(&late.unwrap_err()), (401, 50027));
    house.all_good();
}

#[tokio::test]
async fn an_app_of_a_user_has_five_more_messages_and_no_channel() {
    let house = House::with(GuildSpec { bot_is_member: false, ..GuildSpec::default() }).await;
    house.http.create_global_commands(&commands()).await.unwrap();
    let how = Use { user_only: true, ..Use::new(house.channel, house.ann) };
    let id = house.discord.command(&how, "fetch", &json!([]));
    let token = token(&house, id);
    house.http.create_interaction_response(id, &token, &answer("here"), Vec::new()).await.unwrap();
    for _ in 0..5 {
        house.http.create_followup_message(&token, &edit("more"), Vec::new()).await.unwrap();
    }
    let sixth = house.http.create_followup_message(&token, &edit("more"), Vec::new()).await;
    assert_eq!(refusal(&sixth.unwrap_err()), (400, 40094));
    assert_eq!(house.send(house.channel, &body("text", "n")).await, Err((403, 50001)));
    house.all_good();
}

#[tokio::test]
async fn a_button_is_pressed_and_its_message_updated() {
    let house = House::new().await;
    let mut bot = Bot::start(&house.discord, plain_intents()).await;
    bot.hear_guild().await;
    let mut form = body("media", "n");
    let button = json!({"type": 2, "style": 4, "label": "Delete", "custom_id": "delete:1"});
    form["components"] = json!([{"type": 1, "components": [button]}]);
    let sent = house.send(house.channel, &form).await.unwrap();
    assert_eq!(house.discord.message(sent).buttons(), [("Delete".to_owned(), "delete:1".to_owned())]);

    house.discord.press(sent, house.ann, "delete:1");
    let Interaction::Component(pressed) = bot.hear(interaction).await else { panic!("another interaction") };
    assert_eq!((pressed.data.custom_id.as_str(), pressed.message.id), ("delete:1", sent));
    let update = json!({"type": 7, "data": {"content": "gone", "components": [],
        "allowed_mentions": {"parse": []}}});
    house.http.create_interaction_response(pressed.id, &pressed.token, &update, Vec::new()).await.unwrap();
    let updated = house.discord.message(sent);
    assert_eq!((updated.content.as_str(), updated.buttons().len()), ("gone", 0));
    house.all_good();
}

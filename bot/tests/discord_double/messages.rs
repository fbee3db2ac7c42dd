//! Messages: what is taken, what is refused, what is noted.

use std::time::Duration;

use serde_json::{Value, json};
use serenity::builder::{CreateAllowedMentions, CreateAttachment, CreateMessage, GetMessages};
use serenity::model::channel::{MessageFlags, ReactionType};
use serenity::model::id::MessageId;

use crate::client::{House, body, refusal};
use crate::discord::GuildSpec;

/// A message with files, as the real client makes it.
fn with_files(files: Vec<CreateAttachment>, nonce: &str) -> CreateMessage {
    let message = CreateMessage::new().content("films").allowed_mentions(CreateAllowedMentions::new());
    let nonce = serenity::model::channel::Nonce::String(nonce.to_owned());
    message.nonce(nonce).enforce_nonce(true).add_files(files)
}

#[tokio::test]
async fn a_nonce_makes_one_message_however_often_it_comes() {
    let house = House::new().await;
    let first = house.send(house.channel, &body("once", "job-1")).await.unwrap();
    assert_eq!(house.send(house.channel, &body("once", "job-1")).await, Ok(first));
    let other = house.send(house.channel, &body("once", "job-2")).await.unwrap();
    assert_ne!(first, other);
    assert_eq!(house.discord.messages(house.channel).len(), 2);

    // Deleted meanwhile: the sender learns that it had arrived.
    house.discord.delete(first);
    assert_eq!(house.send(house.channel, &body("once", "job-1")).await, Err((404, 10008)));
    // Discord forgets after a few minutes.
    house.discord.advance(Duration::from_secs(600));
    let third = house.send(house.channel, &body("once", "job-1")).await.unwrap();
    assert!(third > other);
    house.all_good();
    // The author counts, not the channel.
    let elsewhere = house.discord.text_channel(house.guild);
    assert_eq!(house.send(elsewhere, &body("once", "job-1")).await, Ok(third));
    assert_eq!(house.discord.violations().len(), 1);
}

#[tokio::test]
async fn files_come_whole_with_their_words() {
    let house = House::new().await;
    let film: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let files = vec![
        CreateAttachment::bytes(film.clone(), "film.mp4").description("a cat on a roof"),
        CreateAttachment::bytes(b"small".to_vec(), "SPOILER_a.gif"),
    ];
    let sent = house.channel.send_message(&house.http, with_files(files, "f1")).await.unwrap();
    assert_eq!(sent.attachments.iter().map(|file| file.size).collect::<Vec<_>>(), [800_000, 5]);

    let there = house.discord.message(sent.id);
    let told = |at: usize| {
        let file = &there.attachments[at];
        (file.name.clone(), file.description.clone(), file.spoiler, file.length)
    };
    assert_eq!(told(0), ("film.mp4".to_owned(), Some("a cat on a roof".to_owned()), false, 800_000));
    assert_eq!(told(1), ("SPOILER_a.gif".to_owned(), None, true, 5));
    assert_eq!(there.attachments[0].bytes.as_deref(), Some(&*film));
    assert_eq!(there.attachments[0].hash, blake3::hash(&film));
    house.all_good();
}

#[tokio::test]
async fn files_above_the_limit_are_refused_also_when_it_changes() {
    let house = House::with(GuildSpec { premium_tier: 2, ..GuildSpec::default() }).await;
    let send = async |bytes: usize, count: usize, nonce: &str| {
        let file = |at: usize| CreateAttachment::bytes(vec![7; bytes], format!("{at}.mp4"));
        let message = with_files((0..count).map(file).collect(), nonce);
        house.channel.send_message(&house.http, message).await.map(drop).map_err(|error| refusal(&error))
    };
    house.discord.set_upload_limit(house.guild, 1000);
    assert_eq!(send(1000, 1, "a").await, Ok(()));
    assert_eq!(send(1001, 1, "b").await, Err((413, 40005)));
    house.discord.set_upload_limit(house.guild, 999);
    assert_eq!(send(1000, 1, "c").await, Err((413, 40005)));
    // Per file, not in all, unless the request has a limit as well.
    assert_eq!(send(999, 10, "d").await, Ok(()));
    house.discord.set_request_limit(Some(9_000));
    assert_eq!(send(999, 10, "e").await, Err((413, 40005)));
    assert_eq!(send(1, 11, "f").await, Err((400, 50035)));
    assert_eq!(house.discord.messages(house.channel).len(), 2);
    house.all_good();
}

#[tokio::test]
async fn a_form_with_a_fault_in_it_is_refused() {
    let house = House::new().await;
    let check = async |field: &str, value: Value, expected: (u16, isize)| {
        let mut form = body("text", "n");
        form[field] = value;
        assert_eq!(house.send(house.channel, &form).await, Err(expected), "{field}");
    };
    check("contents", json!("a slip of the pen"), (400, 50035)).await;
    check("content", json!(7), (400, 50035)).await;
    check("content", json!("x".repeat(2001)), (400, 50035)).await;
    check("content", json!("  "), (400, 50006)).await;
    check("nonce", json!("x".repeat(26)), (400, 50035)).await;
    check("attachments", json!([{"id": 0, "filename": "not there"}]), (400, 50035)).await;
    check("attachments", json!([{"id": "0", "alt": "wrong name"}]), (400, 50035)).await;
    let button = |id: &str| json!({"type": 2, "style": 2, "label": "Delete", "custom_id": id});
    check("components", json!([{"type": 1, "components": [button("a"), button("a")]}]), (400, 50035)).await;
    check("components", json!([{"type": 1, "components": []}]), (400, 50035)).await;
    check("message_reference", json!({"message_id": "1"}), (400, 50035)).await;
    assert_eq!(house.discord.messages(house.channel).len(), 0);

    let longest = house.send(house.channel, &body(&"ö".repeat(2000), "n2")).await.unwrap();
    assert_eq!(house.discord.message(longest).content.chars().count(), 2000);
    house.all_good();
}

#[tokio::test]
async fn the_path_of_a_fault_is_named() {
    let house = House::new().await;
    let mut form = body("text", "n");
    form["allowed_mentions"]["prase"] = json!([]);
    let refused = house.http.send_message(house.channel, Vec::new(), &form).await.unwrap_err();
    let serenity::Error::Http(serenity::http::HttpError::UnsuccessfulRequest(refused)) = refused else {
        panic!("not refused, but {refused:?}");
    };
    assert_eq!(refused.error.errors[0].path, "allowed_mentions.prase");
    assert_eq!(refused.error.message, "Invalid Form Body");
}

#[tokio::test]
async fn what_may_mention_or_come_twice_is_noted() {
    let house = House::new().await;
    let noted = async |change: &dyn Fn(&mut Value)| {
        let before = house.discord.violations().len();
        let mut form = body("@everyone", &format!("n{before}"));
        change(&mut form);
        house.send(house.channel, &form).await.unwrap();
        house.discord.violations().len() - before
    };
    assert_eq!(noted(&|_| {}).await, 0);
    assert_eq!(noted(&|form| drop(form.as_object_mut().unwrap().remove("allowed_mentions"))).await, 1);
    assert_eq!(noted(&|form| form["allowed_mentions"] = json!({"parse": ["users"]})).await, 1);
    assert_eq!(noted(&|form| form["allowed_mentions"] = json!({"parse": [], "users": ["1"]})).await, 1);
    assert_eq!(noted(&|form| form["allowed_mentions"]["replied_user"] = json!(true)).await, 1);
    assert_eq!(noted(&|form| drop(form.as_object_mut().unwrap().remove("nonce"))).await, 1);
    assert_eq!(noted(&|form| form["enforce_nonce"] = json!(false)).await, 1);
}

#[tokio::test]
async fn messages_are_found_after_another_newest_first() {
    let house = House::new().await;
    let mut sent = Vec::new();
    for at in 0..5 {
        sent.push(
            house.send(house.channel, &body(&format!("number {at}"), &format!("n{at}"))).await.unwrap(),
        );
    }
    assert!(sent.is_sorted());
    let get = async |how: GetMessages| -> Vec<MessageId> {
        let found = house.channel.messages(&house.http, how).await.unwrap();
        found.into_iter().map(|message| message.id).collect()
    };
    assert_eq!(get(GetMessages::new().after(sent[1]).limit(2)).await, [sent[3], sent[2]]);
    assert_eq!(get(GetMessages::new().before(sent[3]).limit(2)).await, [sent[2], sent[1]]);
    assert_eq!(get(GetMessages::new().limit(1)).await, [sent[4]]);
    let one = house.http.get_message(house.channel, sent[2]).await.unwrap();
    assert_eq!(one.content, "number 2");
    house.discord.delete(sent[2]);
    assert_eq!(refusal(&house.http.get_message(house.channel, sent[2]).await.unwrap_err()), (404, 10008));
    house.all_good();
}

#[tokio::test]
async fn own_messages_are_edited_and_of_others_only_the_previews_are_hidden() {
    let house = House::new().await;
    let (discord, http) = (&house.discord, &house.http);
    let own = house.send(house.channel, &body("first", "n")).await.unwrap();
    let edit = json!({"content": "second", "allowed_mentions": {"parse": []}});
    http.edit_message(house.channel, own, &edit, Vec::new()).await.unwrap();
    let edited = discord.message(own);
    assert_eq!((edited.content.as_str(), edited.edits.len()), ("second", 1));

    let theirs = discord.say(house.channel, house.ann, "look https://x.com/i/status/1");
    discord.embed_arrives(theirs);
    let refused = http.edit_message(house.channel, theirs, &edit, Vec::new()).await.unwrap_err();
    assert_eq!(refusal(&refused), (403, 50005));
    let hide = json!({"flags": MessageFlags::SUPPRESS_EMBEDS.bits()});
    http.edit_message(house.channel, theirs, &hide, Vec::new()).await.unwrap();
    let hidden = discord.message(theirs);
    assert!(hidden.is_suppressed() && hidden.embeds.is_empty());
    // A preview that was on its way comes nevertheless.
    discord.embed_arrives(theirs);
    assert_eq!(discord.message(theirs).embeds.len(), 1);

    http.delete_message(house.channel, theirs, None).await.unwrap();
    assert_eq!(refusal(&http.delete_message(house.channel, theirs, None).await.unwrap_err()), (404, 10008));
    house.all_good();
}

#[tokio::test]
async fn reactions_and_typing_are_seen() {
    let house = House::new().await;
    let said = house.discord.say(house.channel, house.ann, "hello");
    let eyes = ReactionType::Unicode("👀".to_owned());
    house.http.create_reaction(house.channel, said, &eyes).await.unwrap();
    assert_eq!(house.discord.message(said).reactions, [("👀".to_owned(), vec![house.discord.bot()])]);
    house.http.delete_reaction_me(house.channel, said, &eyes).await.unwrap();
    assert_eq!(house.discord.message(said).reactions, []);
    house.http.broadcast_typing(house.channel).await.unwrap();
    assert_eq!(house.discord.look(|state| state.typing(house.channel)), 1);
    house.all_good();
}

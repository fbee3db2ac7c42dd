//! What is offered as commands, and what somebody who gives one wants.

use serde_json::{Value, json};
use serenity::model::application::{CommandData, ResolvedOption, ResolvedTarget, ResolvedValue};

use crate::domain::{
    Edits, Form, FoundLinks, Link, MediaChoice, MessageId, Options, Trim, find_links, parse_time,
};
use crate::frontend::discord::ids::from_message;

/// What a command wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The media of these posts.
    Fetch {
        links: Vec<Link>,
        /// How many more links there are than one message may have.
        dropped: usize,
        options: Options,
        /// The message that the links stand in.
        message: Option<MessageId>,
    },
    /// To know what the bot may do here.
    Check,
    /// To know how much there is to do.
    Status,
}

/// All commands, as they are registered. In servers that the bot was added to, and in direct messages with it.
pub(super) fn definitions() -> Value {
    let (text, whole, choice) = (3, 4, 5);
    let part = |kind: u8, name: &str, about: &str| json!({"type": kind, "name": name, "description": about});
    let mut url = part(text, "url", "A link to a post on X");
    url["required"] = json!(true);
    let mut which = part(whole, "media", "Only this one of its photos and videos, counted from 1");
    (which["min_value"], which["max_value"]) = (json!(1), json!(255));
    let mut form = part(text, "as", "As what kind of file");
    form["choices"] = json!([
        {"name": "as it is", "value": Form::AsIs.code()},
        {"name": "sound alone", "value": Form::AudioOnly.code()},
        {"name": "GIF", "value": Form::Gif.code()},
    ]);
    let fetch = [
        url,
        which,
        part(text, "from", "Where the part begins that you want, like 1:30"),
        part(text, "to", "Where it ends"),
        form,
        part(choice, "spoiler", "Hide it behind a spoiler"),
        part(choice, "quoted", "The media of the post that it quotes too"),
    ];
    let under = [
        part(1, "check", "What I may do in this channel, and what I lack"),
        part(1, "status", "How much I have to do"),
    ];
    let command = |name: &str, about: &str, options: &[Value]| {
        json!({
            "type": 1, "name": name, "description": about, "options": options,
            "integration_types": [0], "contexts": [0, 1],
        })
    };
    json!([
        command("fetch", "Post the media of a post on X in this channel", &fetch),
        command("azalea", "About me", &under),
        {"type": 3, "name": "Fetch media", "integration_types": [0], "contexts": [0, 1]},
    ])
}

impl Command {
    /// What is wanted.
    ///
    /// # Errors
    /// What to tell a person who asked for something that is none.
    pub(super) fn of(data: &CommandData) -> Result<Self, String> {
        let options = data.options();
        match (data.name.as_str(), data.target()) {
            (_, Some(ResolvedTarget::Message(message))) => {
                let FoundLinks { links, dropped } = find_links(&message.content);
                if links.is_empty() {
                    return Err("There is no link to a post in that message.".to_owned());
                }
                let message = Some(from_message(message.id));
                Ok(Self::Fetch { links, dropped, options: Options::default(), message })
            }
            ("fetch", _) => fetch(&options),
            ("azalea", _) => match options.first().map(|option| option.name) {
                Some("check") => Ok(Self::Check),
                Some("status") => Ok(Self::Status),
                _ => Err(UNKNOWN.to_owned()),
            },
            _ => Err(UNKNOWN.to_owned()),
        }
    }
}

const UNKNOWN: &str = "I do not know that command; it may be new. Try again in some minutes.";

fn fetch(options: &[ResolvedOption<'_>]) -> Result<Command, String> {
    let value = |name: &str| options.iter().find(|option| option.name == name).map(|option| &option.value);
    let text = |name: &str| match value(name) {
        Some(ResolvedValue::String(text)) => Some(*text),
        _ => None,
    };
    let time = |name: &str| {
        let wrong = || format!("`{name}` is no time; write it like 90, 1:30 or 1m30s.");
        text(name).map(|text| parse_time(text).ok_or_else(wrong)).transpose()
    };
    let links = find_links(text("url").unwrap_or_default()).links;
    let Some(link) = links.first().copied() else {
        return Err(
            "That is not a link to a post; it should look like https://x.com/NAME/status/NUMBER.".to_owned()
        );
    };
    let trim =
        Trim::new(time("from")?, time("to")?).map_err(|_| "`to` must be later than `from`.".to_owned())?;
    let form = match text("as") {
        Some(code) if code == Form::AudioOnly.code() => Form::AudioOnly,
        Some(code) if code == Form::Gif.code() => Form::Gif,
        _ => Form::AsIs,
    };
    let choice = match value("media") {
        Some(ResolvedValue::Integer(place)) => MediaChoice::photo(&place.to_string()),
        _ => None,
    };
    let is_on = |name: &str| matches!(value(name), Some(ResolvedValue::Boolean(true)));
    let edits = Edits { form, trim };
    let options = Options { choice, edits, spoiler: is_on("spoiler"), quoted: is_on("quoted") };
    Ok(Command::Fetch { links: vec![link], dropped: 0, options, message: None })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn data(json: Value) -> CommandData {
        serde_json::from_value(json).unwrap()
    }

    fn fetch_with(options: &[(u8, &str, Value)]) -> Result<Command, String> {
        let options: Vec<Value> = options
            .iter()
            .map(|(kind, name, value)| json!({"type": kind, "name": name, "value": value}))
            .collect();
        Command::of(&data(json!({"id": "1", "name": "fetch", "type": 1, "options": options})))
    }

    #[test]
    fn every_option_of_fetch_is_heard() {
        let wanted = fetch_with(&[
            (3, "url", json!("https://x.com/a/status/20")),
            (4, "media", json!(2)),
            (3, "from", json!("1:30")),
            (3, "to", json!("2m")),
            (3, "as", json!("audio")),
            (5, "spoiler", json!(true)),
            (5, "quoted", json!(true)),
        ]);
        let trim = Trim::new(Some(Duration::from_secs(90)), Some(Duration::from_secs(120))).unwrap();
        let options = Options {
            choice: MediaChoice::photo("2"),
            edits: Edits { form: Form::AudioOnly, trim },
            spoiler: true,
            quoted: true,
        };
        let links = vec!["https://x.com/a/status/20".parse().unwrap()];
        assert_eq!(wanted, Ok(Command::Fetch { links, dropped: 0, options, message: None }));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let link = (3, "url", json!("https://x.com/a/status/20"));
        for (options, word) in [
            (vec![(3, "url", json!("https://example.com"))], "not a link"),
            (vec![link.clone(), (3, "from", json!("soon"))], "`from` is no time"),
            (vec![link, (3, "from", json!("9")), (3, "to", json!("3"))], "later"),
        ] {
            let error = fetch_with(&options).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn definitions_keep_discords_bounds() {
        let all = definitions();
        let text = |value: &Value| value.as_str().map(str::len).unwrap_or_default();
        for command in all.as_array().unwrap() {
            assert!((1..=32).contains(&text(&command["name"])));
            for option in command["options"].as_array().into_iter().flatten() {
                assert!((1..=100).contains(&text(&option["description"])), "{option}");
            }
        }
    }
}

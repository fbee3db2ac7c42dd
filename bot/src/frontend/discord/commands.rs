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
    /// To know what was done for a post.
    Why(Link),
    /// To see or change what holds in the server.
    Settings(Wishes),
    /// To have the requests of the one who gives it forgotten.
    Forget,
}

/// What is to change in a server; `None` and `false` leave things as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) auto: Option<bool>,
    pub(super) caption: Option<bool>,
    pub(super) quoted: Option<bool>,
    pub(super) strict: Option<bool>,
    /// Whether the bot posts in this channel; the first that is named makes all others ones where it does not.
    pub(super) here: Option<bool>,
    /// It posts everywhere again.
    pub(super) everywhere: bool,
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
    let mut settings = part(1, "settings", "What holds in this server; moderators can change it");
    settings["options"] = json!([
        part(choice, "auto", "Answer links without a mention"),
        part(choice, "caption", "Put author and text above the media"),
        part(choice, "quoted", "Post the media of quoted posts too"),
        part(choice, "strict", "Sensitive media in age-restricted channels only"),
        part(choice, "here", "Post in this channel; I post only in channels that are named so"),
        part(choice, "everywhere", "Post in all channels again"),
    ]);
    let mut link = part(text, "url", "The link to the post");
    link["required"] = json!(true);
    let mut why = part(1, "why", "What I did lately for a post, and how long it took");
    why["options"] = json!([link]);
    let under = [
        part(1, "check", "What I may do in this channel, and what I lack"),
        part(1, "status", "How much I have to do"),
        settings,
        why,
        part(1, "forget", "Forget what you asked me for and is not done"),
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
                Some("why") => why(options.first()).map(Self::Why),
                Some("forget") => Ok(Self::Forget),
                Some("settings") => Ok(Self::Settings(wishes(options.first()))),
                _ => Err(UNKNOWN.to_owned()),
            },
            _ => Err(UNKNOWN.to_owned()),
        }
    }
}

const NO_LINK: &str = "That is not a link to a post; it should look like https://x.com/NAME/status/NUMBER.";
const UNKNOWN: &str = "I do not know that command; it may be new. Try again in some minutes.";

fn why(asked: Option<&ResolvedOption<'_>>) -> Result<Link, String> {
    let Some(ResolvedValue::SubCommand(options)) = asked.map(|asked| &asked.value) else {
        return Err(NO_LINK.to_owned());
    };
    let text = options.iter().find_map(|option| match option.value {
        ResolvedValue::String(text) => Some(text),
        _ => None,
    });
    find_links(text.unwrap_or_default()).links.first().copied().ok_or_else(|| NO_LINK.to_owned())
}

fn wishes(settings: Option<&ResolvedOption<'_>>) -> Wishes {
    let Some(ResolvedValue::SubCommand(options)) = settings.map(|settings| &settings.value) else {
        return Wishes::default();
    };
    let said = |name: &str| {
        options.iter().find(|option| option.name == name).and_then(|option| match option.value {
            ResolvedValue::Boolean(yes) => Some(yes),
            _ => None,
        })
    };
    Wishes {
        auto: said("auto"),
        caption: said("caption"),
        quoted: said("quoted"),
        strict: said("strict"),
        here: said("here"),
        everywhere: said("everywhere") == Some(true),
    }
}

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
        return Err(NO_LINK.to_owned());
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
    let (spoiler, quoted) = (is_on("spoiler"), is_on("quoted"));
    let options = Options { choice, edits, spoiler, quoted, ..Options::default() };
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
            ..Options::default()
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

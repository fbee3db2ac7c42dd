//! What the bodies of requests may hold. A field that is not listed is an error, since it is a slip of the pen.

use std::collections::HashSet;

use serde_json::Value;

use super::answer::Answer;

/// A field and what it may be. Each may be null as well.
type Field = (&'static str, Kind);

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A text of at most so many characters.
    Text(usize),
    Bool,
    Whole,
    /// A snowflake, as text or number.
    Id,
    /// A text of at most 25 characters, or a number.
    Nonce,
    /// At most so many of a kind.
    List(&'static Self, usize),
    Object(&'static [Field]),
    /// Not looked into.
    Any,
}

const MENTIONS: &[Field] = &[
    ("parse", Kind::List(&Kind::Text(16), 3)),
    ("users", Kind::List(&Kind::Id, 100)),
    ("roles", Kind::List(&Kind::Id, 100)),
    ("replied_user", Kind::Bool),
];

const REFERENCE: &[Field] = &[
    ("type", Kind::Whole),
    ("message_id", Kind::Id),
    ("channel_id", Kind::Id),
    ("guild_id", Kind::Id),
    ("fail_if_not_exists", Kind::Bool),
];

const ATTACHMENT: &[Field] = &[
    ("id", Kind::Id),
    ("filename", Kind::Text(1024)),
    ("title", Kind::Text(1024)),
    ("description", Kind::Text(1024)),
    ("is_spoiler", Kind::Bool),
    ("duration_secs", Kind::Any),
    ("waveform", Kind::Text(400)),
];

const WIDGET: &[Field] = &[
    ("type", Kind::Whole),
    ("id", Kind::Whole),
    ("style", Kind::Whole),
    ("label", Kind::Text(80)),
    ("emoji", Kind::Any),
    ("custom_id", Kind::Text(100)),
    ("url", Kind::Text(512)),
    ("disabled", Kind::Bool),
    ("options", Kind::List(&Kind::Any, 25)),
    ("channel_types", Kind::List(&Kind::Whole, 25)),
    ("placeholder", Kind::Text(150)),
    ("min_values", Kind::Whole),
    ("max_values", Kind::Whole),
    ("default_values", Kind::Any),
    ("min_length", Kind::Whole),
    ("max_length", Kind::Whole),
    ("required", Kind::Bool),
    ("value", Kind::Text(4000)),
];

const ROW: &[Field] =
    &[("type", Kind::Whole), ("id", Kind::Whole), ("components", Kind::List(&Kind::Object(WIDGET), 5))];

const CONTENT: Field = ("content", Kind::Text(2000));
const EMBEDS: Field = ("embeds", Kind::List(&Kind::Any, 10));
const ALLOWED: Field = ("allowed_mentions", Kind::Object(MENTIONS));
const ROWS: Field = ("components", Kind::List(&Kind::Object(ROW), 5));
const FLAGS: Field = ("flags", Kind::Whole);
const ATTACHMENTS: Field = ("attachments", Kind::List(&Kind::Object(ATTACHMENT), 10));
const TTS: Field = ("tts", Kind::Bool);

/// A new message.
pub(super) const CREATE: &[Field] = &[
    CONTENT,
    EMBEDS,
    ALLOWED,
    ROWS,
    FLAGS,
    ATTACHMENTS,
    TTS,
    ("nonce", Kind::Nonce),
    ("enforce_nonce", Kind::Bool),
    ("message_reference", Kind::Object(REFERENCE)),
    ("sticker_ids", Kind::List(&Kind::Id, 3)),
    ("poll", Kind::Any),
];

/// A change of a message.
pub(super) const EDIT: &[Field] = &[CONTENT, EMBEDS, ALLOWED, ROWS, FLAGS, ATTACHMENTS];

/// A message after the first answer to an interaction. It has no nonce.
pub(super) const FOLLOW_UP: &[Field] =
    &[CONTENT, EMBEDS, ALLOWED, ROWS, FLAGS, ATTACHMENTS, TTS, ("poll", Kind::Any)];

const RESPONSE: &[Field] = &[
    CONTENT,
    EMBEDS,
    ALLOWED,
    ROWS,
    FLAGS,
    ATTACHMENTS,
    TTS,
    ("poll", Kind::Any),
    ("choices", Kind::List(&Kind::Any, 25)),
    ("custom_id", Kind::Text(100)),
    ("title", Kind::Text(45)),
];

/// The first answer to an interaction.
pub(super) const CALLBACK: &[Field] = &[("type", Kind::Whole), ("data", Kind::Object(RESPONSE))];

/// A command.
pub(super) const COMMAND: &[Field] = &[
    ("id", Kind::Id),
    ("type", Kind::Whole),
    ("name", Kind::Text(32)),
    ("name_localizations", Kind::Any),
    ("description", Kind::Text(100)),
    ("description_localizations", Kind::Any),
    ("options", Kind::List(&Kind::Any, 25)),
    ("default_member_permissions", Kind::Text(20)),
    ("dm_permission", Kind::Bool),
    ("integration_types", Kind::List(&Kind::Whole, 2)),
    ("contexts", Kind::List(&Kind::Whole, 3)),
    ("nsfw", Kind::Bool),
    ("handler", Kind::Whole),
];

/// An option of a command.
pub(super) const OPTION: &[Field] = &[
    ("type", Kind::Whole),
    ("name", Kind::Text(32)),
    ("name_localizations", Kind::Any),
    ("description", Kind::Text(100)),
    ("description_localizations", Kind::Any),
    ("required", Kind::Bool),
    ("choices", Kind::List(&Kind::Any, 25)),
    ("options", Kind::List(&Kind::Any, 25)),
    ("channel_types", Kind::List(&Kind::Whole, 25)),
    ("min_value", Kind::Any),
    ("max_value", Kind::Any),
    ("min_length", Kind::Whole),
    ("max_length", Kind::Whole),
    ("autocomplete", Kind::Bool),
];

/// A person to write to.
pub(super) const RECIPIENT: &[Field] = &[("recipient_id", Kind::Id)];

/// Messages to delete together.
pub(super) const BULK: &[Field] = &[("messages", Kind::List(&Kind::Id, 100))];

/// Whether a body holds only these fields, each as it should be.
///
/// # Errors
///
/// 50035 with the path of the first field that is wrong.
pub(super) fn check(body: &Value, fields: &'static [Field]) -> Result<(), Answer> {
    check_kind("", body, Kind::Object(fields))
}

fn check_kind(path: &str, value: &Value, kind: Kind) -> Result<(), Answer> {
    let wrong = |code: &str, message: &str| Err(Answer::form(path, code, message));
    match (kind, value) {
        (Kind::Any, _)
        | (Kind::Bool, Value::Bool(_))
        | (Kind::Nonce, Value::Number(_))
        // Only what has a place may be null.
        | (_, Value::Null)
            if !(path.is_empty() && value.is_null()) => {}
        (Kind::Whole, Value::Number(number)) if number.is_i64() || number.is_u64() => {}
        (Kind::Id, Value::Number(number)) if number.is_u64() => {}
        (Kind::Id, Value::String(text)) if text.parse::<u64>().is_ok() => {}
        (Kind::Nonce, Value::String(text)) if text.chars().count() <= 25 => {}
        (Kind::Nonce, Value::String(_)) => {
            return wrong("BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
        }
        (Kind::Text(most), Value::String(text)) => {
            if text.chars().count() > most {
                return wrong("BASE_TYPE_MAX_LENGTH", &format!("Must be {most} or fewer in length."));
            }
        }
        (Kind::List(kind, most), Value::Array(items)) => {
            if items.len() > most {
                return wrong("BASE_TYPE_MAX_LENGTH", &format!("Must be {most} or fewer in length."));
            }
            for (at, item) in items.iter().enumerate() {
                check_kind(&below(path, &at.to_string()), item, *kind)?;
            }
        }
        (Kind::Object(fields), Value::Object(map)) => {
            for (name, value) in map {
                let path = below(path, name);
                let Some((_, kind)) = fields.iter().find(|(field, _)| field == name) else {
                    return Err(Answer::form(&path, "UNKNOWN_FIELD", "There is no such field."));
                };
                check_kind(&path, value, *kind)?;
            }
        }
        _ => return wrong("BASE_TYPE_BAD_TYPE", &format!("Could not interpret {value} as {kind:?}.")),
    }
    Ok(())
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Whether rows of buttons make sense: something to press in each, and no two with the same id.
///
/// # Errors
///
/// 50035.
pub(super) fn check_rows(rows: &Value) -> Result<(), Answer> {
    let none = Vec::new();
    let mut seen = HashSet::new();
    for (at, row) in rows.as_array().unwrap_or(&none).iter().enumerate() {
        let path = format!("components.{at}");
        let wrong = |code: &str, message: &str| Err(Answer::form(&path, code, message));
        let widgets = row["components"].as_array().unwrap_or(&none);
        if row["type"] != 1 || widgets.is_empty() {
            return wrong("UNION_TYPE_CHOICES", "A row has the type 1, and one to five components.");
        }
        for widget in widgets {
            let (id, url) = (widget["custom_id"].as_str(), widget["url"].as_str());
            let whole = match (widget["type"].as_u64(), widget["style"].as_u64()) {
                (Some(2), Some(1..=4)) => id.is_some_and(|id| !id.is_empty()) && url.is_none(),
                (Some(2), Some(5)) => id.is_none() && url.is_some_and(|url| url.starts_with("http")),
                (Some(3..=8), _) => id.is_some(),
                _ => false,
            };
            let named = widget["type"] != 2 || widget["label"].is_string() || widget["emoji"].is_object();
            if !whole || !named {
                return wrong("COMPONENT_INVALID", "This component lacks something, or has too much.");
            }
            if id.is_some_and(|id| !seen.insert(id)) {
                return wrong("COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated");
            }
        }
    }
    Ok(())
}

//! Buttons, and what is written in them: everything that is needed when one is pressed, so that they outlive restarts.

use serde_json::{Value, json};
use serenity::model::application::{ActionRowComponent, ButtonKind};
use serenity::model::channel::Message;

use crate::domain::{
    Disposition, Failure, Link, MAX_LINKS_PER_MESSAGE, MediaChoice, Options, PostId, Request, RequestId,
    UserId,
};

/// What a button is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Remove the answer.
    Delete,
    /// Stop the work.
    Cancel,
    /// Ask once more for what could not be had.
    Again,
}

impl Deed {
    const ALL: [Self; 3] = [Self::Delete, Self::Cancel, Self::Again];

    /// Stands in messages.
    const fn code(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Cancel => "cancel",
            Self::Again => "again",
        }
    }
}

/// A button as it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Button {
    pub(super) deed: Deed,
    /// Who asked for what it stands below.
    pub(super) requester: UserId,
    pub(super) request: RequestId,
    /// What is asked for once more.
    pub(super) link: Option<Link>,
}

impl Button {
    /// What its id says; `None` when it is none of ours.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split(':');
        let (ours, deed, requester, request) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let deed = Deed::ALL.into_iter().find(|known| known.code() == deed)?;
        let link = match deed {
            Deed::Again => Some(link_of(parts.next()?)?),
            Deed::Delete | Deed::Cancel => None,
        };
        if ours != "azalea" || parts.next().is_some() {
            return None;
        }
        Some(Self { deed, requester: requester.parse().ok()?, request: request.parse().ok()?, link })
    }

    fn id(self) -> String {
        let link = self.link.map_or_else(String::new, |link| format!(":{}", text_of(link)));
        format!("azalea:{}:{}:{}{link}", self.deed.code(), self.requester, self.request)
    }
}

/// The buttons of ours below a message.
pub(super) fn below(message: &Message) -> impl Iterator<Item = Button> + '_ {
    let parts = message.components.iter().flat_map(|row| &row.components);
    parts.filter_map(|part| match part {
        ActionRowComponent::Button(button) => match &button.data {
            ButtonKind::NonLink { custom_id, .. } => Button::parse(custom_id),
            _ => None,
        },
        _ => None,
    })
}

/// A row with the button that removes an answer.
pub(super) fn delete(request: &Request) -> Vec<Value> {
    row(request, Deed::Delete, "Delete")
}

/// A row with the button that stops the work.
pub(super) fn cancel(request: &Request) -> Vec<Value> {
    row(request, Deed::Cancel, "Cancel")
}

/// A row with the button that asks once more, where that may help and nothing but a link was asked for.
pub(super) fn again(request: &Request, failure: &Failure) -> Vec<Value> {
    let may_help = matches!(failure.disposition(), Disposition::Retry(_));
    let plain = Options { choice: None, spoiler: false, ..request.options } == Options::default();
    if !may_help || !plain || next(request.id).is_none() {
        return Vec::new();
    }
    let link = Link { choice: request.choice(), spoiler: request.spoiler(), ..request.link };
    let (requester, request) = (request.requester, request.id);
    rows(Button { deed: Deed::Again, requester, request, link: Some(link) }, "Try again")
}

/// The request that asks once more for what another one asked for: of the same message, with a number of its own.
/// `None` when that was done often enough.
pub(super) fn next(request: RequestId) -> Option<RequestId> {
    let next = usize::from(request.ordinal()).checked_add(MAX_LINKS_PER_MESSAGE)?;
    let ordinal = u8::try_from(next).ok().filter(|_| next < MAX_LINKS_PER_MESSAGE * TURNS)?;
    Some(RequestId::new(request.front_end(), request.origin(), ordinal))
}

/// How often one link of a message is asked for: when it is written, and by its button.
pub(super) const TURNS: usize = 3;

/// A link in few characters: the post's number, the medium, a spoiler.
fn text_of(link: Link) -> String {
    let medium = match link.choice {
        None => String::new(),
        Some(MediaChoice::Photo(place)) => format!("p{place}"),
        Some(MediaChoice::Video(place)) => format!("v{place}"),
    };
    format!("{}{medium}{}", link.post.number(), if link.spoiler { "s" } else { "" })
}

fn link_of(text: &str) -> Option<Link> {
    let (text, spoiler) = text.strip_suffix('s').map_or((text, false), |text| (text, true));
    let (number, choice) = match text.split_once(['p', 'v']) {
        None => (text, None),
        Some((number, place)) if text.contains('p') => (number, Some(MediaChoice::photo(place)?)),
        Some((number, place)) => (number, Some(MediaChoice::video(place)?)),
    };
    Some(Link { post: PostId::x(number).ok()?, choice, spoiler })
}

/// Action row and button have the types 1 and 2; style 2 is the quiet one.
fn row(request: &Request, deed: Deed, label: &str) -> Vec<Value> {
    rows(Button { deed, requester: request.requester, request: request.id, link: None }, label)
}

fn rows(button: Button, label: &str) -> Vec<Value> {
    let button = json!({"type": 2, "style": 2, "label": label, "custom_id": button.id()});
    vec![json!({"type": 1, "components": [button]})]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_button_knows_what_it_is_for() {
        let id = "azalea:delete:7:discord-18446744073709551615-9";
        let button = Button::parse(id).unwrap();
        assert_eq!((button.deed, button.requester.get()), (Deed::Delete, 7));
        assert_eq!(button.id(), id);
        // The most that Discord takes.
        assert!("azalea:delete:18446744073709551615:discord-18446744073709551615-255".len() <= 100);
        let most =
            "azalea:again:18446744073709551615:discord-18446744073709551615-255:18446744073709551615p255s";
        assert!(most.len() <= 100);
    }

    #[test]
    fn a_button_knows_what_is_asked_for_again() {
        for link in ["https://x.com/i/status/20", "https://x.com/i/status/20/video/2"] {
            for spoiler in [false, true] {
                let link = Link { spoiler, ..link.parse().unwrap() };
                let button = Button {
                    deed: Deed::Again,
                    requester: "7".parse().unwrap(),
                    request: "discord-9-1".parse().unwrap(),
                    link: Some(link),
                };
                assert_eq!(Button::parse(&button.id()), Some(button));
            }
        }
        for id in
            ["azalea:again:7:discord-9-1", "azalea:again:7:discord-9-1:x", "azalea:delete:7:discord-9-1:20"]
        {
            assert_eq!(Button::parse(id), None, "{id}");
        }
    }

    #[test]
    fn a_link_is_asked_for_again_a_few_times_each_under_its_own_name() {
        let first: RequestId = "discord-9-3".parse().unwrap();
        let second = next(first).unwrap();
        let third = next(second).unwrap();
        assert_eq!(
            (second.to_string(), third.to_string()),
            ("discord-9-13".to_owned(), "discord-9-23".to_owned())
        );
        assert_eq!(next(third), None);
    }

    proptest! {
        #[test]
        fn other_ids_are_none_of_ours(id: String) {
            prop_assert_eq!(Button::parse(&id), None);
        }
    }
}

//! Buttons, and what is written in them: everything that is needed when one is pressed, so that they outlive restarts.

use serde_json::{Value, json};
use serenity::model::application::{ActionRowComponent, ButtonKind};
use serenity::model::channel::Message;

use crate::domain::{Request, RequestId, UserId};

/// What a button is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Remove the answer.
    Delete,
    /// Stop the work.
    Cancel,
}

impl Deed {
    const ALL: [Self; 2] = [Self::Delete, Self::Cancel];

    /// Stands in messages.
    const fn code(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Cancel => "cancel",
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
}

impl Button {
    /// What its id says; `None` when it is none of ours.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split(':');
        let (ours, deed, requester, request) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let deed = Deed::ALL.into_iter().find(|known| known.code() == deed)?;
        if ours != "azalea" || parts.next().is_some() {
            return None;
        }
        Some(Self { deed, requester: requester.parse().ok()?, request: request.parse().ok()? })
    }

    fn id(self) -> String {
        format!("azalea:{}:{}:{}", self.deed.code(), self.requester, self.request)
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

/// Action row and button have the types 1 and 2; style 2 is the quiet one.
fn row(request: &Request, deed: Deed, label: &str) -> Vec<Value> {
    let button = Button { deed, requester: request.requester, request: request.id };
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
    }

    proptest! {
        #[test]
        fn other_ids_are_none_of_ours(id: String) {
            prop_assert_eq!(Button::parse(&id), None);
        }
    }
}

//! Commands that people give: answered to them alone at once, while the media go to the channel.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use serenity::model::Permissions;
use serenity::model::application::CommandInteraction;

use crate::domain::{Destination, FrontEnd, Link, Options, Request, RequestId, UserId};
use crate::frontend::discord::caption;
use crate::frontend::discord::commands::{Command, Wishes, definitions};
use crate::frontend::discord::ids::{from_channel, from_guild, from_user};
use crate::frontend::discord::incoming::TURNS;
use crate::frontend::discord::knowledge::{self, Rights};
use crate::frontend::discord::removal::EPHEMERAL;
use crate::frontend::discord::rest::{Interaction, Refused};
use crate::frontend::discord::session::{Desk, Words};
use crate::frontend::discord::settings::GuildSettings;
use crate::frontend::discord::{Discord, number};
use crate::intake::{Outcome, Waiting};
use crate::metrics::Note;
use crate::queue::Filter;

/// Requests of one person that are forgotten in one go.
const MOST_FORGOTTEN: usize = 1_000;

impl Discord {
    /// Offers the commands; those that were offered before are replaced by the same.
    pub(super) async fn offer_commands(&self) {
        if let Err(refused) = self.rest.register(self.identity.application.get(), &definitions()).await {
            tracing::warn!(error = %refused, "commands cannot be offered; mentions work");
        }
    }
}

impl Desk {
    /// Answers a command; and what is left to wait for.
    pub(super) async fn commanded(self: &Arc<Self>, command: CommandInteraction) -> Option<Words> {
        // Within three seconds, whatever follows: type 5 is an answer that comes later.
        let soon = json!({"type": 5, "data": {"flags": EPHEMERAL}});
        let to = Interaction { id: command.id.get(), token: &command.token };
        match self.discord.rest.respond(to, &soon).await {
            Ok(()) => {}
            // It may have been heard, and then the answer to it will be too.
            Err(Refused::Unanswered) => tracing::debug!("nobody knows whether a command was acknowledged"),
            Err(refused) => {
                tracing::warn!(error = %refused, "a command cannot be answered");
                return None;
            }
        }
        let mut waits = Vec::new();
        let text = match Command::of(&command.data) {
            Ok(Command::Fetch { links, dropped, options, message }) => {
                let destination = Destination {
                    front_end: FrontEnd::Discord,
                    guild: command.guild_id.map(from_guild),
                    channel: from_channel(command.channel_id),
                    reply_to: message,
                };
                let mut text = self.fetch(&command, destination, links, options, &mut waits).await;
                if dropped > 0 {
                    text = format!("{text}\n{}", caption::too_many(dropped));
                }
                text
            }
            Ok(Command::Check) => check(&command),
            Ok(Command::Status) => self.status().await,
            Ok(Command::Why(link)) => self.why(link),
            Ok(Command::Settings(wishes)) => self.settings(&command, wishes).await,
            Ok(Command::Forget) => self.forget(from_user(command.user.id)).await,
            Err(text) => text,
        };
        let answer = json!({"content": text, "allowed_mentions": {"parse": []}});
        let application = self.discord.identity.application.get();
        if let Err(refused) = self.discord.rest.edit_response(application, to, &answer).await {
            tracing::warn!(error = %refused, "a command is not answered");
        }
        if waits.is_empty() {
            return None;
        }
        let desk = Arc::clone(self);
        let waits = waits.into_iter().map(move |(request, place)| desk.clone().behind(request, place, TURNS));
        let waits = async move { drop(join_all(waits).await) };
        Some(std::future::ready(Some(waits.boxed())).boxed())
    }

    /// Takes the links of a command, and says what became of them.
    async fn fetch(
        &self,
        command: &CommandInteraction,
        destination: Destination,
        links: Vec<Link>,
        options: Options,
        waits: &mut Vec<(Request, Waiting)>,
    ) -> String {
        if !may_write(command) {
            return "You may not write here, so I post nothing for you here.".to_owned();
        }
        let missing = self.discord.knowledge.missing(destination.guild, destination.channel);
        if !missing.is_empty() {
            return format!("I cannot post here: I lack the permissions {}.", knowledge::names(missing));
        }
        let settings = self.discord.settings.of(destination.guild).await;
        if !settings.allows(&self.discord.knowledge.with_parent(destination.guild, destination.channel)) {
            return caption::elsewhere(&settings.channels);
        }
        let options = Options { quoted: options.quoted || settings.quoted, ..options };
        self.discord.limits.recall(&destination).await;
        let requester = from_user(command.user.id);
        let origin = number(command.id.get());
        let asks = (0_u8..).zip(links).map(|(ordinal, link)| {
            let id = RequestId::new(FrontEnd::Discord, origin, ordinal);
            self.intake.ask(Request { id, requester, link, destination, options })
        });
        let mut lines = Vec::new();
        for outcome in join_all(asks).await {
            lines.push(self.word_for(outcome, waits).await);
        }
        lines.join("\n")
    }

    async fn word_for(&self, outcome: Outcome, waits: &mut Vec<(Request, Waiting)>) -> String {
        match outcome {
            Outcome::Accepted(request) => {
                self.discord.statuses.note(&request, None);
                "On its way.".to_owned()
            }
            Outcome::Again(_) => "On its way already.".to_owned(),
            Outcome::Joined { request, waiting } => {
                waits.push((request, waiting));
                "Somebody asked for it here just before; it is on its way.".to_owned()
            }
            Outcome::AlreadyThere { request, delivered } if self.discord.still_stands(&delivered).await => {
                caption::pointer(request.destination.guild, &delivered)
            }
            Outcome::AlreadyThere { request, delivered } => {
                self.processed.forget_this(&crate::domain::DeliveryKey::of(&request), &delivered);
                match self.intake.send(request).await {
                    Outcome::Full(_) | Outcome::Limited { .. } => caption::FULL.to_owned(),
                    Outcome::Closed(_) => caption::CLOSED.to_owned(),
                    _ => "On its way.".to_owned(),
                }
            }
            Outcome::Limited { retry_after, .. } => caption::limited(retry_after.as_secs_f64()),
            Outcome::Full(_) => caption::FULL.to_owned(),
            Outcome::Closed(_) => caption::CLOSED.to_owned(),
        }
    }

    /// What was done for a post lately.
    fn why(&self, link: Link) -> String {
        let Some(notes) = self.intake.notes(link.post) else {
            return "That is not noted here (metrics.enabled).".to_owned();
        };
        if notes.is_empty() {
            return "I did nothing for that post since I was started, or it was too long ago.".to_owned();
        }
        let now = self.discord.clock.now();
        let line = |note: &Note| {
            let took = note.took.map_or_else(String::new, |took| format!(", {:.1} s", took.as_secs_f64()));
            format!("{} s ago: {}{took}", now.since(note.at).as_secs(), note.what)
        };
        notes.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Changes what holds in a server, and says what does.
    async fn settings(&self, command: &CommandInteraction, wishes: Wishes) -> String {
        let all = &self.discord.settings;
        let Some(guild) = command.guild_id.map(from_guild) else {
            return "Here I do as you ask; settings are for servers.".to_owned();
        };
        if wishes == Wishes::default() {
            return all.of(Some(guild)).await.lines(self.discord.sees_all);
        }
        let permissions = command.member.as_ref().and_then(|member| member.permissions);
        if !permissions.is_some_and(|permissions| permissions.manage_guild()) {
            return "Only those who may manage the server can change that.".to_owned();
        }
        let here = from_channel(command.channel_id);
        let change = |settings: &mut GuildSettings| {
            settings.auto = wishes.auto.unwrap_or(settings.auto);
            settings.bare = wishes.caption.map_or(settings.bare, |caption| !caption);
            settings.quoted = wishes.quoted.unwrap_or(settings.quoted);
            settings.strict = wishes.strict.unwrap_or(settings.strict);
            if wishes.everywhere {
                settings.channels.clear();
            }
            if let Some(wanted) = wishes.here {
                settings.channels.retain(|channel| *channel != here);
                if wanted {
                    settings.channels.push(here);
                }
            }
        };
        all.change(guild, change).await.lines(self.discord.sees_all)
    }

    /// Forgets what somebody asked for and is not done.
    async fn forget(&self, user: UserId) -> String {
        let filter = Filter { user: Some(user), most: MOST_FORGOTTEN, ..Filter::default() };
        let jobs = match self.queue.list(filter).await {
            Ok(jobs) => jobs,
            Err(error) => {
                tracing::warn!(%error, "somebody's requests cannot be forgotten");
                return "I cannot do that right now. Try again in some minutes.".to_owned();
            }
        };
        let mut forgotten: usize = 0;
        for job in jobs.iter().filter(|job| job.request.destination.front_end == FrontEnd::Discord) {
            // One that is held is stopped, and whoever holds it ends it without a word.
            self.discord.withdraw(job.request.id);
            self.intake.forget(job.id, &job.request).await;
            forgotten = forgotten.saturating_add(1);
        }
        let noun = if forgotten == 1 { "request of yours is" } else { "requests of yours are" };
        format!(
            "{forgotten} {noun} forgotten. Of what is done I keep where it stands, and not who asked; each of my answers \
             has a button that removes it."
        )
    }

    async fn status(&self) -> String {
        match self.queue.stats().await {
            Ok(stats) => format!(
                "{} requests wait, {} wait for another attempt, {} are being worked on.",
                stats.ready, stats.delayed, stats.leased
            ),
            Err(_) => "Nobody can say right now.".to_owned(),
        }
    }
}

/// Whether the one who gives a command may write where it is given: nobody has the bot write where they may not.
fn may_write(command: &CommandInteraction) -> bool {
    let permissions = command.member.as_ref().and_then(|member| member.permissions);
    let write =
        if is_thread(command) { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES };
    permissions.is_none_or(|permissions| permissions.contains(write))
}

fn is_thread(command: &CommandInteraction) -> bool {
    command.channel.as_ref().is_some_and(|channel| channel.thread_metadata.is_some())
}

/// What the bot may do where the command was given, as Discord says with it.
fn check(command: &CommandInteraction) -> String {
    let Some(permissions) = command.app_permissions else {
        return "I have all that I need here.".to_owned();
    };
    let rights = Rights { permissions, thread: is_thread(command) };
    let mut lines = Vec::new();
    if rights.missing().is_empty() {
        lines.push("I can post here.".to_owned());
    } else {
        lines.push(format!("I cannot post here: I lack {}.", knowledge::names(rights.missing())));
    }
    if !rights.may_answer() {
        lines.push(
            "Without Read Message History I post below a message rather than as an answer to it.".to_owned(),
        );
    }
    if !rights.may_suppress() {
        lines.push("Without Manage Messages the preview of a link stays beside its media.".to_owned());
    }
    lines.join("\n")
}

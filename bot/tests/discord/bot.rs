//! A bot in a loopback Discord, which can be stopped, killed and started again.

use std::sync::Arc;
use std::time::Duration;

use azalea_bot::app::{App, Rooms};
use azalea_bot::config::{QueueBackend, Secret};
use azalea_bot::frontend::discord::{self, Ended, GatewayFailure};
use serenity::model::id::{ChannelId, GuildId, MessageId, UserId};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::double::Discord;
use crate::double::GuildSpec;
use crate::double::Message;
use crate::films::Film;
use crate::house::House;

/// A Discord with one guild that the bot is in, and an X with one post.
pub(crate) struct Bot {
    pub(crate) discord: Discord,
    pub(crate) house: House,
    pub(crate) guild: GuildId,
    pub(crate) channel: ChannelId,
    pub(crate) ann: UserId,
    pub(crate) bob: UserId,
    /// How long the gateway may be away, or silent, before the connection is made anew.
    pub(crate) patience: (Duration, Duration),
    running: Option<Running>,
}

struct Running {
    app: App,
    session: JoinHandle<Ended>,
    stop: CancellationToken,
}

impl Bot {
    /// The post has this video; the bot runs.
    pub(crate) async fn with_video(film: Film) -> Self {
        Self::in_house(House::with_video(film).await).await
    }

    /// The bot runs with this house behind it.
    pub(crate) async fn in_house(house: House) -> Self {
        let mut bot = Self::asleep(house, GuildSpec::default()).await;
        bot.start().await;
        bot
    }

    /// The bot does not run yet.
    pub(crate) async fn asleep(mut house: House, spec: GuildSpec) -> Self {
        let discord = Discord::start().await;
        house.config.queue.backend = QueueBackend::Embedded;
        house.config.discord.api_base = Some(discord.base().to_string());
        let guild = discord.add_guild(spec);
        let channel = discord.text_channel(guild);
        let (ann, bob) = (discord.user("ann"), discord.user("bob"));
        let patience = (Duration::from_secs(60), Duration::from_secs(60));
        Self { discord, house, guild, channel, ann, bob, patience, running: None }
    }

    pub(crate) async fn start(&mut self) {
        self.try_start().await.unwrap();
    }

    pub(crate) async fn try_start(&mut self) -> Result<(), GatewayFailure> {
        let (config, clock) = (&self.house.config, self.house.clock.clone());
        let rooms = Rooms::new(config, clock.clone()).unwrap();
        let token = Secret::new(self.discord.token());
        let (front_end, session) =
            discord::Discord::connect(config, &token, rooms.store.clone(), rooms.withdrawals.clone(), clock)
                .await?;
        let app = App::start_in(rooms, config, front_end as _).await.unwrap();
        let stop = CancellationToken::new();
        let serving = session.patience(self.patience.0, self.patience.1).run(
            app.intake.clone(),
            app.rooms.processed.clone(),
            Arc::clone(&app.queue),
            stop.clone(),
        );
        self.running = Some(Running { app, session: tokio::spawn(serving), stop });
        Ok(())
    }

    pub(crate) fn app(&self) -> &App {
        &self.running.as_ref().unwrap().app
    }

    /// Stops it as a signal does.
    pub(crate) async fn stop(&mut self) {
        let Running { app, session, stop } = self.running.take().unwrap();
        stop.cancel();
        assert!(matches!(session.await.unwrap(), Ended::Asked));
        app.stop().await;
    }

    /// Waits until the session ends by itself, and says why.
    pub(crate) async fn over(&mut self) -> Ended {
        let Running { app, session, .. } = self.running.take().unwrap();
        let ended = session.await.unwrap();
        app.stop().await;
        ended
    }

    /// The end, and that nothing was done that a good client would not do.
    pub(crate) async fn end(mut self) {
        self.stop().await;
        assert_eq!(self.discord.violations(), Vec::<String>::new(), "{}", self.discord.report());
    }

    /// Somebody mentions the bot with these words.
    pub(crate) fn mention(&self, who: UserId, words: &str) -> MessageId {
        self.mention_in(self.channel, who, words)
    }

    pub(crate) fn mention_in(&self, channel: ChannelId, who: UserId, words: &str) -> MessageId {
        self.discord.say(channel, who, &format!("<@{}> {words}", self.discord.bot()))
    }

    /// Waits until the bot has so many messages in the channel, and gives them.
    #[track_caller]
    pub(crate) fn replies(&self, count: usize) -> impl Future<Output = Vec<Message>> {
        let channel = self.channel;
        let wait = self.discord.wait_until(move |state| state.replies(channel).len() >= count);
        async move {
            wait.await;
            self.discord.look(|state| state.replies(channel))
        }
    }

    /// Waits until messages that answer this one are there, and gives them; words on how it goes are no answer.
    #[track_caller]
    pub(crate) fn answers_to(&self, message: MessageId, count: usize) -> impl Future<Output = Vec<Message>> {
        let channel = self.channel;
        let answers = move |state: &crate::double::State| {
            let mut all = state.replies(channel);
            let is_status = |reply: &Message| reply.buttons().iter().any(|(label, _)| label == "Cancel");
            all.retain(|reply| reply.reference == Some(message) && !is_status(reply));
            all
        };
        let wait = self.discord.wait_until(move |state| answers(state).len() >= count);
        async move {
            wait.await;
            self.discord.look(answers)
        }
    }

    /// Everything that is under way comes to its end.
    pub(crate) async fn idle(&self) {
        while self.app().unfinished().await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

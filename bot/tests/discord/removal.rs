//! What is taken away, by whom, and after a restart too.

use crate::bot::Bot;
use crate::films;
use crate::house::LINK;

#[tokio::test]
async fn a_message_that_is_deleted_takes_its_answer_along_even_after_a_restart() {
    let mut bot = Bot::with_video(films::ready()).await;
    let (first, second) = (bot.mention(bot.ann, LINK), bot.mention(bot.bob, "hello"));
    let answer = bot.answers_to(first, 1).await[0].id;
    let hint = bot.answers_to(second, 1).await[0].id;
    let third = bot.mention(bot.bob, LINK);
    let pointer = bot.answers_to(third, 1).await[0].id;
    bot.idle().await;
    bot.stop().await;
    bot.start().await;
    // A pointer goes alone: what it points at is somebody else's.
    bot.discord.delete(third);
    bot.discord.wait_until(|state| state.message(pointer).unwrap().gone.is_some()).await;
    assert!(bot.discord.message(answer).gone.is_none());
    bot.discord.delete_bulk(bot.channel, &[first, second]);
    bot.discord
        .wait_until(|state| [answer, hint].iter().all(|id| state.message(*id).unwrap().gone.is_some()))
        .await;
    bot.end().await;
}

#[tokio::test]
async fn an_answer_is_removed_by_who_asked_or_a_moderator_and_nobody_else() {
    let bot = Bot::with_video(films::ready()).await;
    let moderator = bot.discord.user("mod");
    bot.discord.make_moderator(bot.guild, moderator);
    for who in [bot.ann, moderator] {
        let asked = bot.mention(bot.ann, LINK);
        let answer = bot.answers_to(asked, 1).await.remove(0);
        // Who asks again before that is stored as done hears of the answer that is gone by then.
        bot.idle().await;
        let button = answer.buttons()[0].1.clone();
        let pressed = bot.discord.press(answer.id, bot.bob, &button);
        bot.discord.wait_until(|state| state.original(pressed).is_some()).await;
        let told = bot.discord.look(|state| state.original(pressed).unwrap().clone());
        assert!(told.is_ephemeral() && told.content.starts_with("Only the one who asked"), "{told:?}");
        assert!(bot.discord.message(answer.id).gone.is_none());
        bot.discord.press(answer.id, who, &button);
        bot.discord.wait_until(|state| state.message(answer.id).unwrap().gone.is_some()).await;
    }
    bot.end().await;
}

#[tokio::test]
async fn who_waits_long_sees_how_it_goes_and_can_stop_it() {
    let bot = Bot::with_video(films::endless()).await;
    let asked = bot.mention(bot.ann, LINK);
    let status = bot.replies(1).await.remove(0);
    assert_eq!(status.reference, Some(asked));
    assert!(status.content.ends_with('…'), "{}", status.content);
    let (label, button) = status.buttons().remove(0);
    assert_eq!(label, "Cancel");
    bot.discord.press(status.id, bot.ann, &button);
    bot.discord.wait_until(|state| state.message(status.id).unwrap().gone.is_some()).await;
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

#[tokio::test]
async fn work_for_a_message_that_is_deleted_ends_without_a_word() {
    let bot = Bot::with_video(films::endless()).await;
    let asked = bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    bot.discord.delete(asked);
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

#[tokio::test]
async fn work_of_an_earlier_run_ends_with_its_message_too() {
    let mut bot = Bot::with_video(films::endless()).await;
    let asked = bot.mention(bot.ann, LINK);
    bot.house.cdn.requests(1).await;
    bot.stop().await;
    bot.start().await;
    bot.house.cdn.requests(2).await;
    bot.discord.delete(asked);
    bot.idle().await;
    assert_eq!(bot.discord.look(|state| state.replies(bot.channel)).len(), 0);
    bot.end().await;
}

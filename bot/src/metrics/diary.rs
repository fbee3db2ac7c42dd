//! What was done for a post lately, in words, for those who ask why.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::WallTime;
use crate::domain::PostId;

/// Posts that are remembered, those that came last, and lines for each.
const POSTS: usize = 1_000;
const LINES: usize = 20;

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When it was over.
    pub at: WallTime,
    /// What it was and what came of it; from a small set of words and codes, never from outside.
    pub what: String,
    /// How long it took; `None` where that says nothing.
    pub took: Option<Duration>,
}

/// Notes by post, the newest so many.
#[derive(Debug, Default)]
pub(super) struct Diary(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    notes: HashMap<PostId, VecDeque<Note>>,
    /// The posts in the order in which they came.
    posts: VecDeque<PostId>,
}

impl Diary {
    pub(super) fn note(&self, post: PostId, note: Note) {
        let mut pages = self.pages();
        if !pages.notes.contains_key(&post) {
            if pages.posts.len() >= POSTS
                && let Some(oldest) = pages.posts.pop_front()
            {
                pages.notes.remove(&oldest);
            }
            pages.posts.push_back(post);
        }
        let lines = pages.notes.entry(post).or_default();
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(note);
    }

    pub(super) fn of(&self, post: PostId) -> Vec<Note> {
        self.pages().notes.get(&post).map(|lines| lines.iter().cloned().collect()).unwrap_or_default()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // Whole after each step: a panic elsewhere has not harmed it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_of_a_post_are_kept() {
        let (diary, one, other) = (Diary::default(), PostId::x("20").unwrap(), PostId::x("21").unwrap());
        for number in 0..30 {
            let note = Note { at: WallTime::from_millis(number), what: number.to_string(), took: None };
            diary.note(one, note);
        }
        let kept: Vec<String> = diary.of(one).into_iter().map(|note| note.what).collect();
        assert_eq!(kept, (10..30).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(diary.of(other), []);
        for number in 0..POSTS {
            let post = PostId::x(&(100 + number).to_string()).unwrap();
            diary.note(post, Note { at: WallTime::from_millis(0), what: String::new(), took: None });
        }
        assert_eq!(diary.of(one), [], "the posts are bounded too");
    }
}

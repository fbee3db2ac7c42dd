//! The mark that keeps a message from being posted twice.

use crate::domain::id::{ChannelId, MessageId, RequestId};

/// The nonce of one message of a delivery: 25 characters of `a-z2-7`, the most that Discord takes.
///
/// `message` is the one that is answered, `part` counts the messages of the delivery from zero, `generation` how often
/// a person had a dead job run again. The same arguments give the same nonce, in every attempt, on every machine and for
/// ever: a message that was posted before a crash is recognised after it. The channel is a part of it, since Discord
/// compares nonces of one author over all channels.
pub fn nonce(
    key: RequestId,
    channel: ChannelId,
    message: Option<MessageId>,
    part: u8,
    generation: u32,
) -> String {
    let message = message.map_or(0, MessageId::get);
    // Numbers between separators: no two different seeds have the same text. No message has the number 0.
    let seed = format!("nonce/1/{key}/{channel}/{message}/{part}/{generation}");
    base32(blake3::hash(seed.as_bytes()).as_bytes())
}

/// The first [`LENGTH`] digits of the bytes, five bits each, the highest first.
fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(LENGTH);
    let (mut bits, mut held) = (0_u32, 0_u32);
    let mut bytes = bytes.iter();
    while text.len() < LENGTH {
        if held < 5 {
            // 25 digits need 16 bytes, and a hash has 32.
            bits = (bits << 8 | bytes.next().map_or(0, |byte| u32::from(*byte))) & 0xffff;
            held = held.saturating_add(8);
        }
        held = held.saturating_sub(5);
        let digit = usize::try_from(bits >> held & 31).unwrap_or(0);
        text.push(DIGITS.get(digit).copied().map_or('a', char::from));
    }
    text
}

/// Characters of a nonce.
const LENGTH: usize = 25;

const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::domain::id::FrontEnd;

    fn some(channel: u64, message: Option<u64>, part: u8, generation: u32) -> String {
        let message = message.map(|number| number.to_string().parse().unwrap());
        let key = RequestId::new(FrontEnd::Discord, "1234567890".parse().unwrap(), 0);
        nonce(key, channel.to_string().parse().unwrap(), message, part, generation)
    }

    /// Messages stand in channels that were posted with it. If it changes, they are posted again.
    #[test]
    fn a_nonce_is_the_same_for_ever() {
        assert_eq!(some(444, Some(1_234_567_890), 0, 0), "tpiy6lthrohzgg3vrd6pylspm");
    }

    #[test]
    fn digits_are_those_of_rfc_4648() {
        // The RFC's own example, then zeros.
        assert_eq!(base32(b"foobar"), "mzxw6ytboi".to_owned() + "aaaaaaaaaaaaaaa");
    }

    #[test]
    fn whatever_differs_makes_another_nonce() {
        let mut seen = HashSet::new();
        for channel in [1, 11, 111] {
            for message in [None, Some(1), Some(11)] {
                for part in [0, 1, 11, 255] {
                    for generation in [0, 1, 11, u32::MAX] {
                        let nonce = some(channel, message, part, generation);
                        assert_eq!(nonce.len(), 25);
                        assert!(seen.insert(nonce));
                    }
                }
            }
        }
        let other = RequestId::new(FrontEnd::Discord, "1234567890".parse().unwrap(), 1);
        assert!(seen.insert(nonce(other, "1".parse().unwrap(), None, 0, 0)));
    }
}

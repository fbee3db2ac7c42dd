//! The bytes of a record.
//!
//! One byte of version, eight bytes of expiry (milliseconds since 1970, little endian), then the value as it was
//! given. A record of another version is as good as absent: an older program left it or a newer one will want it.

use crate::clock::WallTime;

/// Something that is kept until a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What was put.
    pub value: Vec<u8>,
    /// From this moment on it is gone. As it was put, over restarts too.
    pub expires: WallTime,
}

/// The version of the form above.
const VERSION: u8 = 1;

/// The record's bytes.
pub(super) fn encode(value: &[u8], expires: WallTime) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len().saturating_add(9));
    bytes.push(VERSION);
    bytes.extend_from_slice(&expires.as_millis().to_le_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// The record that stands in `bytes`; `None` when they are of another version or too short.
pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let (expires, value) = split(bytes)?;
    Some(Record { value: value.to_vec(), expires })
}

/// When the record in `bytes` expires, without a copy of its value.
pub(super) fn expiry(bytes: &[u8]) -> Option<WallTime> {
    split(bytes).map(|(expires, _)| expires)
}

fn split(bytes: &[u8]) -> Option<(WallTime, &[u8])> {
    let (&version, rest) = bytes.split_first()?;
    let (expires, value) = rest.split_first_chunk::<8>()?;
    (version == VERSION).then(|| (WallTime::from_millis(u64::from_le_bytes(*expires)), value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// These bytes stand in stores. If they change, the version must change too, and this test stays beside the new one.
    #[test]
    fn version_one_is_as_stored() {
        let bytes = [1, 0x10, 0x27, 0, 0, 0, 0, 0, 0, b'h', b'i'];
        let record = Record { value: b"hi".to_vec(), expires: WallTime::from_millis(10_000) };
        assert_eq!(decode(&bytes), Some(record.clone()));
        assert_eq!(encode(&record.value, record.expires), bytes);
    }

    #[test]
    fn unknown_versions_are_absent() {
        let mut bytes = encode(b"hi", WallTime::from_millis(10_000));
        for version in [0, 2, 255] {
            bytes[0] = version;
            assert_eq!(decode(&bytes), None);
        }
    }

    proptest! {
        #[test]
        fn records_survive_their_bytes(value: Vec<u8>, millis: u64) {
            let expires = WallTime::from_millis(millis);
            let bytes = encode(&value, expires);
            prop_assert_eq!(expiry(&bytes), Some(expires));
            prop_assert_eq!(decode(&bytes), Some(Record { value, expires }));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}

//! Which addresses are of the public internet, and what the others are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is when it is not one of the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Special {
    /// No address: "this host" or "this network".
    #[error("unspecified")]
    Unspecified,
    /// This machine.
    #[error("loopback")]
    Loopback,
    /// A private network.
    #[error("private")]
    Private,
    /// The network behind a carrier's address translation.
    #[error("shared by a carrier's customers")]
    Carrier,
    /// The same wire only.
    #[error("link-local")]
    LinkLocal,
    /// A group, or everybody.
    #[error("multicast or broadcast")]
    Multicast,
    /// For examples in documents.
    #[error("for documentation")]
    Documentation,
    /// For measuring networks.
    #[error("for benchmarks")]
    Benchmark,
    /// Where a cloud tells its machines their secrets, outside the ranges above.
    #[error("a cloud's metadata service")]
    Metadata,
    /// Set aside for protocols or for later.
    #[error("reserved")]
    Reserved,
}

/// What the address is when it is not of the public internet, else `None`.
///
/// An IPv6 address that only wraps an IPv4 address is judged by what it wraps, since that is where it leads.
pub(super) fn special(address: IpAddr) -> Option<Special> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<Special> {
    let bits = address.to_bits();
    let inside = |&&(network, length, _): &&([u8; 4], u32, Special)| {
        let network = u32::from_be_bytes(network);
        // The lengths in the table are 4 to 32, so the shift is at most 28.
        (bits ^ network).checked_shr(32_u32.saturating_sub(length)) == Some(0)
    };
    V4.iter().find(inside).map(|(_, _, special)| *special)
}

fn special_v6(address: Ipv6Addr) -> Option<Special> {
    if let Some(wrapped) = wrapped(address) {
        return special_v4(wrapped);
    }
    let bits = address.to_bits();
    let inside = |&&(network, length, _): &&(Ipv6Addr, u32, Special)| {
        (bits ^ network.to_bits()).checked_shr(128_u32.saturating_sub(length)) == Some(0)
    };
    if let Some((_, _, special)) = V6.iter().find(inside) {
        return Some(*special);
    }
    // Only 2000::/3 has ever been given out for the public internet.
    let [first, ..] = address.segments();
    (first & 0xe000 != 0x2000).then_some(Special::Reserved)
}

/// The IPv4 address that this one stands for, if it stands for one.
fn wrapped(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // Unspecified and loopback have the form of an IPv4-compatible address and are none.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // IPv4-compatible, IPv4-mapped, and translated (RFC 2765).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        // NAT64 under its well-known prefix.
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        // 6to4.
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// IPv4 networks with the length of their prefix, from the registry of special-purpose addresses.
const V4: [([u8; 4], u32, Special); 19] = [
    ([0, 0, 0, 0], 8, Special::Unspecified),
    ([10, 0, 0, 0], 8, Special::Private),
    // Inside the carriers' network, but what answers there is a cloud's metadata.
    ([100, 100, 100, 200], 32, Special::Metadata),
    ([100, 64, 0, 0], 10, Special::Carrier),
    ([127, 0, 0, 0], 8, Special::Loopback),
    // Public by its number, and only reachable from inside the cloud that uses it.
    ([168, 63, 129, 16], 32, Special::Metadata),
    ([169, 254, 169, 254], 32, Special::Metadata),
    ([169, 254, 0, 0], 16, Special::LinkLocal),
    ([172, 16, 0, 0], 12, Special::Private),
    ([192, 0, 0, 192], 32, Special::Metadata),
    ([192, 0, 0, 0], 24, Special::Reserved),
    ([192, 0, 2, 0], 24, Special::Documentation),
    ([192, 88, 99, 0], 24, Special::Reserved),
    ([192, 168, 0, 0], 16, Special::Private),
    ([198, 18, 0, 0], 15, Special::Benchmark),
    ([198, 51, 100, 0], 24, Special::Documentation),
    ([203, 0, 113, 0], 24, Special::Documentation),
    ([224, 0, 0, 0], 4, Special::Multicast),
    ([240, 0, 0, 0], 4, Special::Reserved),
];

/// IPv6 networks with the length of their prefix. What is outside 2000::/3 is reserved unless it has a better name.
const V6: [(Ipv6Addr, u32, Special); 12] = [
    (Ipv6Addr::UNSPECIFIED, 128, Special::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, Special::Loopback),
    // NAT64 with a prefix of the operator's own: leads into their network.
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Special::Private),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, Special::Benchmark),
    // Teredo and other protocols' own networks.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Special::Reserved),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Special::Documentation),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Special::Documentation),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, Special::Metadata),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Special::Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Special::LinkLocal),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Special::Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Special::Multicast),
];

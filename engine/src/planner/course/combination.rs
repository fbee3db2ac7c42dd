//! The best choice of one version for each segment.

/// Sums that are followed at once, shared among the segments that have a choice: bounds memory and time.
const SUMS: usize = 200_000;

/// A sum of extra bytes on the way to the best one.
#[derive(Clone, Copy, Debug)]
struct Node {
    extra: u64,
    parent: usize,
    version: usize,
}

/// The version of each segment with which the sum is largest but not above `ceiling`; `None` when even the
/// smallest versions are too large together, or a segment has none.
///
/// Exact while few segments have several versions, else within a thousandth of the ceiling.
pub(super) fn best(sizes: &[Vec<u64>], ceiling: u64) -> Option<Vec<usize>> {
    let mut choice = smallest(sizes)?;
    let least = sum(sizes, &choice);
    let room = ceiling.checked_sub(least)?;
    let open: Vec<usize> = sizes
        .iter()
        .enumerate()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(segment, _)| segment)
        .collect();
    let width = (SUMS / open.len().max(1)).clamp(64, 2000);
    let mut layers = vec![vec![Node { extra: 0, parent: 0, version: 0 }]];
    for segment in &open {
        let (Some(versions), Some(last)) = (sizes.get(*segment), layers.last()) else { continue };
        let least = versions.iter().min().copied().unwrap_or(0);
        let mut nodes: Vec<Node> = Vec::new();
        for (parent, node) in last.iter().enumerate() {
            for (version, bytes) in versions.iter().enumerate() {
                let extra = node.extra.saturating_add(bytes.saturating_sub(least));
                if extra <= room {
                    nodes.push(Node { extra, parent, version });
                }
            }
        }
        nodes.sort_by_key(|node| node.extra);
        nodes.dedup_by_key(|node| node.extra);
        layers.push(thinned(nodes, room, width));
    }
    // The largest sum stands last; from there back to the beginning.
    let mut at = layers.last().map_or(0, |layer| layer.len().saturating_sub(1));
    for (segment, layer) in open.iter().zip(layers.iter().skip(1)).rev() {
        let node = layer.get(at)?;
        *choice.get_mut(*segment)? = node.version;
        at = node.parent;
    }
    Some(choice)
}

/// The smallest version of each segment; `None` when one has none.
pub(super) fn smallest(sizes: &[Vec<u64>]) -> Option<Vec<usize>> {
    sizes
        .iter()
        .map(|versions| {
            versions.iter().enumerate().min_by_key(|(_, bytes)| **bytes).map(|(version, _)| version)
        })
        .collect()
}

/// The bytes of a choice.
pub(super) fn sum(sizes: &[Vec<u64>], choice: &[usize]) -> u64 {
    sizes
        .iter()
        .zip(choice)
        .filter_map(|(versions, version)| versions.get(*version))
        .fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Of sorted nodes, at most about two in each of `width` equal ranges up to `room`: the smallest and the largest.
fn thinned(nodes: Vec<Node>, room: u64, width: usize) -> Vec<Node> {
    if nodes.len() <= width {
        return nodes;
    }
    let step = (room / u64::try_from(width).unwrap_or(u64::MAX).max(1)).max(1);
    let mut kept: Vec<Node> = Vec::with_capacity(width.saturating_mul(2));
    let mut first = None;
    for node in nodes {
        let range = node.extra / step;
        match kept.last_mut() {
            // A range's later nodes replace each other, its first stays.
            Some(last) if last.extra / step == range && first != Some(last.extra) => *last = node,
            Some(last) if last.extra / step == range => kept.push(node),
            _ => {
                first = Some(node.extra);
                kept.push(node);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fullest_sum_wins() {
        let sizes = [vec![50, 40], vec![30, 35], vec![20]];
        assert_eq!(best(&sizes, 100), Some(vec![0, 0, 0]));
        assert_eq!(best(&sizes, 99), Some(vec![1, 1, 0]));
        assert_eq!(best(&sizes, 90), Some(vec![1, 0, 0]));
        assert_eq!(best(&sizes, 89), None);
        assert_eq!(best(&[vec![1], vec![]], 10), None);
        assert_eq!(best(&[], 0), Some(vec![]));
    }

    #[test]
    fn many_segments_with_many_versions_take_bounded_work() {
        let sizes: Vec<Vec<u64>> =
            (0..400).map(|n| (0..4).map(|m| 10_000 + n * 37 + m * 801).collect()).collect();
        let ceiling = 7_600_000;
        let bytes = sum(&sizes, &best(&sizes, ceiling).unwrap());
        assert!((ceiling * 999 / 1000..=ceiling).contains(&bytes), "{bytes}");
    }

    proptest! {
        #[test]
        fn it_is_the_best_of_all(
            sizes in proptest::collection::vec(proptest::collection::vec(0_u64..1000, 1..4), 0..6),
            ceiling in 0_u64..4000,
        ) {
            let mut sums = vec![0];
            for versions in &sizes {
                sums = sums.iter().flat_map(|sum| versions.iter().map(move |bytes| sum + bytes)).collect();
            }
            let expected = sums.into_iter().filter(|sum| *sum <= ceiling).max();
            prop_assert_eq!(best(&sizes, ceiling).map(|choice| sum(&sizes, &choice)), expected);
        }
    }
}

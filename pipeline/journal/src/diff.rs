//! Differences between two runs: items on one side only, items with different contents, and how much later or
//! earlier things happened.
//!
//! A recording contains only bytes. Callers that can decode them define what is compared.

use lowlat_host::statistics::carries_quantile;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Identifies the same item in both runs. Contains no times, because the runs have different clocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// The stream, or the strategy that it belongs to.
    pub source: String,
    /// The source's number of the item.
    pub number: u64,
    pub instrument: u32,
    /// Which request to change the item, from 1; 0: the item itself.
    pub change: u64,
}

/// One item of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: Key,
    /// Fields that must be equal, by name.
    pub fields: Vec<(&'static str, String)>,
    /// Its latency, ns; `None` if unknown.
    pub latency_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldChange {
    pub key: Key,
    pub field: &'static str,
    /// Its value on the left; `None` if missing.
    pub left: Option<String>,
    /// Its value on the right; `None` if missing.
    pub right: Option<String>,
}

/// Distribution of signed nanoseconds. Keeps all values, so that every rank is exact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SignedDistribution {
    pub count: u64,
    pub ns_min: Option<i64>,
    /// Median; this and the percentiles are `None` if the values are too few for them.
    pub ns_p50: Option<i64>,
    pub ns_p90: Option<i64>,
    pub ns_p99: Option<i64>,
    pub ns_p999: Option<i64>,
    pub ns_max: Option<i64>,
}

impl SignedDistribution {
    /// The distribution of these values.
    pub fn of(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        let count = crate::bytes::wide(values.len());
        let rank = |per_mille: u16| {
            let at = (values.len() * usize::from(per_mille)).div_ceil(1000).saturating_sub(1);
            values.get(at).copied().filter(|_| carries_quantile(count, f64::from(per_mille) / 1000.0))
        };
        Self {
            count,
            ns_min: values.first().copied(),
            ns_p50: rank(500),
            ns_p90: rank(900),
            ns_p99: rank(990),
            ns_p999: rank(999),
            ns_max: values.last().copied(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Difference {
    /// Number of items on the left.
    pub left_count: u64,
    /// Number of items on the right.
    pub right_count: u64,
    /// Number of items on both sides.
    pub both_count: u64,
    /// Number of items only on the left.
    pub missing_count: u64,
    /// Number of items only on the right.
    pub extra_count: u64,
    /// Number of items with a differing field.
    pub changed_count: u64,
    /// Items that occur twice in a run; only the first is compared.
    pub twice_count: u64,
    /// The first items only on the left, by key.
    pub missing: Vec<Key>,
    /// The first items only on the right, by key.
    pub extra: Vec<Key>,
    /// The first changes, in the order of the right run.
    pub changed: Vec<FieldChange>,
    /// Latencies of all items on the left.
    pub left_latency: SignedDistribution,
    /// Latencies of all items on the right.
    pub right_latency: SignedDistribution,
    /// Right minus left, for items in both: positive if the right run was slower.
    pub latency_change: SignedDistribution,
}

impl Difference {
    /// Returns true if both runs have the same items with the same contents, regardless of times.
    pub fn is_empty(&self) -> bool {
        self.missing_count == 0 && self.extra_count == 0 && self.changed_count == 0
    }
}

/// Largest number of items listed of each sort.
const NAMED_MAX: usize = 1_000;

/// Compares two runs. Memory grows with the number of items on the left.
pub fn diff(left: impl Iterator<Item = Item>, right: impl Iterator<Item = Item>) -> Difference {
    let mut out = Difference::default();
    // Items on the left, and whether the right has them too.
    let mut known: HashMap<Key, (Item, bool)> = HashMap::new();
    let (mut lefts, mut rights, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for item in left {
        out.left_count += 1;
        lefts.extend(item.latency_ns.map(signed));
        if known.contains_key(&item.key) {
            out.twice_count += 1;
        } else {
            known.insert(item.key.clone(), (item, false));
        }
    }
    let mut extra: HashSet<Key> = HashSet::new();
    for item in right {
        out.right_count += 1;
        rights.extend(item.latency_ns.map(signed));
        match known.get_mut(&item.key) {
            Some((_, true)) => out.twice_count += 1,
            Some((before, is_there)) => {
                *is_there = true;
                out.both_count += 1;
                if let (Some(before), Some(now)) = (before.latency_ns, item.latency_ns) {
                    changes.push(signed(now).saturating_sub(signed(before)));
                }
                compare(before, &item, &mut out);
            }
            None if extra.insert(item.key) => out.extra_count += 1,
            None => out.twice_count += 1,
        }
    }
    let is_missing = |(item, is_there): (Item, bool)| (!is_there).then_some(item.key);
    let missing: Vec<Key> = known.into_values().filter_map(is_missing).collect();
    out.missing_count = crate::bytes::wide(missing.len());
    out.missing = first_of(missing);
    out.extra = first_of(extra.into_iter().collect());
    out.left_latency = SignedDistribution::of(lefts);
    out.right_latency = SignedDistribution::of(rights);
    out.latency_change = SignedDistribution::of(changes);
    out
}

fn first_of(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort();
    keys.truncate(NAMED_MAX);
    keys
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn compare(left: &Item, right: &Item, out: &mut Difference) {
    let value = |item: &Item, name: &&str| {
        item.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone())
    };
    let only_right = right.fields.iter().filter(|(name, _)| value(left, name).is_none());
    let mut is_changed = false;
    for (field, _) in left.fields.iter().chain(only_right) {
        let (before, now) = (value(left, field), value(right, field));
        if before != now {
            is_changed = true;
            if out.changed.len() < NAMED_MAX {
                out.changed.push(FieldChange { key: left.key.clone(), field, left: before, right: now });
            }
        }
    }
    out.changed_count += u64::from(is_changed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: u64, price: u64, latency_ns: u64) -> Item {
        let key = Key { source: "orders.a".to_owned(), number, instrument: 7, change: 0 };
        Item { key, fields: vec![("price", price.to_string())], latency_ns: Some(latency_ns) }
    }

    #[test]
    fn missing_extra_and_changed_items_are_distinguished() {
        let left = [item(1, 10, 100), item(2, 20, 100), item(3, 30, 100)];
        let right = [item(2, 21, 150), item(3, 30, 90), item(4, 40, 100), item(4, 40, 100)];
        let found = diff(left.clone().into_iter(), right.into_iter());
        assert_eq!((found.missing_count, found.extra_count, found.changed_count), (1, 1, 1));
        assert_eq!((found.missing[0].number, found.extra[0].number, found.twice_count), (1, 4, 1));
        let change = &found.changed[0];
        assert_eq!((change.left.as_deref(), change.right.as_deref()), (Some("20"), Some("21")));
        assert_eq!((found.latency_change.ns_min, found.latency_change.ns_max), (Some(-10), Some(50)));
        assert!(diff(left.clone().into_iter(), left.into_iter()).is_empty());
    }

    #[test]
    fn percentiles_need_enough_values() {
        let few = SignedDistribution::of((0..367).collect());
        assert_eq!((few.ns_p90, few.ns_p99), (Some(330), None));
        assert_eq!(SignedDistribution::of((0..368).collect()).ns_p99, Some(364));
        let many = SignedDistribution::of((0..10_000).rev().collect());
        assert_eq!((many.ns_p50, many.ns_p99, many.ns_p999), (Some(4_999), Some(9_899), Some(9_989)));
        assert_eq!(SignedDistribution::of(vec![]).ns_p50, None);
    }
}

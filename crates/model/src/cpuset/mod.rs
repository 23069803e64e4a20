//! Sets of CPUs of any size, and the spellings of such sets that Linux uses.
//!
//! Shell arithmetic and `u64` masks go wrong at 64 CPUs; every set here is a growing bit vector.

mod list;
mod mask;
mod systemd;

pub use list::ListError;
pub use mask::MaskError;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;

/// The number of a logical CPU as the kernel counts them: 0, 1, 2, …
pub type CpuId = u32;

/// The highest CPU number that is accepted from text, a bound against hostile input.
/// The kernel's own limit (`NR_CPUS`) is 8,192 today.
pub const CPU_ID_MAX: CpuId = 65_535;

/// A set of logical CPUs.
///
/// Serialised as a cpulist (`"0-3,8"`). The words never end in a zero, so equal sets compare equal.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    /// The set without a CPU.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// The CPUs `0..count`.
    pub fn first(count: u32) -> Self {
        (0..count).collect()
    }

    /// The set of one CPU.
    pub fn of(cpu: CpuId) -> Self {
        std::iter::once(cpu).collect()
    }

    /// Adds a CPU; true when it was not in the set.
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = place(cpu);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// Removes a CPU; true when it was in the set.
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = place(cpu);
        let was_in = self.contains(cpu);
        if was_in {
            self.words[word] &= !bit;
            self.trim();
        }
        was_in
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: CpuId) -> bool {
        let (word, bit) = place(cpu);
        self.words.get(word).is_some_and(|w| w & bit != 0)
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The lowest CPU.
    pub fn lowest(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The highest CPU.
    pub fn highest(&self) -> Option<CpuId> {
        let last = self.words.last()?;
        let word = u32::try_from(self.words.len() - 1).expect("CPU numbers are bounded by CPU_ID_MAX");
        Some(word * 64 + 63 - last.leading_zeros())
    }

    /// The CPUs in rising order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0u32..).zip(&self.words).flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    index * 64 + bit
                })
            })
        })
    }

    /// The maximal runs of neighbouring CPUs as (first, last), in rising order.
    pub fn ranges(&self) -> Vec<(CpuId, CpuId)> {
        let mut ranges: Vec<(CpuId, CpuId)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        ranges
    }

    /// The CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.zip_words(other, |a, b| a | b)
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip_words(other, |a, b| a & b)
    }

    /// The CPUs of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip_words(other, |a, b| a & !b)
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Whether the sets share no CPU.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.intersection(other).is_empty()
    }

    fn zip_words(&self, other: &Self, op: impl Fn(u64, u64) -> u64) -> Self {
        let len = self.words.len().max(other.words.len());
        let word = |set: &Self, i: usize| set.words.get(i).copied().unwrap_or(0);
        let mut set = Self { words: (0..len).map(|i| op(word(self, i), word(other, i))).collect() };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

fn place(cpu: CpuId) -> (usize, u64) {
    ((cpu / 64) as usize, 1 << (cpu % 64))
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = Self::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl Extend<CpuId> for CpuSet {
    fn extend<I: IntoIterator<Item = CpuId>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

/// `{}` is the cpulist: "1-3". `{:#}` is for sentences: "CPUs 1-3", "CPU 1", "no CPU".
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            _ if !f.alternate() => f.write_str(&self.to_list()),
            0 => f.write_str("no CPU"),
            1 => write!(f, "CPU {}", self.to_list()),
            _ => write!(f, "CPUs {}", self.to_list()),
        }
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({})", self.to_list())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_list())
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_list(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sizes at which masks, words and shells have gone wrong.
    const SIZES: [u32; 8] = [1, 31, 32, 33, 64, 65, 1_024, 4_096];

    fn any_set() -> impl Strategy<Value = CpuSet> {
        (0usize..SIZES.len())
            .prop_flat_map(|i| proptest::collection::vec(0..SIZES[i], 0..200))
            .prop_map(|cpus| cpus.into_iter().collect())
    }

    #[test]
    fn full_sets_survive_every_spelling_at_every_size() {
        for size in SIZES {
            let set = CpuSet::first(size);
            assert_eq!(set.len(), size as usize);
            assert_eq!(CpuSet::parse_list(&set.to_list()).unwrap(), set);
            assert_eq!(CpuSet::parse_mask(&set.to_mask()).unwrap(), set);
            assert_eq!(CpuSet::parse_mask(&set.to_mask_padded(size)).unwrap(), set);
            assert_eq!(CpuSet::parse_systemd(&set.to_systemd()).unwrap(), set);
            assert_eq!(CpuSet::from_systemd_bytes(&set.to_systemd_bytes()), set);
        }
    }

    proptest! {
        #[test]
        fn parse_of_print_is_the_set(set in any_set()) {
            prop_assert_eq!(&CpuSet::parse_list(&set.to_list()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask_padded(4_096)).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_systemd(&set.to_systemd()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::from_systemd_bytes(&set.to_systemd_bytes()), &set);
            let json = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(&serde_json::from_str::<CpuSet>(&json).unwrap(), &set);
        }

        #[test]
        fn algebra_agrees_with_std(a in any_set(), b in any_set()) {
            use std::collections::BTreeSet;
            let (sa, sb): (BTreeSet<_>, BTreeSet<_>) = (a.iter().collect(), b.iter().collect());
            prop_assert_eq!(a.union(&b), sa.union(&sb).copied().collect::<CpuSet>());
            prop_assert_eq!(a.intersection(&b), sa.intersection(&sb).copied().collect::<CpuSet>());
            prop_assert_eq!(a.difference(&b), sa.difference(&sb).copied().collect::<CpuSet>());
            prop_assert_eq!(a.is_subset(&b), sa.is_subset(&sb));
            prop_assert_eq!((a.lowest(), a.highest(), a.len()), (sa.first().copied(), sa.last().copied(), sa.len()));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,80}", machine in "[0-9a-fN,:/ \\-al]{0,40}") {
            for t in [&text, &machine] {
                let _ = CpuSet::parse_list(t);
                let _ = CpuSet::parse_list_within(t, 16);
                let _ = CpuSet::parse_mask(t);
                let _ = CpuSet::parse_systemd(t);
            }
        }
    }

    #[test]
    fn remove_keeps_equality_canonical() {
        let mut set = CpuSet::of(1_000);
        assert!(set.remove(1_000));
        assert!(!set.remove(1_000));
        assert_eq!(set, CpuSet::new());
        assert!(set.is_empty());
    }
}

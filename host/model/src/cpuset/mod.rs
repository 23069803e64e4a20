//! Sets of CPUs of any size, and Linux's spellings of such sets.
//!
//! Shell arithmetic and `u64` masks fail from 64 CPUs on. Every set here is a growing bit vector.

mod list;
mod mask;

pub use list::ListError;
pub use mask::MaskError;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{cmp::Ordering, fmt, ops::Range};

/// Number of a logical CPU in the kernel: 0, 1, 2, …
pub type CpuId = u32;

/// The highest CPU number accepted from text, as a limit against hostile input. The kernel's own limit
/// (`NR_CPUS`) is 8,192 on x86 and POWER, and lower elsewhere.
pub const CPU_ID_MAX: CpuId = 8_191;

/// A set of logical CPUs.
///
/// Serialized as a CPU list (`"0-3,8"`). A set's memory depends on its own span, not on its highest CPU
/// number, because hosts have as many small groups as CPUs. The words neither start nor end with a zero, so
/// equal sets compare equal.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct CpuSet {
    /// Number of zero words before `words`; 0 in an empty set.
    start: usize,
    words: Vec<u64>,
}

/// Compares all words from CPU 0, lowest first.
impl Ord for CpuSet {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_empty(), other.is_empty()) {
            (false, false) => other.start.cmp(&self.start).then_with(|| self.words.cmp(&other.words)),
            (is_empty, other_is_empty) => other_is_empty.cmp(&is_empty),
        }
    }
}

impl PartialOrd for CpuSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl CpuSet {
    pub const fn new() -> Self {
        Self { start: 0, words: Vec::new() }
    }

    /// Creates the set of the CPUs `0..count`.
    pub fn first(count: u32) -> Self {
        (0..count).collect()
    }

    /// Creates a set with one CPU.
    pub fn of(cpu: CpuId) -> Self {
        std::iter::once(cpu).collect()
    }

    /// Adds a CPU; `true` if it was not in the set.
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = place(cpu);
        if self.words.is_empty() {
            self.start = word;
        }
        if word < self.start {
            self.words.splice(0..0, std::iter::repeat_n(0, self.start - word));
            self.start = word;
        }
        let at = word - self.start;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        let is_new = self.words[at] & bit == 0;
        self.words[at] |= bit;
        is_new
    }

    /// Adds the CPUs from `low` to `high`, one word of the set at a time.
    pub(super) fn insert_range(&mut self, low: CpuId, high: CpuId) {
        // Makes the set span both ends.
        self.insert(low);
        self.insert(high);
        let ((first, low_bit), (last, high_bit)) = (place(low), place(high));
        // From the lowest bit, and up to the highest.
        let (above, below) = (!(low_bit - 1), high_bit | (high_bit - 1));
        for (at, word) in (first..=last).zip(&mut self.words[first - self.start..]) {
            *word |=
                (if at == first { above } else { u64::MAX }) & (if at == last { below } else { u64::MAX });
        }
    }

    /// Removes a CPU; `true` if it was in the set.
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = place(cpu);
        let was_in = self.contains(cpu);
        if was_in {
            self.words[word - self.start] &= !bit;
            self.trim();
        }
        was_in
    }

    pub fn contains(&self, cpu: CpuId) -> bool {
        let (word, bit) = place(cpu);
        self.word(word) & bit != 0
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn lowest(&self) -> Option<CpuId> {
        self.iter().next()
    }

    pub fn highest(&self) -> Option<CpuId> {
        let last = self.words.last()?;
        Some(first_cpu(self.end() - 1) + 63 - last.leading_zeros())
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (self.start..).zip(&self.words).flat_map(|(index, &word)| {
            let (mut rest, first) = (word, first_cpu(index));
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    first + bit
                })
            })
        })
    }

    /// The maximal runs of neighbouring CPUs as (first, last), in ascending order.
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
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other.clone(),
            (_, true) => self.clone(),
            _ => {
                let span = self.start.min(other.start)..self.end().max(other.end());
                Self::of_words(span, |at| self.word(at) | other.word(at))
            }
        }
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::of_words(self.common_span(other), |at| self.word(at) & other.word(at))
    }

    /// The CPUs of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self::of_words(self.start..self.end(), |at| self.word(at) & !other.word(at))
    }

    /// True if every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        (self.start..self.end()).all(|at| self.word(at) & !other.word(at) == 0)
    }

    /// True if the sets share no CPU.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.common_span(other).all(|at| self.word(at) & other.word(at) == 0)
    }

    /// The word with the CPUs from `64 * at`; 0 outside the set's span.
    fn word(&self, at: usize) -> u64 {
        at.checked_sub(self.start).and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    /// One past the last word.
    fn end(&self) -> usize {
        self.start + self.words.len()
    }

    fn common_span(&self, other: &Self) -> Range<usize> {
        self.start.max(other.start)..self.end().min(other.end())
    }

    fn of_words(span: Range<usize>, word: impl Fn(usize) -> u64) -> Self {
        let mut set = Self { start: span.start, words: span.map(word).collect() };
        set.trim();
        set
    }

    /// Removes zero words from both ends.
    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        let zeros = self.words.iter().take_while(|word| **word == 0).count();
        self.words.drain(..zeros);
        self.start = if self.words.is_empty() { 0 } else { self.start + zeros };
    }
}

fn place(cpu: CpuId) -> (usize, u64) {
    ((cpu / 64) as usize, 1 << (cpu % 64))
}

/// The lowest CPU of a word.
fn first_cpu(word: usize) -> CpuId {
    u32::try_from(word).expect("CPU numbers are 32 bits wide") * 64
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
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

/// `{}` is the CPU list: "1-3". `{:#}` is for sentences: "CPUs 1-3", "CPU 1", "no CPU".
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

impl schemars::JsonSchema for CpuSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CpuSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "CPUs as the kernel lists them: \"0-3,8\"; empty for none." })
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
        }
    }

    /// All words from CPU 0.
    fn words(set: &CpuSet) -> Vec<u64> {
        (0..set.end()).map(|at| set.word(at)).collect()
    }

    proptest! {
        #[test]
        fn changes_agree_with_std(changes in proptest::collection::vec((0_u32..500, proptest::bool::ANY), 0..60)) {
            let (mut set, mut std) = (CpuSet::new(), std::collections::BTreeSet::new());
            for (cpu, is_in) in changes {
                if is_in {
                    prop_assert_eq!(set.insert(cpu), std.insert(cpu));
                } else {
                    prop_assert_eq!(set.remove(cpu), std.remove(&cpu));
                }
                prop_assert_eq!(&set, &std.iter().copied().collect::<CpuSet>());
                prop_assert!(set.iter().eq(std.iter().copied()));
                prop_assert_eq!(set.is_empty(), std.is_empty());
            }
        }

        #[test]
        fn parse_of_print_is_the_set(set in any_set()) {
            prop_assert_eq!(&CpuSet::parse_list(&set.to_list()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask_padded(4_096)).unwrap(), &set);
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
            prop_assert_eq!(a.is_disjoint(&b), sa.is_disjoint(&sb));
            prop_assert_eq!(a == b, sa == sb);
            prop_assert_eq!(a.cmp(&b), words(&a).cmp(&words(&b)));
            prop_assert_eq!((a.lowest(), a.highest(), a.len()), (sa.first().copied(), sa.last().copied(), sa.len()));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,80}", machine in "[0-9a-fN,:/ \\-al]{0,40}") {
            for t in [&text, &machine] {
                let _ = CpuSet::parse_list(t);
                let _ = CpuSet::parse_list_within(t, 16);
                let _ = CpuSet::parse_mask(t);
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

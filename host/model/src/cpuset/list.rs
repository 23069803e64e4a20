//! The cpulist grammar of the kernel (`bitmap_parselist`): `0-3,8`, `0-15:2/4`, `all`, `N`. Also the part of it that
//! systemd's unit files use: `CPUAffinity=0-3 8` (systemd.exec(5)).

use super::{CPU_ID_MAX, CpuId, CpuSet};
use thiserror::Error;

/// Maximum length of a list in bytes. Every second of 8,192 CPUs takes about 20,000.
const LIST_BYTES_MAX: usize = 64 << 10;
/// Maximum number of strided ranges in a list. The kernel never prints any; people write one or two.
const STRIDES_MAX: usize = 64;

/// Error for a text that is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ListError(String);

impl ListError {
    /// A word before the list of `isolcpus=` contains other characters than letters and underscores.
    pub(crate) fn not_a_flag(flag: &str, list: &str) -> Self {
        Self(format!("\"{flag}\" in \"{list}\" is neither a flag nor part of a CPU list"))
    }
}

impl CpuSet {
    /// Parses a CPU list as the kernel does: parts separated by commas or white space; each part is a number,
    /// `low-high`, or `low-high:used/group` (the first `used` of each `group` of neighbours). The list ends with
    /// its line.
    ///
    /// The empty text is the empty set. `N` and `all` need [`CpuSet::parse_list_within`].
    /// Source: kernel `Documentation/admin-guide/kernel-parameters.rst`, "cpu lists".
    ///
    /// # Errors
    /// [`ListError`] names the invalid part.
    pub fn parse_list(text: &str) -> Result<Self, ListError> {
        Parser::of(text, None).parse()
    }

    /// Like [`CpuSet::parse_list`] on a host of `cpu_count` CPUs: `N` is the last CPU, `all` in any case every CPU,
    /// and a CPU outside the host is an error.
    ///
    /// # Errors
    /// [`ListError`] names the invalid part.
    pub fn parse_list_within(text: &str, cpu_count: u32) -> Result<Self, ListError> {
        Parser::of(text, Some(cpu_count)).parse()
    }

    /// The kernel's spelling: ascending, ranges joined, no spaces: `0-3,8`.
    pub fn to_list(&self) -> String {
        self.join_ranges(",")
    }

    /// Parses CPUs as systemd does: numbers and ranges, separated by spaces or commas. It knows neither strides nor `N`
    /// nor `all`. `None` for other text, which systemd ignores.
    pub fn parse_systemd(text: &str) -> Option<Self> {
        let is_known = text.bytes().all(|byte| byte.is_ascii_digit() || b",- \t".contains(&byte));
        Self::parse_list(text).ok().filter(|_| is_known)
    }

    /// The spelling that systemd prints, with ranges separated by spaces: `0-3 8`.
    pub fn to_systemd(&self) -> String {
        self.join_ranges(" ")
    }

    fn join_ranges(&self, between: &str) -> String {
        let spell =
            |(low, high): (CpuId, CpuId)| if low == high { low.to_string() } else { format!("{low}-{high}") };
        self.ranges().into_iter().map(spell).collect::<Vec<_>>().join(between)
    }
}

struct Parser<'a> {
    list: &'a str,
    /// The text still to be parsed.
    rest: &'a str,
    cpu_count: Option<u32>,
}

impl<'a> Parser<'a> {
    /// The list ends with its line.
    fn of(list: &'a str, cpu_count: Option<u32>) -> Self {
        Self { list, rest: list.split(['\n', '\0']).next().unwrap_or_default(), cpu_count }
    }

    fn parse(mut self) -> Result<CpuSet, ListError> {
        // A list may come from any file, and each of its parts can name every CPU.
        let (bytes, strides) = (self.list.len(), self.list.bytes().filter(|byte| *byte == b':').count());
        if bytes > LIST_BYTES_MAX || strides > STRIDES_MAX {
            return Err(ListError(format!(
                "the CPU list has {bytes} bytes and {strides} strided ranges, at most {LIST_BYTES_MAX} and {STRIDES_MAX} are \
                 supported"
            )));
        }
        let mut set = CpuSet::new();
        loop {
            self.rest = self.rest.trim_start_matches(is_separator);
            if self.rest.is_empty() {
                return Ok(set);
            }
            self.region(&mut set)?;
        }
    }

    fn region(&mut self, set: &mut CpuSet) -> Result<(), ListError> {
        let part = self.rest.split(is_separator).next().unwrap_or_default();
        let is_all = self.rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("all"));
        let (low, high) = if is_all {
            self.rest = &self.rest[3..];
            (0, self.last(part)?)
        } else {
            let low = self.number(part)?;
            (low, if self.is_at_end() { low } else { self.after('-', part)? })
        };
        // Only a range or `all` takes a stride: after a single number, another character was an error above.
        let stride =
            if self.is_at_end() { None } else { Some((self.after(':', part)?, self.after('/', part)?)) };
        if let Some((used, group)) = stride
            && (group == 0 || used > group)
        {
            return Err(ListError(format!(
                "stride \"{part}\" in CPU list \"{}\" must be used/group with used <= group and group > 0",
                self.list
            )));
        }
        if low > high {
            return Err(ListError(format!(
                "range \"{part}\" in CPU list \"{}\" runs backwards; write it as low-high",
                self.list
            )));
        }
        let max = self.cpu_count.map_or(CPU_ID_MAX, |count| count.saturating_sub(1).min(CPU_ID_MAX));
        if high > max {
            return Err(self.too_large(high.into(), max));
        }
        let Some((used, group)) = stride else {
            set.insert_range(low, high);
            return Ok(());
        };
        for first in (low..=high).step_by(group as usize).filter(|_| used > 0) {
            set.insert_range(first, first.saturating_add(used - 1).min(high));
        }
        Ok(())
    }

    /// The number after this character.
    fn after(&mut self, character: char, part: &str) -> Result<CpuId, ListError> {
        self.rest = self.rest.strip_prefix(character).ok_or_else(|| self.syntax(part))?;
        self.number(part)
    }

    fn number(&mut self, part: &str) -> Result<CpuId, ListError> {
        if let Some(rest) = self.rest.strip_prefix('N') {
            self.rest = rest;
            return self.last(part);
        }
        let rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &self.rest[..self.rest.len() - rest.len()];
        if digits.is_empty() {
            return Err(self.syntax(part));
        }
        self.rest = rest;
        digits.parse().map_err(|_| self.too_large(digits.parse().unwrap_or(u64::MAX), CPU_ID_MAX))
    }

    /// The last CPU of the host.
    fn last(&self, part: &str) -> Result<CpuId, ListError> {
        self.cpu_count.and_then(|count| count.checked_sub(1)).ok_or_else(|| {
            ListError(format!(
                "\"{part}\" in CPU list \"{}\" needs the number of CPUs of the host, which is unknown here",
                self.list
            ))
        })
    }

    fn is_at_end(&self) -> bool {
        self.rest.chars().next().is_none_or(is_separator)
    }

    fn syntax(&self, part: &str) -> ListError {
        ListError(format!(
            "\"{part}\" in CPU list \"{}\" is not a CPU number, a range such as 0-3, or a strided range such as 0-15:2/4",
            self.list
        ))
    }

    /// `cpu` is saturated.
    fn too_large(&self, cpu: u64, max: CpuId) -> ListError {
        ListError(format!(
            "CPU {cpu} in CPU list \"{}\" is above the highest accepted number {max}",
            self.list
        ))
    }
}

/// `isspace` of the kernel, within ASCII.
fn is_separator(c: char) -> bool {
    c == ',' || c == '\x0b' || c.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> Vec<CpuId> {
        CpuSet::parse_list(text).unwrap().iter().collect()
    }

    #[test]
    fn reads_what_the_kernel_reads() {
        assert!(cpus("").is_empty());
        assert!(cpus("\n").is_empty());
        assert_eq!(cpus("0"), [0]);
        assert_eq!(cpus("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpus("0 3\t5"), [0, 3, 5]);
        assert_eq!(cpus("0-7:1/4"), [0, 4]);
        assert_eq!(cpus("0-8:2/4"), [0, 1, 4, 5, 8]);
        assert_eq!(cpus("1,1,1-2"), [1, 2]);
        assert_eq!(cpus("0-3:0/2,8"), [8]);
        assert_eq!(cpus("0-3\n8"), [0, 1, 2, 3]);
        for all in ["all", "ALL", "All", "aLL,3"] {
            assert_eq!(CpuSet::parse_list_within(all, 16).unwrap(), CpuSet::first(16), "{all}");
        }
        assert!(CpuSet::parse_list_within("n", 16).is_err());
        assert_eq!(CpuSet::parse_list_within("N", 16).unwrap().to_list(), "15");
        assert_eq!(CpuSet::parse_list_within("0-N:1/N", 16).unwrap().to_list(), "0,15");
        assert_eq!(CpuSet::parse_list_within("8-N,all:1/8", 16).unwrap().to_list(), "0,8-15");
    }

    #[test]
    fn a_range_holds_exactly_its_cpus() {
        for (low, high) in [(0, 0), (0, 63), (63, 64), (1, 62), (5, 200), (64, 127), (8_000, 8_191)] {
            assert!(cpus(&format!("{low}-{high}")).into_iter().eq(low..=high), "{low}-{high}");
        }
        assert_eq!(CpuSet::parse_list("100-130,0-3,128-140").unwrap().to_list(), "0-3,100-140");
    }

    #[test]
    fn refuses_what_the_kernel_refuses() {
        for bad in [
            "x",
            "1-",
            "-1",
            "3-1",
            "0-3:",
            "0-3:1",
            "0-3:0/0",
            "0-3:3/2",
            "0-3:1/2/3",
            "allx",
            "all-3",
            "1--2",
            "+1",
            "4:1/2",
            "99999999999",
        ] {
            assert!(CpuSet::parse_list(bad).is_err(), "{bad}");
        }
        let refused = |text: &str| CpuSet::parse_list(text).unwrap_err().to_string();
        assert!(refused("N").contains("needs the number of CPUs"));
        for long in ["0-8191,".repeat(10_000), "0-8191:1/2,".repeat(65)] {
            assert!(refused(&long).contains("are supported"));
        }
        assert!(refused("8192").ends_with("above the highest accepted number 8191"));
        let within = CpuSet::parse_list_within("16", 16).unwrap_err().to_string();
        assert!(within.ends_with("above the highest accepted number 15"), "{within}");
    }

    #[test]
    fn errors_name_the_part_and_the_list() {
        let text = CpuSet::parse_list("0,5-3").unwrap_err().to_string();
        assert!(text.contains("\"5-3\"") && text.contains("\"0,5-3\""), "{text}");
    }

    #[test]
    fn systemd_reads_only_numbers_and_ranges() {
        let of = |text: &str| CpuSet::parse_systemd(text).map(|cpus| cpus.to_list());
        assert_eq!(of("0-3 8,10"), Some("0-3,8,10".into()));
        assert_eq!(of(""), Some(String::new()));
        assert_eq!(["0-7:1/2", "all", "0-N", "numa", "3-1"].map(of), [None, None, None, None, None]);
    }

    #[test]
    fn systemd_separates_ranges_by_spaces() {
        assert_eq!(CpuSet::parse_list("0-3,8,10").unwrap().to_systemd(), "0-3 8 10");
    }

    /// The rules of `bitmap_parselist`, stated over whole parts: what a part may look like, then what it means. After
    /// the group of a stride the next part needs no separator.
    fn by_the_rules(text: &str, count: u32) -> Option<std::collections::BTreeSet<u32>> {
        let line: String = text.chars().take_while(|c| !matches!(c, '\n' | '\0')).collect();
        let number = |word: &str| match word {
            "N" => Some(count - 1),
            word if word.is_empty() || word.contains(|c: char| !c.is_ascii_digit()) => None,
            word => word.parse().ok(),
        };
        // A number and what follows it.
        let cut = |text: &str| {
            let end = match text.strip_prefix('N') {
                Some(_) => 1,
                None => text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()),
            };
            (text[..end].to_owned(), text[end..].to_owned())
        };
        let mut set = std::collections::BTreeSet::new();
        let mut parts: Vec<String> =
            line.split([',', ' ', '\t']).rev().filter(|part| !part.is_empty()).map(str::to_owned).collect();
        while let Some(part) = parts.pop() {
            let (range, stride) = match part.split_once(':') {
                Some((range, stride)) => (range, Some(stride)),
                None => (part.as_str(), None),
            };
            let (low, high) = match range.split_once('-') {
                _ if range.eq_ignore_ascii_case("all") => (0, count - 1),
                Some((low, high)) => (number(low)?, number(high)?),
                None if stride.is_some() => return None,
                None => (number(range)?, number(range)?),
            };
            let (used, group) = match stride {
                None => (1, 1),
                Some(stride) => {
                    let (used, rest) = stride.split_once('/')?;
                    let (group, rest) = cut(rest);
                    if !rest.is_empty() {
                        parts.push(rest);
                    }
                    (number(used)?, number(&group)?)
                }
            };
            if low > high || high >= count || group == 0 || used > group {
                return None;
            }
            set.extend((low..=high).filter(|cpu| (cpu - low) % group < used));
        }
        Some(set)
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4_000))]
        #[test]
        fn lists_mean_what_the_kernels_rules_say(
            parts in proptest::collection::vec(
                "(all|ALL|aLl|N|[0-9]{1,2}|[0-9]-[0-9N]|[0-9]{1,2}-[0-9]{2}|0-N)(:[0-9N]/[0-9N]{1,2})?|[0-9N:/alx,\n -]{0,5}",
                0..4,
            ),
            between in "[, \t]|, ",
            count in 1_u32..70,
        ) {
            let text = parts.join(&between);
            let ours = CpuSet::parse_list_within(&text, count).ok().map(|set| set.iter().collect());
            proptest::prop_assert_eq!(ours, by_the_rules(&text, count), "{:?} of {}", text, count);
        }
    }
}

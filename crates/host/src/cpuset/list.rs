//! The cpulist grammar of the kernel (`bitmap_parselist`): `0-3,8`, `0-15:2/4`, `all`, `N`.

use super::{CPU_ID_MAX, CpuId, CpuSet};
use thiserror::Error;

/// Maximum length of a list in bytes. Every second of 8,192 CPUs takes about 20,000.
const LIST_BYTES_MAX: usize = 64 << 10;
/// Maximum number of strided ranges in a list. The kernel never prints any; people write one or two.
const STRIDES_MAX: usize = 8;

/// Why a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ListError {
    /// A part is not a number, a range, or a range with a stride.
    #[error(
        "\"{part}\" in CPU list \"{list}\" is not a CPU number, a range such as 0-3, or a strided range such as 0-15:2/4"
    )]
    Syntax {
        /// The part between two commas.
        part: String,
        /// The whole text.
        list: String,
    },
    /// The range runs backwards.
    #[error("range \"{part}\" in CPU list \"{list}\" runs backwards; write it as low-high")]
    Backwards {
        /// The part between two commas.
        part: String,
        /// The whole text.
        list: String,
    },
    /// The stride uses none of its group, or more than it has.
    #[error("stride \"{part}\" in CPU list \"{list}\" must be used/group with 1 <= used <= group")]
    Stride {
        /// The part between two commas.
        part: String,
        /// The whole text.
        list: String,
    },
    /// A CPU number above the limit.
    #[error("CPU {cpu} in CPU list \"{list}\" is above the highest accepted number {max}")]
    TooLarge {
        /// The number, saturated.
        cpu: u64,
        /// The whole text.
        list: String,
        /// The limit.
        max: CpuId,
    },
    /// The list is too long for any host.
    #[error(
        "the CPU list has {bytes} bytes and {strides} strided ranges, at most {LIST_BYTES_MAX} and \
         {STRIDES_MAX} are supported"
    )]
    TooLong {
        /// Length of the list.
        bytes: usize,
        /// Number of strided ranges.
        strides: usize,
    },
    /// `N` or `all`, but the number of CPUs is unknown.
    #[error("\"{part}\" in CPU list \"{list}\" needs the number of CPUs of the host, which is unknown here")]
    NeedsHost {
        /// The part between two commas.
        part: String,
        /// The whole text.
        list: String,
    },
}

impl CpuSet {
    /// Parses a CPU list as the kernel does: parts separated by commas or white space; each part is a number,
    /// `low-high`, or `low-high:used/group` (the first `used` of each `group` of neighbours).
    ///
    /// The empty text is the empty set. `N` and `all` need [`CpuSet::parse_list_within`].
    /// Source: kernel `Documentation/admin-guide/kernel-parameters.rst`, "cpu lists".
    ///
    /// # Errors
    /// [`ListError`] names the invalid part.
    pub fn parse_list(text: &str) -> Result<Self, ListError> {
        Parser { list: text, cpu_count: None }.parse()
    }

    /// Like [`CpuSet::parse_list`] on a host of `cpu_count` CPUs: `N` is the last CPU, `all` every CPU,
    /// and a CPU outside the host is an error.
    ///
    /// # Errors
    /// [`ListError`] names the invalid part.
    pub fn parse_list_within(text: &str, cpu_count: u32) -> Result<Self, ListError> {
        Parser { list: text, cpu_count: Some(cpu_count) }.parse()
    }

    /// The kernel's spelling: ascending, ranges joined, no spaces: `0-3,8`.
    pub fn to_list(&self) -> String {
        self.join_ranges(",")
    }

    pub(super) fn join_ranges(&self, between: &str) -> String {
        let spell =
            |(low, high): (CpuId, CpuId)| if low == high { low.to_string() } else { format!("{low}-{high}") };
        self.ranges().into_iter().map(spell).collect::<Vec<_>>().join(between)
    }
}

struct Parser<'a> {
    list: &'a str,
    cpu_count: Option<u32>,
}

impl Parser<'_> {
    fn parse(&self) -> Result<CpuSet, ListError> {
        // A list may come from any file, and each of its parts can name every CPU.
        let (bytes, strides) = (self.list.len(), self.list.bytes().filter(|byte| *byte == b':').count());
        if bytes > LIST_BYTES_MAX || strides > STRIDES_MAX {
            return Err(ListError::TooLong { bytes, strides });
        }
        let mut set = CpuSet::new();
        let parts = self.list.split(|c: char| c == ',' || c.is_ascii_whitespace() || c == '\0');
        for part in parts.filter(|part| !part.is_empty()) {
            self.part(part, &mut set)?;
        }
        Ok(set)
    }

    fn part(&self, part: &str, set: &mut CpuSet) -> Result<(), ListError> {
        let (range, stride) = match part.split_once(':') {
            Some((range, stride)) => (range, Some(stride)),
            None => (part, None),
        };
        let (low, high) = self.range(range, part)?;
        let (used, group) = stride.map_or(Ok((1, 1)), |stride| self.stride(stride, part))?;
        // As in the kernel: a stride on a single number is rejected.
        if stride.is_some() && !range.contains('-') && range != "all" {
            return Err(self.syntax(part));
        }
        if stride.is_none() {
            set.insert_range(low, high);
            return Ok(());
        }
        let in_stride = |cpu: &CpuId| (cpu - low) % group < used;
        set.extend((low..=high).filter(in_stride));
        Ok(())
    }

    fn range(&self, range: &str, part: &str) -> Result<(CpuId, CpuId), ListError> {
        if range == "all" {
            return match self.cpu_count {
                Some(count) if count > 0 => Ok((0, count - 1)),
                _ => Err(self.needs_host(part)),
            };
        }
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (self.cpu(low, part)?, self.cpu(high, part)?),
            None => (self.cpu(range, part)?, self.cpu(range, part)?),
        };
        if low > high {
            return Err(ListError::Backwards { part: part.into(), list: self.list.into() });
        }
        Ok((low, high))
    }

    fn cpu(&self, text: &str, part: &str) -> Result<CpuId, ListError> {
        if text == "N" {
            return self
                .cpu_count
                .filter(|count| *count > 0)
                .map(|count| count - 1)
                .ok_or_else(|| self.needs_host(part));
        }
        let max = self.cpu_count.map_or(CPU_ID_MAX, |count| count.saturating_sub(1).min(CPU_ID_MAX));
        let cpu = self.number(text).ok_or_else(|| self.syntax(part))?;
        match CpuId::try_from(cpu) {
            Ok(cpu) if cpu <= max => Ok(cpu),
            _ => Err(ListError::TooLarge { cpu, list: self.list.into(), max }),
        }
    }

    fn stride(&self, stride: &str, part: &str) -> Result<(CpuId, CpuId), ListError> {
        let (used, group) = stride.split_once('/').ok_or_else(|| self.syntax(part))?;
        let number = |text: &str| self.number(text).and_then(|n| CpuId::try_from(n).ok());
        match (number(used), number(group)) {
            (Some(used), Some(group)) if used >= 1 && used <= group => Ok((used, group)),
            (Some(_), Some(_)) => Err(ListError::Stride { part: part.into(), list: self.list.into() }),
            _ => Err(self.syntax(part)),
        }
    }

    #[allow(clippy::unused_self, reason = "reads as a rule of this grammar beside the others")]
    fn number(&self, text: &str) -> Option<u64> {
        // `parse` alone would accept "+1".
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
    }

    fn syntax(&self, part: &str) -> ListError {
        ListError::Syntax { part: part.into(), list: self.list.into() }
    }

    fn needs_host(&self, part: &str) -> ListError {
        ListError::NeedsHost { part: part.into(), list: self.list.into() }
    }
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
        assert_eq!(CpuSet::parse_list_within("N", 16).unwrap().to_list(), "15");
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
            "0-3:0/2",
            "0-3:3/2",
            "1--2",
            "+1",
            "4:1/2",
            "99999999999",
        ] {
            assert!(CpuSet::parse_list(bad).is_err(), "{bad}");
        }
        assert!(matches!(CpuSet::parse_list("N"), Err(ListError::NeedsHost { .. })));
        for long in ["0-8191,".repeat(10_000), "0-8191:1/2,".repeat(9)] {
            assert!(matches!(CpuSet::parse_list(&long), Err(ListError::TooLong { .. })));
        }
        assert!(matches!(CpuSet::parse_list("8192"), Err(ListError::TooLarge { max: 8_191, .. })));
        assert!(matches!(CpuSet::parse_list_within("16", 16), Err(ListError::TooLarge { .. })));
    }

    #[test]
    fn errors_name_the_part_and_the_list() {
        let text = CpuSet::parse_list("0,5-3").unwrap_err().to_string();
        assert!(text.contains("\"5-3\"") && text.contains("\"0,5-3\""), "{text}");
    }
}

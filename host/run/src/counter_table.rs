//! The tables of /proc/interrupts and /proc/softirqs: a header that names the CPUs, then a count per CPU and
//! row.

use crate::{Root, root::FILE_BYTES_MAX};
use lowlat_host::{CPU_ID_MAX, CpuId, CpuSet, Reading};
use std::collections::BTreeMap;

/// Rows of /proc/interrupts that are totals of the whole host rather than counts per CPU.
pub const TOTALS: [&str; 3] = ["ERR", "Err", "MIS"];

/// A table of counts per CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// The requested CPUs that have a column. /proc/interrupts has one for each online CPU, /proc/softirqs
    /// for each possible one.
    pub cpus: CpuSet,
    /// The rows after the header.
    pub rows: Vec<Row>,
}

/// One row: `name: count count … text`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Name of the row: the text before the colon.
    pub name: String,
    /// Counts other than zero, by CPU.
    pub count_by_cpu: BTreeMap<CpuId, u64>,
    /// Text after the counts, trimmed.
    pub text: String,
}

impl Table {
    /// Reads a table; with `only`, just the columns of these CPUs.
    ///
    /// A table longer than the limit of one read loses the remaining rows and the incomplete one.
    pub fn read(root: &Root, path: &str, only: Option<&CpuSet>) -> Reading<Self> {
        // Drivers choose handler names, so a driver's odd bytes must not invalidate the whole table.
        root.read_bytes(path).and_then(|bytes| {
            let bytes_max = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
            let text = String::from_utf8_lossy(whole_lines(&bytes, bytes_max));
            let table = Self::parse(&text, only);
            Reading::understood(table, path, &text, "a header that names CPUs (CPU0 CPU1 …)")
        })
    }

    /// `None` without a header that names CPUs, since counts cannot be assigned then.
    pub fn parse(text: &str, only: Option<&CpuSet>) -> Option<Self> {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let named: Vec<Option<CpuId>> = header.split_whitespace().map(cpu_of_column).collect();
        named.iter().flatten().next()?;
        let is_asked = |cpu: &CpuId| only.is_none_or(|only| only.contains(*cpu));
        let columns: Vec<Option<CpuId>> = named.into_iter().map(|cpu| cpu.filter(is_asked)).collect();
        Some(Self {
            cpus: columns.iter().flatten().copied().collect(),
            rows: lines.filter_map(|line| row(line, &columns)).collect(),
        })
    }
}

/// The bytes read, without the last line if the limit of one read may have truncated it.
fn whole_lines(bytes: &[u8], bytes_max: usize) -> &[u8] {
    let is_cut = bytes.len() >= bytes_max;
    let end = bytes.iter().rposition(|byte| is_cut && *byte == b'\n').unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

fn cpu_of_column(name: &str) -> Option<CpuId> {
    name.strip_prefix("CPU")?.parse().ok().filter(|cpu| *cpu <= CPU_ID_MAX)
}

fn row(line: &str, columns: &[Option<CpuId>]) -> Option<Row> {
    let (name, mut rest) = line.split_once(':')?;
    let mut count_by_cpu = BTreeMap::new();
    for column in columns {
        let Some((count, behind)) = leading_count(rest) else { break };
        rest = behind;
        if let (Some(cpu), 1..) = (*column, count) {
            count_by_cpu.insert(cpu, count);
        }
    }
    Some(Row { name: name.trim().to_owned(), count_by_cpu, text: rest.trim().to_owned() })
}

/// The number at the start and the remaining text; `None` if the first word is not a number.
fn leading_count(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, behind) = text.split_at_checked(end)?;
    Some((word.parse().ok()?, behind))
}

/// Splits the text after the counts into the chip (its name, hardware number and trigger, separated by single
/// spaces) and the names of the handlers.
///
/// The kernel prints `chip hwirq-trigger  action, action` on x86 and `chip hwirq Level|Edge  action`
/// elsewhere (kernel/irq/proc.c). A chip's name may contain spaces ("Hyper-V PCIe MSI"). Without a hardware
/// number, the actions start after the first wide gap.
pub fn chip_and_actions(text: &str) -> (String, Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_trigger = |word: &&str| matches!(*word, "Level" | "Edge") || word.starts_with('-');
    let chip_words = words.iter().skip(1).position(|word| starts_hardware_number(word)).map(|at| {
        let number_at = at + 1;
        number_at + 1 + usize::from(words.get(number_at + 1).is_some_and(is_trigger))
    });
    let (chip, actions) = match chip_words {
        Some(count) => {
            (words.iter().take(count).copied().collect::<Vec<_>>().join(" "), skip_words(text, count))
        }
        None => match text.split_once("  ") {
            Some((chip, actions)) => (chip.to_owned(), actions),
            None => (text.to_owned(), ""),
        },
    };
    let actions = actions.split(',').map(str::trim).filter(|name| !name.is_empty());
    (chip, actions.map(str::to_owned).collect())
}

/// `524288-edge`, `27`: digits, either alone or before a dash.
fn starts_hardware_number(word: &str) -> bool {
    let number = word.split_once('-').map_or(word, |(number, _)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn skip_words(text: &str, count: usize) -> &str {
    let mut rest = text.trim_start();
    for _ in 0..count {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default().trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String) {
        let (chip, actions) = chip_and_actions(text);
        (chip, actions.join("|"))
    }

    #[test]
    fn chips_and_actions_are_separated_as_kernels_print_them() {
        let cases = [
            (
                "PCI-MSIX-0000:00:01.0   0-edge      virtio0-config",
                "PCI-MSIX-0000:00:01.0 0-edge",
                "virtio0-config",
            ),
            ("IR-PCI-MSI 524288-edge      nvme0q3", "IR-PCI-MSI 524288-edge", "nvme0q3"),
            (
                "IO-APIC   16-fasteoi   ehci_hcd:usb1, i801_smbus",
                "IO-APIC 16-fasteoi",
                "ehci_hcd:usb1|i801_smbus",
            ),
            ("GICv3  27 Level     arch_timer", "GICv3 27 Level", "arch_timer"),
            ("Hyper-V PCIe MSI 135168-edge      mlx5_async0", "Hyper-V PCIe MSI 135168-edge", "mlx5_async0"),
            ("IO-APIC-edge      timer", "IO-APIC-edge", "timer"),
            ("PCI-MSI 1-edge", "PCI-MSI 1-edge", ""),
            ("", "", ""),
        ];
        for (text, chip, actions) in cases {
            assert_eq!(parts(text), (chip.to_owned(), actions.to_owned()), "{text}");
        }
    }

    #[test]
    fn columns_belong_to_the_cpus_that_the_header_names() {
        let text = "       CPU0  CPU2  CPU9\n 24:  1  0  7  PCI-MSI 1-edge  eth0\nLOC: 5 6 7  Local timer interrupts\n";
        let Table { cpus, rows } = Table::parse(text, None).unwrap();
        assert_eq!(cpus.to_list(), "0,2,9");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].count_by_cpu, BTreeMap::from([(0, 1), (9, 7)]));
        assert_eq!(rows[1].text, "Local timer interrupts");

        let asked = CpuSet::parse_list("1-2").unwrap();
        let Table { cpus, rows } = Table::parse(text, Some(&asked)).unwrap();
        assert_eq!(cpus.to_list(), "2");
        assert_eq!(
            (&rows[0].count_by_cpu, rows[0].text.as_str()),
            (&BTreeMap::new(), "PCI-MSI 1-edge  eth0")
        );
        assert_eq!(rows[1].count_by_cpu, BTreeMap::from([(2, 6)]));
    }

    #[test]
    fn a_table_without_a_header_is_none() {
        for text in ["24: 1 2 3 PCI-MSI 1-edge eth0\n", "CPU4294967295\n24: 1\n", ""] {
            assert_eq!(Table::parse(text, None), None, "{text}");
        }
    }

    #[test]
    fn the_row_that_the_bound_cuts_is_left_out() {
        assert_eq!(whole_lines(b"CPU0\n1: 9\n2: 12", 14), b"CPU0\n1: 9");
        assert_eq!(whole_lines(b"CPU0\n1: 9\n2: 12", 17), b"CPU0\n1: 9\n2: 12");
        assert_eq!(whole_lines(b"CPU0", 4), b"CPU0");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(CPU[0-9]{1,6} ){0,3}\n(\\PC{0,40}\n|[0-9]{1,3}: [0-9 ]{0,30}[\\PC,-]{0,20}\n){0,4}") {
            for row in Table::parse(&text, None).unwrap_or_default().rows {
                let _ = chip_and_actions(&row.text);
            }
        }
    }
}

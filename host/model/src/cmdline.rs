//! The kernel's command line: tokens as the kernel splits them.

use crate::{BOOT_CPU, CpuSet, ListError, isolation::ISOLCPUS_FLAGS};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum length of a command line in bytes: COMMAND_LINE_SIZE of x86 and arm64 is 2,048, including the zero
/// byte. The kernel silently truncates longer ones.
pub const LINE_BYTES_MAX: usize = 2047;

/// The kernel's treatment of a parameter that occurs more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It uses the first and rejects later ones that differ.
    First,
    Last,
    Each,
}

/// Parameters of which the first counts (kernel/sched/isolation.c since 4.15, mm/hugetlb.c).
const OF_FIRST: [&str; 3] = ["isolcpus", "nohz_full", "default_hugepagesz"];
/// Parameters of which each counts: they set separate flags, or name one thing each.
const OF_EACH: [&str; 18] = [
    "amd_iommu",
    "cgroup_disable",
    "console",
    "dyndbg",
    "earlycon",
    "efi",
    "hugepages",
    "hugepagesz",
    "initcall_blacklist",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "mce",
    "pci",
    "pcie_aspm",
    "systemd.mask",
    "systemd.setenv",
    "tsc",
];

impl Repeat {
    /// The rule for a parameter.
    pub fn of(name: &str) -> Self {
        match name {
            name if OF_FIRST.iter().any(|known| same_name(known, name)) => Self::First,
            name if OF_EACH.iter().any(|known| same_name(known, name)) => Self::Each,
            _ => Self::Last,
        }
    }

    /// The rule, as the end of a sentence about one parameter.
    pub fn rule(self) -> &'static str {
        match self {
            Self::First => "the kernel uses the first and ignores the others",
            Self::Last => "the kernel uses the last",
            Self::Each => "the kernel applies each of them",
        }
    }
}

/// A kernel command line.
///
/// Tokens are separated by white space outside double quotes. After a lone `--` they belong to init. Dashes
/// and underscores in names are the same, as in the kernel (`parameq`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    raw: String,
    tokens: Vec<(String, Option<String>)>,
}

impl CommandLine {
    /// Parses the text of /proc/cmdline. Every text is a valid command line.
    pub fn parse(raw: &str) -> Self {
        let raw = raw.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0').to_owned();
        let mut tokens = Vec::new();
        for token in split(&raw) {
            if token == "--" {
                break;
            }
            let unquote = |text: &str| text.trim_matches('"').to_owned();
            tokens.push(match token.split_once('=') {
                Some((name, value)) => (unquote(name), Some(unquote(value))),
                None => (unquote(token), None),
            });
        }
        Self { raw, tokens }
    }

    /// Returns the parsed text without surrounding white space.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Name and value of every kernel token in order.
    pub fn tokens(&self) -> &[(String, Option<String>)] {
        &self.tokens
    }

    /// Every value given for `name`, in order; a bare token gives `None`.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = Option<&'a str>> {
        self.tokens.iter().filter(move |(n, _)| same_name(n, name)).map(|(_, value)| value.as_deref())
    }

    /// The last value of `name`: `None` if the token is missing, `Some("")` if it is bare.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(Option::unwrap_or_default)
    }

    /// The value of `name` that the kernel uses: the first or the last, by the parameter's rule.
    pub fn in_force(&self, name: &str) -> Option<&str> {
        match Repeat::of(name) {
            Repeat::First => self.all(name).next().map(Option::unwrap_or_default),
            Repeat::Last | Repeat::Each => self.last(name),
        }
    }

    /// True if the token is on the command line, bare or with a value.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The CPUs that the kernel takes from a parameter whose value is a CPU list: those of `isolcpus=` after its flags,
    /// those of `nohz_full=` without the boot CPU, those of `irqaffinity=` with it.
    ///
    /// # Errors
    /// The error of an invalid list or flag.
    pub fn cpus(&self, name: &str, cpu_count: u32) -> Option<Result<CpuSet, ListError>> {
        let value = self.in_force(name)?;
        let (flags, list) = flags_and_list(name, value);
        let is_flag = |flag: &&str| flag.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        Some(match flags.into_iter().find(|flag| !is_flag(flag)) {
            Some(flag) => Err(ListError::not_a_flag(flag, value)),
            None => CpuSet::parse_list_within(list, cpu_count).map(|mut cpus| {
                if same_name(name, "nohz_full") {
                    cpus.remove(BOOT_CPU);
                } else if same_name(name, "irqaffinity") {
                    cpus.insert(BOOT_CPU);
                }
                cpus
            }),
        })
    }

    /// The flags that `isolcpus=` sets: those that some kernel knows, or `domain` alone if there are none. Repeated
    /// parameters with the same CPUs add their flags.
    pub fn isolation(&self) -> Vec<&str> {
        let each = self.all("isolcpus").flat_map(|value| {
            let mut flags = flags_and_list("isolcpus", value.unwrap_or_default()).0;
            flags.retain(|flag| ISOLCPUS_FLAGS.iter().any(|(known, _)| known == flag));
            if flags.is_empty() { vec!["domain"] } else { flags }
        });
        each.collect()
    }

    /// The words before the list of `isolcpus=`: `["managed_irq", "domain"]` for `managed_irq,domain,1-7`. Other
    /// parameters have none.
    pub fn flags(&self, name: &str) -> Vec<&str> {
        flags_and_list(name, self.in_force(name).unwrap_or_default()).0
    }
}

/// Splits the value of `isolcpus=` as the kernel does: each word that starts with a letter is a flag, also `all` and
/// `N`, which are CPUs in the list (`housekeeping_isolcpus_setup`).
fn flags_and_list<'a>(name: &str, value: &'a str) -> (Vec<&'a str>, &'a str) {
    let (mut flags, mut list) = (Vec::new(), value);
    while same_name(name, "isolcpus") && list.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (flag, rest) = list.split_once(',').unwrap_or((list, ""));
        flags.push(flag);
        list = rest;
    }
    (flags, list)
}

/// True if the kernel treats two names as equal: dashes and underscores are the same.
pub fn same_name(a: &str, b: &str) -> bool {
    let plain = |c: u8| if c == b'-' { b'_' } else { c };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| plain(a) == plain(b))
}

/// Splits a command line as the kernel does: white space inside double quotes does not separate words.
pub fn split(raw: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let (mut start, mut in_quotes) = (0, false);
    for (at, c) in raw.char_indices() {
        match c {
            '"' => in_quotes = !in_quotes,
            c if c.is_ascii_whitespace() && !in_quotes => {
                tokens.push(&raw[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    tokens.push(&raw[start..]);
    tokens.retain(|token| !token.is_empty());
    tokens
}

impl Serialize for CommandLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.raw)
    }
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

impl schemars::JsonSchema for CommandLine {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CommandLine".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "The kernel's command line." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_tokens_as_the_kernel_does() {
        let line = CommandLine::parse(
            "quiet dyndbg=\"file a +p\" nohz_full=1-7 rcu-nocb-poll x=1 x=2 -- init_arg=3\n",
        );
        assert!(line.has("quiet") && line.has("rcu_nocb_poll") && !line.has("init_arg"));
        assert_eq!(line.last("dyndbg"), Some("file a +p"));
        assert_eq!(line.last("x"), Some("2"));
        assert_eq!(line.last("quiet"), Some(""));
        assert_eq!(line.last("y"), None);
    }

    #[test]
    fn reads_lists_behind_flags() {
        let line = CommandLine::parse("isolcpus=managed_irq,domain,1-7,9-15 nohz_full=8-N rcu_nocbs=all");
        assert_eq!(line.cpus("isolcpus", 16).unwrap().unwrap().to_list(), "1-7,9-15");
        assert_eq!(line.flags("isolcpus"), ["managed_irq", "domain"]);
        assert_eq!(line.cpus("nohz_full", 16).unwrap().unwrap().to_list(), "8-15");
        let of_boot_cpu = CommandLine::parse("nohz_full=ALL irqaffinity=8");
        assert_eq!(of_boot_cpu.cpus("nohz_full", 16).unwrap().unwrap().to_list(), "1-15");
        assert_eq!(of_boot_cpu.cpus("irqaffinity", 16).unwrap().unwrap().to_list(), "0,8");
        assert_eq!(line.cpus("rcu_nocbs", 16).unwrap().unwrap().len(), 16);
        for wrong in ["nohz_full=1-", "nohz_full=x", "nohz_full=domain-1", "nohz_full=domain,1"] {
            assert!(CommandLine::parse(wrong).cpus("nohz_full", 16).unwrap().is_err(), "{wrong}");
        }
    }

    /// Value of isolcpus=, its flags, and its CPUs.
    #[test]
    fn words_that_start_with_a_letter_are_flags_of_isolcpus() {
        for (value, flags, cpus) in [
            ("all", &["all"][..], Some("")),
            ("N", &["N"], Some("")),
            ("ALL,1-3", &["ALL"], Some("1-3")),
            ("domain", &["domain"], Some("")),
            ("domain,future_flag,2-3", &["domain", "future_flag"], Some("2-3")),
            ("1,N,all:1/8", &[], Some("0-1,8,15")),
            ("doma1n,2-3", &["doma1n"], None),
            ("nohz-full,2", &["nohz-full"], None),
            ("1-3,domain", &[], None),
        ] {
            let line = CommandLine::parse(&format!("isolcpus={value}"));
            assert_eq!(line.flags("isolcpus"), flags, "{value}");
            let found = line.cpus("isolcpus", 16).unwrap().ok().map(|cpus| cpus.to_list());
            assert_eq!(found.as_deref(), cpus, "{value}");
        }
    }

    #[test]
    fn each_parameter_has_its_rule_for_repetition() {
        let line =
            CommandLine::parse("nohz-full=1 isolcpus=2 irqaffinity=3 nohz_full=4 isolcpus=5 irqaffinity=6");
        let in_force = ["nohz_full", "isolcpus", "irqaffinity"].map(|name| line.in_force(name).unwrap());
        assert_eq!(in_force, ["1", "2", "6"]);
        assert_eq!(line.cpus("isolcpus", 16).unwrap().unwrap().to_list(), "2");
        assert_eq!(line.in_force("rcu_nocbs"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(raw in "\\PC{0,200}") {
            let line = CommandLine::parse(&raw);
            let _ = line.cpus("isolcpus", 64);
            let _ = serde_json::to_string(&line).unwrap();
        }
    }
}

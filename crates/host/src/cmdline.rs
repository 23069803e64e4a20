//! The kernel's command line: tokens as the kernel splits them.

use crate::{CpuSet, ListError};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum length of a command line in bytes: COMMAND_LINE_SIZE of x86 and arm64 is 2,048, including the zero
/// byte. The kernel silently truncates longer ones.
pub const LINE_BYTES_MAX: usize = 2047;

/// Words that may precede a CPU list: those of `isolcpus=` (kernel-parameters.txt).
const LIST_FLAGS: &[&str] = &["managed_irq", "domain", "nohz"];

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

    /// The kernel's text, trimmed.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Name and value of every kernel token in order.
    pub fn tokens(&self) -> &[(String, Option<String>)] {
        &self.tokens
    }

    /// Every value given for `name`, in order; a bare token gives `None`.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Option<&'a str>> + 'a {
        self.tokens.iter().filter(move |(n, _)| same_name(n, name)).map(|(_, value)| value.as_deref())
    }

    /// The last value of `name`, which wins for most parameters: `None` if the token is missing, `Some("")`
    /// if it is bare.
    pub fn last(&self, name: &str) -> Option<&str> {
        let found = self.tokens.iter().rev().find(|(n, _)| same_name(n, name));
        found.map(|(_, value)| value.as_deref()).map(Option::unwrap_or_default)
    }

    /// Whether the token is on the command line, bare or with a value.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The CPUs of a parameter whose value is a CPU list, after leading flags such as `managed_irq,domain,`.
    ///
    /// # Errors
    /// The error of an invalid list.
    pub fn cpus(&self, name: &str, cpu_count: u32) -> Option<Result<CpuSet, ListError>> {
        let value = self.last(name)?;
        let is_flag = |part: &&str| LIST_FLAGS.contains(part);
        let list = value.split(',').skip_while(is_flag).collect::<Vec<_>>().join(",");
        Some(CpuSet::parse_list_within(&list, cpu_count))
    }

    /// The flags before the list: `["managed_irq", "domain"]` for `isolcpus=managed_irq,domain,1-7`.
    pub fn flags(&self, name: &str) -> Vec<&str> {
        let is_flag = |part: &&str| LIST_FLAGS.contains(part);
        self.last(name).unwrap_or_default().split(',').take_while(is_flag).collect()
    }
}

/// Whether the kernel treats two names as equal: dashes and underscores are the same.
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

#[cfg(feature = "schema")]
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
        assert_eq!(line.cpus("rcu_nocbs", 16).unwrap().unwrap().len(), 16);
        for wrong in ["nohz_full=1-", "nohz_full=x", "nohz_full=domain-1"] {
            assert!(CommandLine::parse(wrong).cpus("nohz_full", 16).unwrap().is_err(), "{wrong}");
        }
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

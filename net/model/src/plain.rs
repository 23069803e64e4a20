//! Logs without what mail, syslog, containers and terminals add to them.

use crate::sfnt::BYTES_MAX;
use regex_lite::Regex;

/// Colours, titles and other control sequences.
const CONTROL: &str = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[^\[\]\n])?";
/// Prefixes of a line: a byte order mark, quotation marks, a host or time in brackets, a head or priority of syslog, a
/// tag with a process, a time stamp with what may follow it, the name of a container.
const PREFIX: &str = r"(?x)^\s*(?:
    \u{feff}
    | (?:[A-Z]{0,3}>|\|)\x20?
    | \[[^\]]*\]:?(?:\x20|$)
    | <\d+>1\x20(?:\S+\x20){5}(?:-|\[[^\]]*\])(?:\x20|$)
    | <\d+>
    | (?:[^\s:\#]+\x20)?[^\s:]+\[\d+\]:(?:\x20|$)
    | (?:(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,?|\d[\w./-]*)\x20+){0,4}
      (?:\d[\d-]*T)?\d\d?:\d\d:\d\d[\d.,Z:+-]*(?:\x20(?:UTC|[+-]\d\d:?\d\d))?(?:\s|$)
      (?:std(?:out|err)\x20F\x20|(?:DEBUG|INFO|NOTICE|WARN|ERROR)\x20|[^\s:\#]+\s\S+:(?:\s|$))?
    | [^\s\#|]+\x20+\|\x20?
)";

/// Decodes a log, UTF-16 if its start says so, and removes what other programs put before its lines: quotation
/// marks of mail, time stamps, priorities, hosts and tags of syslog and containers, colours. Lines keep their numbers.
pub fn plain(bytes: &[u8]) -> String {
    // rsyslog writes control characters as numbers.
    let text = decoded(bytes).replace("#011", "\t").replace("#033", "\u{1b}").replace("#015", "");
    let is_short = text.len() <= BYTES_MAX;
    let (Ok(control), Ok(prefix), true) = (Regex::new(CONTROL), Regex::new(PREFIX), is_short) else {
        return text;
    };
    let text = control.replace_all(&text, "");
    // Prefixes can be nested: a quoted log of a container.
    let stripped = |mut line| {
        while let Some(found) = prefix.find(line) {
            line = line.get(found.end()..).unwrap_or_default();
        }
        line
    };
    let lines: Vec<&str> = text.split('\n').map(|line| stripped(line.trim_end_matches('\r'))).collect();
    let host = common_host(&lines);
    let behind = |line| host.and_then(|host| str::strip_prefix(line, host));
    let rest = |line| behind(line).map_or(line, |rest| stripped(rest.strip_prefix(' ').unwrap_or(rest)));
    lines.into_iter().map(rest).collect::<Vec<_>>().join("\n")
}

fn decoded(bytes: &[u8]) -> String {
    let utf16 = |of: fn([u8; 2]) -> u16| {
        let units = bytes.as_chunks().0.iter().map(|pair| of(*pair));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] | [_, 0, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] | [0, ..] => utf16(u16::from_be_bytes),
        // Other bytes than UTF-8 can be in names of devices.
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The host that pdsh writes before every line: "host1: ".
fn common_host<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let words = lines.iter().filter(|line| !line.trim().is_empty());
    let mut words = words.filter_map(|line| line.split(char::is_whitespace).next());
    let is_host = |word: &&str| word.ends_with(':') && word.matches(':').count() == 1 && *word != "sockperf:";
    let host = words.next().filter(is_host)?;
    (words.next() == Some(host) && words.all(|word| word == host)).then_some(host)
}

#[cfg(test)]
pub(crate) mod tests;

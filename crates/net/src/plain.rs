//! Logs without what mail, syslog, containers and terminals add to them.

use regex_lite::Regex;

/// Colours and other control sequences.
const COLOUR: &str = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[^\[\n])?";
/// What can be before a line. The last part of a time stamp is a tag of syslog or the stream of a container.
const PREFIX: &str = r"(?x)^\s*(?:
    \u{feff}
    | [>|]\x20?
    | \[[^\]]*\]:?(?:\x20|$)
    | <\d+>1\x20(?:\S+\x20){5}(?:-|\[[^\]]*\])(?:\x20|$)
    | <\d+>
    | (?:(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,?|\d[\w./-]*)\x20+){0,4}
      (?:\d[\d-]*T)?\d\d?:\d\d:\d\d[\d.,Z:+-]*(?:\x20(?:UTC|[+-]\d\d:?\d\d))?(?:\s|$)
      (?:std(?:out|err)\x20F\x20|[^\s:]+\[\d+\]:(?:\s|$)|[^\s:\#]+\s\S+:(?:\s|$))?
    | [^\s\#|]+\x20+\|\x20?
)";

/// Decodes a log, UTF-16 if a byte order mark says so, and removes what other programs put before its lines: quotation
/// marks of mail, time stamps, priorities, hosts and tags of syslog and containers, colours. Lines keep their numbers.
pub fn plain(bytes: &[u8]) -> String {
    // rsyslog writes control characters as numbers.
    let text = decoded(bytes).replace("#011", "\t").replace("#033", "\u{1b}").replace("#015", "");
    let (Ok(colour), Ok(prefix)) = (Regex::new(COLOUR), Regex::new(PREFIX)) else { return text };
    let text = colour.replace_all(&text, "");
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
        let units = bytes.as_chunks().0.iter().skip(1).map(|pair| of(*pair));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
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

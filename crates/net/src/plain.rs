//! Logs without what mail, syslog, containers and terminals add to them.

/// Names in time stamps, by their first three letters.
const NAMES: [&str; 19] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon", "Tue", "Wed",
    "Thu", "Fri", "Sat", "Sun",
];
/// Most words of a time stamp: "Wed Nov 25 2026 22:40:01".
const STAMP_WORDS_MAX: usize = 5;
/// Control characters as rsyslog writes them.
const ESCAPES: [(&str, &str); 3] = [("#011", "\t"), ("#033", "\u{1b}"), ("#015", "")];

/// Decodes a log, UTF-16 if a byte order mark says so, and removes what other programs put before its lines: quotation
/// marks of mail, time stamps, priorities, hosts and tags of syslog and containers, colours. Lines keep their numbers.
pub fn plain(bytes: &[u8]) -> String {
    let text = ESCAPES.into_iter().fold(decoded(bytes), |text, (escape, of)| text.replace(escape, of));
    let lines: Vec<String> = text.split('\n').map(without_colours).collect();
    let lines: Vec<&str> = lines.iter().map(|line| stripped(line.trim_end_matches('\r'))).collect();
    let tag = common_tag(&lines);
    let untagged = |line| {
        let rest = tag.and_then(|tag| str::strip_prefix(line, tag));
        rest.map_or(line, |rest| stripped(after_space(rest)))
    };
    lines.into_iter().map(untagged).collect::<Vec<_>>().join("\n")
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

/// Removes colours and other control sequences.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        // "ESC [ parameters letter"
        if characters.next() == Some('[') {
            let _ = characters.by_ref().find(|end| ('@'..='~').contains(end));
        }
    }
    plain
}

/// The line behind its prefixes, which can be nested: a quoted log of a container. Its own white space stays.
fn stripped(mut line: &str) -> &str {
    while let Some(rest) = behind_prefix(line.trim_start()) {
        line = rest;
    }
    line
}

fn behind_prefix(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix('\u{feff}') {
        return Some(rest);
    }
    if let Some(rest) = line.strip_prefix(['>', '|']) {
        return Some(after_space(rest));
    }
    if let Some(rest) = line.strip_prefix('[') {
        let (_, rest) = rest.split_once(']')?;
        let is_end = rest.is_empty() || rest.starts_with([' ', ':', '\t']);
        return is_end.then(|| after_space(rest.strip_prefix(':').unwrap_or(rest)));
    }
    if let Some((priority, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        return is_number(priority).then(|| rest.strip_prefix("1 ").and_then(behind_head).unwrap_or(rest));
    }
    if let Some(rest) = behind_stamp(line) {
        return Some(behind_tag(rest));
    }
    // "server-1  | "
    let (name, rest) = line.split_once('|')?;
    let is_name =
        name.ends_with(' ') && !name.starts_with('#') && !name.trim_end().contains(char::is_whitespace);
    is_name.then(|| after_space(rest))
}

/// The message behind the rest of a head of RFC 5424: "2026-11-25T22:40:01Z host program 123 - - ".
fn behind_head(line: &str) -> Option<&str> {
    // Host, program, process and kind of message.
    let rest = (0..4).try_fold(behind_stamp(line)?, |rest, _| Some(rest.split_once(' ')?.1))?;
    let end = if rest.starts_with('[') { "]" } else { "-" };
    rest.split_once(end).map(|(_, rest)| after_space(rest))
}

/// The text behind a time stamp: words of a date that end with a clock, then perhaps a zone.
fn behind_stamp(line: &str) -> Option<&str> {
    let mut rest = line;
    for _ in 0..STAMP_WORDS_MAX {
        let (word, behind) = word(rest);
        if has_clock(word) {
            let (zone, later) = self::word(behind);
            let is_offset =
                zone.strip_prefix(['+', '-']).is_some_and(|offset| is_number(&offset.replace(':', "")));
            return Some(if is_offset || zone == "UTC" { later } else { behind });
        }
        let is_date = word.starts_with(|first: char| first.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-/.,".contains(c));
        if !is_date && !NAMES.contains(&word.get(..3)?) {
            return None;
        }
        rest = behind.trim_start_matches(' ');
    }
    None
}

/// Whether a word has a time such as "22:40:01.5" or "2026-11-25T22:40:01Z".
fn has_clock(word: &str) -> bool {
    let (date, clock) = word.split_once('T').unwrap_or(("", word));
    let parts: Vec<&str> = clock.splitn(3, ':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    // Addresses of PCI have four digits before the first colon.
    let is_time = is_number(hour) && hour.len() < 3 && is_number(minute) && minute.len() == 2;
    is_time && second.get(..2).is_some_and(is_number) && date.chars().all(|c| c.is_ascii_digit() || c == '-')
}

/// The text behind "host program[123]: " or "program[123]: ", or the stream of a container.
fn behind_tag(rest: &str) -> &str {
    let (first, behind) = word(rest);
    let (second, later) = word(behind);
    match first {
        "stdout" | "stderr" if second == "F" => later,
        _ if is_tag(first) && first.ends_with("]:") => behind,
        _ if !first.contains(':') && !first.starts_with('#') && second.ends_with(':') => later,
        _ => rest,
    }
}

/// The first word of every line, if it is the same and ends with a colon: a host as pdsh writes it.
fn common_tag<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut firsts = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| word(line).0);
    let first = firsts.next().filter(|first| is_tag(first) && *first != "sockperf:")?;
    (firsts.next() == Some(first) && firsts.all(|other| other == first)).then_some(first)
}

/// Whether a word has one colon, at its end.
fn is_tag(word: &str) -> bool {
    word.split_once(':').is_some_and(|(name, rest)| !name.is_empty() && rest.is_empty())
}

/// The first word, and what follows it and one space.
fn word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

fn after_space(text: &str) -> &str {
    text.strip_prefix(' ').unwrap_or(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
pub(crate) mod tests;

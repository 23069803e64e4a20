//! Merges wanted parameters into the present command line.

use lowlat_host::cmdline::{CommandLine, same_name, split};
use lowlat_settings::change::BootToken;

/// Parameters whose position matters: they move to the end with their new value.
const BELONG_BEHIND: [&str; 2] = ["hugepagesz", "hugepages"];

/// The line with the parameters merged in. Existing words keep their place and spelling. A repeated
/// parameter is kept once, with the new value. New ones come last, before a lone `--`, after which
/// everything belongs to init.
pub fn merge(line: &CommandLine, tokens: &[BootToken]) -> String {
    let all = split(line.raw());
    let end = all.iter().position(|word| *word == "--").unwrap_or(all.len());
    let (kernel, init) = all.split_at(end);
    let mut written: Vec<&str> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for word in kernel {
        let Some(token) = tokens.iter().find(|token| same_name(name_of(word), &token.name)) else {
            words.push((*word).to_owned());
            continue;
        };
        let is_here = !BELONG_BEHIND.contains(&token.name.as_str());
        if let Some(spelled) = spell(token).filter(|_| is_here && !written.contains(&token.name.as_str())) {
            written.push(&token.name);
            words.push(spelled);
        }
    }
    let rest = tokens.iter().filter(|token| !written.contains(&token.name.as_str()));
    // An unclosed quote includes everything after it in the value.
    let is_open = words.last().is_some_and(|word| word.matches('"').count() % 2 == 1);
    let swallows = if is_open { words.pop() } else { None };
    words.extend(rest.filter_map(spell));
    words.extend(swallows);
    words.extend(init.iter().map(|word| (*word).to_owned()));
    words.join(" ")
}

/// All occurrences of a parameter on the present line.
pub fn standing(line: &CommandLine, name: &str) -> Option<String> {
    let all = split(line.raw());
    let words: Vec<&str> = all
        .into_iter()
        .take_while(|word| *word != "--")
        .filter(|word| same_name(name_of(word), name))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

pub(super) fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word).trim_matches('"')
}

/// Characters without a meaning to the kernel, a shell or a boot loader's menu, so values of them need no
/// quotes.
const PLAIN: &str = "_.,:=+/@%~-";

/// The written form of a parameter; none if it is removed. Values with other than plain characters are
/// quoted, because white space separates words for the kernel, and `;`, `*` and others have a meaning to
/// GRUB.
pub fn spell(token: &BootToken) -> Option<String> {
    let value = token.value.as_deref()?;
    let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c));
    Some(match value {
        "" => token.name.clone(),
        value if is_plain => format!("{}={value}", token.name),
        value => format!("{}=\"{value}\"", token.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(name: &str, value: Option<&str>) -> BootToken {
        let value = value.map(str::to_owned);
        BootToken { setting: "boot.test".into(), name: name.into(), value, before: None }
    }

    fn merged(line: &str, tokens: &[(&str, Option<&str>)]) -> String {
        let tokens: Vec<_> = tokens.iter().map(|(name, value)| token(name, *value)).collect();
        merge(&CommandLine::parse(line), &tokens)
    }

    #[test]
    fn what_stands_there_keeps_place_and_spelling() {
        let line =
            "BOOT_IMAGE=/vmlinuz root=LABEL=x dyndbg=\"file a +p\" nohz_full=1 quiet nohz_full=2 -- single";
        assert_eq!(
            merged(
                line,
                &[("nohz_full", Some("1-7")), ("skew_tick", Some("1")), ("rcu_nocb_poll", Some(""))]
            ),
            "BOOT_IMAGE=/vmlinuz root=LABEL=x dyndbg=\"file a +p\" nohz_full=1-7 quiet skew_tick=1 rcu_nocb_poll -- single"
        );
    }

    #[test]
    fn dashes_and_underscores_are_the_same_name() {
        assert_eq!(merged("rcu-nocbs=1 ro", &[("rcu_nocbs", Some("1-3"))]), "rcu_nocbs=1-3 ro");
    }

    #[test]
    fn a_parameter_is_taken_off_every_time_it_stands_there() {
        assert_eq!(merged("nohz=off ro nohz=off", &[("nohz", None)]), "ro");
        assert_eq!(standing(&CommandLine::parse("a=1 b a=2 -- a=3"), "a").as_deref(), Some("a=1 a=2"));
        assert_eq!(standing(&CommandLine::parse("b"), "a"), None);
    }

    #[test]
    fn pages_come_behind_their_size() {
        let pair = [("hugepagesz", Some("2M")), ("hugepages", Some("6000"))];
        assert_eq!(merged("hugepages=64 ro", &pair), "ro hugepagesz=2M hugepages=6000");
    }

    #[test]
    fn an_open_quote_does_not_swallow_what_is_new() {
        assert_eq!(merged("ro x=\"a b", &[("nohz_full", Some("1"))]), "ro nohz_full=1 x=\"a b");
    }

    #[test]
    fn white_space_in_a_value_is_quoted() {
        assert_eq!(merged("", &[("dyndbg", Some("file b +p"))]), "dyndbg=\"file b +p\"");
    }

    proptest! {
        #[test]
        fn merging_twice_changes_nothing_more(line in "[a-c=\" -]{0,60}", value in "[0-9,-]{1,6}") {
            let tokens = [token("a", Some(&value)), token("new", Some("1")), token("b", None)];
            let once = merge(&CommandLine::parse(&line), &tokens);
            prop_assert_eq!(&merge(&CommandLine::parse(&once), &tokens), &once);
        }
    }
}

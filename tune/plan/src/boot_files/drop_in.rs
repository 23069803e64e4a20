//! lowlat's drop-in for GRUB of Debian and Ubuntu: a shell snippet that GRUB's generator reads last.
//!
//! The drop-in contains each parameter twice: as a comment, from which lowlat reads it back, and in the shell's words.
//! `sh` reads it under `set -e`, and it must work whatever other files left behind: `set -u`, unset variables, quoted
//! words, an unusual IFS. So it splits words letter by letter with expansions only, which neither glob nor split.

use crate::boot_line;
use lowlat_settings::change::BootToken;

/// The first line of every drop-in by lowlat; it identifies the file whatever its name.
pub const HEADER: &str =
    "# Written by lowlat. `lowlat tune rollback` takes it away; changes made here are lost.";

/// Names tried for the drop-in, each sorting after the one before.
const NAMES: [&str; 5] =
    ["99-zz-lowlat.cfg", "zz-lowlat.cfg", "zzz-lowlat.cfg", "zzzzzz-lowlat.cfg", "zzzzzzzzzzzz-lowlat.cfg"];

/// The text after the comments, with `@PARAMETERS@` for the parameters that it takes off the line.
const SCRIPT: &str = include_str!("drop_in.sh");

/// True if the generator reads a file of that name. Case matters.
pub fn is_read(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| end == "cfg")
}

/// A name for the drop-in that sorts last among the files of the directory, both by bytes and in locales that ignore
/// case and punctuation; none if even the last candidate does not.
pub fn name_that_sorts_last<'a>(others: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let folded = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let others: Vec<&str> = others.into_iter().filter(|name| is_read(name)).collect();
    let is_last = |own: &str| others.iter().all(|other| *other < own && folded(other) < folded(own));
    NAMES.into_iter().find(|name| is_last(name))
}

/// True if lowlat wrote the drop-in.
pub fn is_own(text: &str) -> bool {
    text.starts_with(HEADER)
}

/// The parameters of a drop-in by lowlat.
pub fn tokens(text: &str) -> Vec<BootToken> {
    let parse = |line: &str| -> Option<BootToken> {
        let (setting, rest) = line.strip_prefix("#: ")?.split_once(' ')?;
        let (is_set, word) = match rest.split_once(' ')? {
            ("set", word) => (true, word),
            ("without", word) => (false, word),
            _ => return None,
        };
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let value = is_set.then(|| value.trim_matches('"').to_owned());
        Some(BootToken { setting: setting.to_owned(), name: name.to_owned(), value, before: None })
    };
    if is_own(text) { text.lines().filter_map(parse).collect() } else { Vec::new() }
}

/// Merges a plan's parameters with those of an earlier drop-in; the plan's win. A plan contains only what the running
/// kernel's line lacks, so parameters of an earlier plan exist in the drop-in alone.
pub fn joined(earlier: &[BootToken], new: &[BootToken]) -> Vec<BootToken> {
    let is_new =
        |token: &BootToken| new.iter().any(|n| lowlat_host::cmdline::same_name(&n.name, &token.name));
    let kept = earlier.iter().filter(|token| !is_new(token));
    kept.chain(new).map(|token| BootToken { before: None, ..token.clone() }).collect()
}

/// The drop-in that puts `tokens` on the command line. Callers check them first ([`super::check`]).
pub fn text(tokens: &[BootToken]) -> String {
    let mut text = format!("{HEADER}\n#\n");
    for token in tokens {
        let setting = if token.setting.is_empty() { "-" } else { &token.setting };
        let line = match boot_line::spell(token) {
            Some(word) => format!("#: {setting} set {word}\n"),
            None => format!("#: {setting} without {}\n", token.name),
        };
        text += &line;
    }
    let name = |token: &BootToken| format!("            ':{}') ;;\n", token.name.replace('-', "_"));
    text += &SCRIPT.replace("@PARAMETERS@\n", &tokens.iter().map(name).collect::<String>());
    let words: String =
        tokens.iter().filter_map(boot_line::spell).flat_map(|word| [" ".to_owned(), word]).collect();
    text + "GRUB_CMDLINE_LINUX=$(lowlat_line \"${GRUB_CMDLINE_LINUX-}\" '')\n"
        + &format!(
            "GRUB_CMDLINE_LINUX_DEFAULT=$(lowlat_line \"${{GRUB_CMDLINE_LINUX_DEFAULT-}}\" '{words}')\n"
        )
        + "unset -f lowlat_line\n"
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, token};
    use super::*;

    #[test]
    fn a_drop_in_tells_its_parameters() {
        let tokens = [plan(), vec![token("dyndbg", Some("file a +p; file b"))]].concat();
        let text = text(&tokens);
        assert!(is_own(&text));
        assert_eq!(super::tokens(&text), tokens);
        assert_eq!(super::tokens("GRUB_CMDLINE_LINUX=x\n#: a set b=c\n"), []);
    }

    #[test]
    fn the_file_as_people_see_it() {
        insta::assert_snapshot!(text(&plan()));
    }

    #[test]
    fn what_an_earlier_plan_set_is_kept_unless_the_new_one_sets_it() {
        let earlier = [token("nohz_full", Some("1-3")), token("skew_tick", Some("1"))];
        let new = [token("nohz-full", Some("1-7"))];
        let joined = joined(&earlier, &new);
        assert_eq!(joined, [earlier[1].clone(), new[0].clone()]);
    }

    #[test]
    fn the_name_sorts_last_in_bytes_and_in_letters() {
        assert_eq!(name_that_sorts_last([]), Some("99-zz-lowlat.cfg"));
        assert_eq!(name_that_sorts_last(["50-cloudimg-settings.cfg"]), Some("99-zz-lowlat.cfg"));
        assert_eq!(name_that_sorts_last(["zz.dpkg-dist"]), Some("99-zz-lowlat.cfg"), "it is not read");
        assert_eq!(name_that_sorts_last(["kdump-tools.cfg"]), Some("zz-lowlat.cfg"));
        assert_eq!(
            name_that_sorts_last(["ZZ-site.cfg"]),
            Some("zzz-lowlat.cfg"),
            "last in bytes, not in letters"
        );
        assert_eq!(name_that_sorts_last(["zz-site.cfg", "a.cfg"]), Some("zzz-lowlat.cfg"));
        assert_eq!(name_that_sorts_last(["\u{10ffff}.cfg"]), None);
    }
}

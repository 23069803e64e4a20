//! Entries of /boot/loader/entries: one file an entry, a key and a value a line (Boot Loader Specification, type 1).

use super::{edited, taken_off};
use lowlat_host::cmdline::split;
use lowlat_settings::change::BootToken;

/// The values of a key, in the order of the file.
pub fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| value(line, key)).collect()
}

/// The value of a line of that key.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix(key)?;
    // A carriage return belongs to the line end.
    rest.starts_with([' ', '\t']).then(|| rest.trim_start_matches([' ', '\t']).trim_end_matches('\r'))
}

/// The kernel's full line: all `options` joined, with variables unexpanded.
pub fn options(text: &str) -> String {
    values(text, "options").into_iter().map(str::trim).filter(|o| !o.is_empty()).collect::<Vec<_>>().join(" ")
}

/// True if the entry's line refers to GRUB's variable `name`.
pub fn refers_to(text: &str, name: &str) -> bool {
    let options = options(text);
    split(&options).iter().any(|word| {
        word.contains(&format!("${{{name}}}"))
            || word.match_indices(&format!("${name}")).any(|(at, found)| {
                let next = word.get(at + found.len()..).and_then(|rest| rest.chars().next());
                !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
            })
    })
}

/// True if the entry boots a kernel of this host normally: it names a kernel and is neither a rescue entry
/// (`MACHINE-0-rescue.conf`) nor a fallback (`arch-fallback.conf`). Those stay as the distribution made them.
pub fn is_usual(id: &str, text: &str) -> bool {
    let for_rescue = |words: &str| {
        let words = words.to_lowercase();
        ["rescue", "fallback", "recovery"].iter().any(|word| words.contains(word))
    };
    let told = values(text, "title").into_iter().chain(values(text, "version")).any(for_rescue);
    !values(text, "linux").is_empty() && !for_rescue(id) && !told
}

/// The entry with `tokens` on its line. The first of several `options` gets them: GRUB reads no other, and systemd-boot
/// joins all. The others lose these parameters, up to a lone `--`, after which everything belongs to init. All other
/// lines stay byte for byte.
pub fn edit(text: &str, tokens: &[BootToken]) -> String {
    let is_options = |line: &str| value(line, "options").is_some() || line.trim() == "options";
    let lines = || text.split_inclusive('\n').enumerate();
    let places: Vec<(usize, &str)> =
        lines().filter(|(_, line)| is_options(line.trim_end_matches('\n'))).collect();
    let has_init = |(_, line): &&(usize, &str)| split(line).contains(&"--");
    let place = places.first().map(|(at, _)| *at);
    let end = places.iter().find(has_init).or(places.last()).map(|(at, _)| *at);
    let off = taken_off(tokens);
    let mut new = String::with_capacity(text.len());
    for (at, line) in lines() {
        let tokens = match place {
            Some(place) if at == place => tokens,
            Some(_) if places.contains(&(at, line)) && end >= Some(at) => &off,
            // After a lone `--` nothing belongs to the kernel.
            _ => {
                new += line;
                continue;
            }
        };
        let content = line.trim_end_matches('\n').trim_end_matches('\r');
        let end = line.get(content.len()..).unwrap_or_default();
        let key = content.len() - value(content, "options").map_or(0, str::len);
        let (key, words) = content.split_at_checked(key).unwrap_or((content, ""));
        let space = if key.ends_with([' ', '\t']) { "" } else { " " };
        let words_new = edited(words, tokens);
        new += key;
        new += if words_new.is_empty() { "" } else { space };
        new += &words_new;
        new += end;
    }
    let line = edited("", tokens);
    if place.is_none() && !line.is_empty() {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &["options ", &line, "\n"].concat();
    }
    new
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, token};
    use super::*;
    use proptest::prelude::*;

    const FEDORA: &str = "title Fedora Linux (6.11.4-301.fc41.x86_64) 41 (Server Edition)\n\
        version 6.11.4-301.fc41.x86_64\nlinux /vmlinuz-6.11.4-301.fc41.x86_64\n\
        initrd /initramfs-6.11.4-301.fc41.x86_64.img $tuned_initrd\n\
        options root=/dev/mapper/fedora-root ro rd.lvm.lv=fedora/root $tuned_params\ngrub_users $grub_users\n";

    #[test]
    fn one_line_is_edited_and_references_stay() {
        let new = edit(FEDORA, &plan());
        let expected = FEDORA.replace(
            "$tuned_params",
            "$tuned_params isolcpus=managed_irq,domain,1-7,9-15 nohz_full=1-7,9-15 rcu_nocb_poll",
        );
        assert_eq!(new, expected);
        assert_eq!(edit(&new, &plan()), new);
        assert!(refers_to(FEDORA, "tuned_params") && !refers_to(FEDORA, "tuned_param"));
        assert!(refers_to("options ${kernelopts}x", "kernelopts"));
    }

    #[test]
    fn entries_in_every_form() {
        let tokens = [token("nohz_full", Some("1-7"))];
        for (text, expected) in [
            ("", "options nohz_full=1-7\n"),
            ("linux /a", "linux /a\noptions nohz_full=1-7\n"),
            ("options\n", "options nohz_full=1-7\n"),
            ("options \tro\r\nlinux /a\r\n", "options \tro nohz_full=1-7\r\nlinux /a\r\n"),
            ("options nohz_full=2 a\noptions b\n", "options nohz_full=1-7 a\noptions b\n"),
            ("options a\noptions b nohz_full=2\n", "options a nohz_full=1-7\noptions b\n"),
            (
                "options a\noptions -- nohz_full=2\noptions nohz_full=3\n",
                "options a nohz_full=1-7\noptions -- nohz_full=2\noptions nohz_full=3\n",
            ),
            ("options a -- init\noptions b\n", "options a nohz_full=1-7 -- init\noptions b\n"),
            ("options nohz_full=2", "options nohz_full=1-7"),
            ("optionsx y\n", "optionsx y\noptions nohz_full=1-7\n"),
        ] {
            assert_eq!(edit(text, &tokens), expected);
            assert_eq!(edit(expected, &tokens), expected);
        }
        assert_eq!(edit("options nohz=off\n", &plan()[2..3]), "options \n");
    }

    #[test]
    fn rescue_and_fallback_are_not_usual() {
        assert!(is_usual("0123-6.11.4", FEDORA));
        assert!(!is_usual("0123-0-rescue", FEDORA));
        assert!(!is_usual("arch-fallback", FEDORA));
        assert!(!is_usual("x", "title Arch (Fallback initramfs)\nlinux /a\n"));
        assert!(!is_usual("memtest", "title Memtest\nefi /memtest.efi\n"));
    }

    proptest! {
        #[test]
        fn an_edited_entry_has_the_line_and_everything_else(
            first in "[a-c=\\$ -]{0,30}", second in "[a-c=\\$ -]{0,30}", key in "[a-z]{1,6}",
        ) {
            prop_assume!(key != "options");
            let text = format!("{key} x\noptions {first}\n{key} y\noptions {second}\n{key} z");
            let tokens = [token("a", Some("1")), token("b", None)];
            let new = edit(&text, &tokens);
            prop_assert_eq!(crate::boot_files::missing(&options(&new), &tokens), Vec::<String>::new());
            prop_assert_eq!(&edit(&new, &tokens), &new);
            prop_assert_eq!(values(&new, &key), vec!["x", "y", "z"]);
        }
    }
}

//! grub.cfg, the menu that GRUB's generator writes: its entries, which of them boots, and whether each carries the
//! parameters that it should.

use super::grub_words::{Variables, words};
use lowlat_settings::change::BootToken;

/// Commands that load a kernel: today's name, and those of older builds for EFI and BIOS.
const LINUX: [&str; 3] = ["linux", "linuxefi", "linux16"];

/// Entries nested deeper than this are no menu that a generator writes.
const DEPTH_MAX: usize = 16;

/// A menu.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrubMenu {
    /// Its entries, in the order of the file, those of submenus included.
    pub entries: Vec<MenuEntry>,
    /// What `default` is set to where no entry is chosen for the next boot only; `${saved_entry}` as it stands.
    pub default: Option<String>,
    /// Whether the menu is filled from /boot/loader/entries when it is shown.
    pub has_blscfg: bool,
    variables: Variables,
}

/// An entry that boots something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MenuEntry {
    /// The script of /etc/grub.d that wrote it; empty when no comment tells.
    pub section: String,
    /// Its own place and those of the submenus around it, outermost first.
    pub path: Vec<Place>,
    /// The lines that load its kernel, as they stand; none when it loads something else. Ubuntu's images for clouds
    /// have two: the one taken when a start without initial ramdisk failed, then the usual one.
    pub linux: Vec<String>,
}

/// Where an entry or a submenu is among its neighbours, and how it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Number, from 0.
    pub index: usize,
    /// Title.
    pub title: String,
    /// `--id`; empty when it has none.
    pub id: String,
}

/// What a block in braces is.
enum Block {
    Submenu,
    Entry(MenuEntry),
    Other,
}

impl MenuEntry {
    /// Its title.
    pub fn title(&self) -> &str {
        self.path.last().map_or("", |place| &place.title)
    }

    /// Whether it is for the day when the usual one does not start: it is to stay as the distribution has it.
    pub fn is_for_recovery(&self) -> bool {
        let is = |place: &Place| {
            let title = place.title.to_lowercase();
            place.id.contains("-recovery-") || title.contains("(recovery mode)") || title.contains("rescue")
        };
        self.path.last().is_some_and(is)
    }
}

impl GrubMenu {
    /// Reads a menu. Every text is one; what is not understood is passed over.
    pub fn parse(text: &str) -> Self {
        let mut menu = Self::default();
        let mut section = String::new();
        let mut blocks: Vec<Block> = Vec::new();
        let mut around: Vec<Place> = Vec::new();
        let mut counts = vec![0usize];
        for line in text.lines().map(str::trim) {
            if let Some(script) = line.strip_prefix("### BEGIN ") {
                script.trim_end_matches(" ###").clone_into(&mut section);
            } else if line.starts_with("### END ") {
                section.clear();
            } else if line == "}" {
                match blocks.pop() {
                    Some(Block::Entry(entry)) => {
                        menu.entries.push(entry);
                        around.pop();
                    }
                    Some(Block::Submenu) => {
                        around.pop();
                        counts.pop();
                    }
                    Some(Block::Other) | None => {}
                }
            } else if line.ends_with('{') && blocks.len() < DEPTH_MAX {
                let block = menu.open(line, &section, &mut around, &mut counts);
                blocks.push(block);
            } else {
                menu.read_command(line, &mut blocks);
            }
        }
        menu
    }

    /// A line that opens a block in braces.
    fn open(&self, line: &str, section: &str, around: &mut Vec<Place>, counts: &mut Vec<usize>) -> Block {
        let words = words(line, &self.variables);
        let word = words.first().map_or("", String::as_str);
        if !["menuentry", "submenu"].contains(&word) {
            return Block::Other;
        }
        let id_at = line.split_whitespace().any(|w| w == "$menuentry_id_option" || w == "--id");
        // `$menuentry_id_option` is "--id" where GRUB knows it, and empty here: the id is the word before the brace.
        let id = if id_at { words.iter().rev().nth(1).cloned().unwrap_or_default() } else { String::new() };
        let title = words.get(1).cloned().unwrap_or_default();
        let index = counts.last().copied().unwrap_or_default();
        if let Some(count) = counts.last_mut() {
            *count += 1;
        }
        around.push(Place { index, title, id });
        if word == "submenu" {
            counts.push(0);
            return Block::Submenu;
        }
        Block::Entry(MenuEntry { section: section.to_owned(), path: around.clone(), linux: Vec::new() })
    }

    /// A line inside a block or outside of all.
    fn read_command(&mut self, line: &str, blocks: &mut [Block]) {
        let command = line.split_whitespace().next().unwrap_or_default();
        let entry = blocks.iter_mut().rev().find_map(|block| match block {
            Block::Entry(entry) => Some(entry),
            _ => None,
        });
        if let Some(entry) = entry {
            if LINUX.contains(&command) {
                entry.linux.push(line.to_owned());
            }
            return;
        }
        if command == "blscfg" {
            self.has_blscfg = true;
        }
        let assignment = line.strip_prefix("set ").unwrap_or_default().trim();
        let Some((name, value)) = assignment.split_once('=') else { return };
        if name == "default" {
            let value = value.trim_matches(|c| c == '"' || c == '\'').to_owned();
            if !value.contains("next_entry") {
                self.default = Some(value);
            }
        } else {
            let value = words(value, &self.variables).into_iter().next().unwrap_or_default();
            self.variables.insert(name.to_owned(), value);
        }
    }

    /// The value that the menu itself gives a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Gives variables the values of the environment block, which is read before the menu.
    pub fn set_variables(&mut self, block: impl IntoIterator<Item = (String, String)>) {
        self.variables.extend(block);
    }

    /// What an entry's `options` or an argument list comes to, with variables put in.
    pub fn expand(&self, text: &str) -> String {
        joined(&words(text, &self.variables))
    }

    /// The line that the kernel usually gets from an entry, as /proc/cmdline will show it.
    pub fn line(&self, entry: &MenuEntry) -> Option<String> {
        self.lines(entry).pop()
    }

    /// Every line that the kernel may get from an entry.
    fn lines(&self, entry: &MenuEntry) -> Vec<String> {
        let line = |command: &String| {
            let words = words(command, &self.variables);
            let (image, arguments) = words.get(1..)?.split_first()?;
            Some(format!("BOOT_IMAGE={image} {}", joined(arguments)).trim_end().to_owned())
        };
        entry.linux.iter().filter_map(line).collect()
    }

    /// The entry that boots: the one chosen for the next boot, the saved one where the menu asks for it, or the one
    /// that the menu names; the first where that names none.
    pub fn default_entry(&self, next_entry: Option<&str>, saved_entry: Option<&str>) -> Option<&MenuEntry> {
        let wanted = self.wanted(next_entry, saved_entry);
        self.find(wanted).or_else(|| self.find("0"))
    }

    /// The name or number of the entry that is to boot; "0" when nobody says.
    pub fn wanted<'a>(&'a self, next_entry: Option<&'a str>, saved_entry: Option<&'a str>) -> &'a str {
        let configured = match self.default.as_deref() {
            Some("${saved_entry}" | "$saved_entry") => saved_entry,
            other => other,
        };
        next_entry
            .filter(|name| !name.is_empty())
            .or(configured.filter(|name| !name.is_empty()))
            .unwrap_or("0")
    }

    /// The entry of a name such as `1>2` or `gnulinux-advanced-UUID>gnulinux-6.1.0-18-amd64-advanced-UUID`. A name of
    /// a submenu stands for its first entry.
    fn find(&self, name: &str) -> Option<&MenuEntry> {
        let is = |place: &Place, name: &str| {
            place.title == name || place.id == name || name.parse() == Ok(place.index)
        };
        // ">>" is a ">" of a title.
        let name = name.replace(">>", "\0");
        let names: Vec<String> = name.split('>').map(|part| part.replace('\0', ">")).collect();
        self.entries.iter().find(|entry| {
            let (given, inside) = entry.path.split_at(names.len().min(entry.path.len()));
            given.len() == names.len()
                && given.iter().zip(&names).all(|(place, name)| is(place, name))
                && inside.iter().all(|place| place.index == 0)
        })
    }

    /// The entries that boot this host's kernels in the usual way: those of the scripts `10_linux*` where comments
    /// tell, without those for recovery.
    pub fn usual_entries(&self) -> Vec<&MenuEntry> {
        let of_linux = |entry: &&MenuEntry| entry.section.contains("/10_linux");
        let is_told = self.entries.iter().any(|entry| of_linux(&entry));
        let is_others = |entry: &&MenuEntry| {
            ["30_os-prober", "40_custom", "41_custom"].iter().any(|script| entry.section.ends_with(script))
        };
        self.entries
            .iter()
            .filter(|entry| if is_told { of_linux(entry) } else { !is_others(entry) })
            .filter(|entry| !entry.linux.is_empty() && !entry.is_for_recovery())
            .collect()
    }

    /// Which of `words` entries lack, one sentence each.
    pub fn lacking(&self, words: &[String]) -> Vec<String> {
        self.faults_of_lines(|line| {
            let there = lowlat_host::cmdline::split(line);
            let lacks = words.iter().filter(|word| !there.contains(&word.as_str()));
            lacks.map(|word| format!("{word} is missing")).collect()
        })
    }

    /// What is wrong with a menu that should carry `tokens`; nothing when it can replace the present one.
    pub fn faults(&self, tokens: &[BootToken]) -> Vec<String> {
        if self.entries.is_empty() {
            return vec!["it has no menuentry".to_owned()];
        }
        if self.usual_entries().is_empty() {
            return vec!["no menuentry loads a kernel of this host".to_owned()];
        }
        self.faults_of_lines(|line| {
            let mut faults = super::missing(line, tokens);
            let (bytes, bytes_max) = (line.len(), lowlat_host::cmdline::LINE_BYTES_MAX);
            if bytes > bytes_max {
                faults
                    .push(format!("its command line has {bytes} bytes, and the kernel supports {bytes_max}"));
            }
            faults
        })
    }

    /// What is wrong with any line of the usual entries, with the entry's title.
    fn faults_of_lines(&self, faults: impl Fn(&str) -> Vec<String>) -> Vec<String> {
        let of_entry = |entry: &&MenuEntry| -> Vec<String> {
            let all = self.lines(entry).into_iter().flat_map(|line| faults(&line));
            all.map(|fault| format!("{:?}: {fault}", entry.title())).collect()
        };
        self.usual_entries().iter().flat_map(of_entry).collect()
    }
}

/// Words as GRUB hands them to the kernel: those with white space in quotes.
fn joined(words: &[String]) -> String {
    let quoted = |word: &String| {
        if word.contains(char::is_whitespace) {
            format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
        } else {
            word.clone()
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, token};
    use super::*;

    const MENU: &str = r#"
### BEGIN /etc/grub.d/00_header ###
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
else
   set default="1>0"
fi
function load_video {
  insmod all_video
}
set tuned_params="skew_tick=1 a=b"
### END /etc/grub.d/00_header ###
### BEGIN /etc/grub.d/10_linux ###
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' {
	if [ x$feature_platform_search_hint = xy ]; then
	  search --no-floppy
	fi
	linux	/vmlinuz-6.1 root=UUID=1 ro  quiet nohz_full=1-7 $tuned_params "dyndbg=file a +p"
	initrd	/initrd.img-6.1
}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-1' {
	menuentry 'Debian, with Linux 6.1' --class debian $menuentry_id_option 'gnulinux-6.1-advanced-1' {
		linux	/vmlinuz-6.1 root=UUID=1 ro  quiet
	}
	menuentry 'Debian, with Linux 6.1 (recovery mode)' $menuentry_id_option 'gnulinux-6.1-recovery-1' {
		linux	/vmlinuz-6.1 root=UUID=1 ro single
	}
}
### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/30_os-prober ###
menuentry 'Other' {
	linux /other ro
}
### END /etc/grub.d/30_os-prober ###
"#;

    #[test]
    fn entries_are_found_by_number_title_and_id() {
        let menu = GrubMenu::parse(MENU);
        let title = |next, saved| menu.default_entry(next, saved).unwrap().title().to_owned();
        assert_eq!(menu.entries.len(), 4);
        assert_eq!(title(None, None), "Debian, with Linux 6.1");
        assert_eq!(title(Some("0"), None), "Debian GNU/Linux");
        assert_eq!(
            title(Some("gnulinux-advanced-1>gnulinux-6.1-recovery-1"), None),
            "Debian, with Linux 6.1 (recovery mode)"
        );
        assert_eq!(title(Some("1"), None), "Debian, with Linux 6.1", "a submenu is its first entry");
        assert_eq!(title(Some("2"), None), "Other");
        assert_eq!(title(Some("no such"), None), "Debian GNU/Linux");
        let saved = GrubMenu::parse(&MENU.replace("\"1>0\"", "\"${saved_entry}\""));
        assert_eq!(saved.default_entry(None, Some("Other")).unwrap().title(), "Other");
        assert_eq!(saved.default_entry(None, None).unwrap().title(), "Debian GNU/Linux");
    }

    #[test]
    fn the_line_of_an_entry_is_the_kernels() {
        let menu = GrubMenu::parse(MENU);
        assert_eq!(
            menu.line(&menu.entries[0]).unwrap(),
            "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1 ro quiet nohz_full=1-7 skew_tick=1 a=b \"dyndbg=file a +p\""
        );
    }

    #[test]
    fn both_lines_of_a_cloud_image_count() {
        let two = "menuentry 'Ubuntu' {\n\tif [ \"${initrdfail}\" = 1 ]; then\n\t  linux\t/a ro nohz_full=1\n\telse\n\t  \
            linux\t/a ro nohz_full=1-7 panic=-1\n\tfi\n}\n";
        let menu = GrubMenu::parse(two);
        assert_eq!(menu.line(&menu.entries[0]).unwrap(), "BOOT_IMAGE=/a ro nohz_full=1-7 panic=-1");
        assert_eq!(
            menu.faults(&[token("nohz_full", Some("1-7"))]),
            ["\"Ubuntu\": found nohz_full=1, expected nohz_full=1-7"]
        );
    }

    #[test]
    fn every_usual_entry_must_carry_the_parameters() {
        let menu = GrubMenu::parse(MENU);
        assert_eq!(menu.usual_entries().len(), 2);
        assert_eq!(menu.faults(&[token("quiet", Some(""))]), [""; 0]);
        assert_eq!(
            menu.faults(&[token("nohz_full", Some("1-7"))]),
            ["\"Debian, with Linux 6.1\": nohz_full=1-7 is missing"]
        );
        assert_eq!(GrubMenu::parse("").faults(&plan()), ["it has no menuentry"]);
        let other = "menuentry 'Windows' {\n chainloader /x\n}\n";
        assert_eq!(GrubMenu::parse(other).faults(&[]), ["no menuentry loads a kernel of this host"]);
        let long = MENU.replace("quiet", &format!("quiet x={}", "y".repeat(2048)));
        assert!(GrubMenu::parse(&long).faults(&[])[0].contains("the kernel supports 2047"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[\\PC\n{}]{0,200}") {
            let menu = GrubMenu::parse(&text);
            let _ = (menu.default_entry(Some("1>2"), None), menu.faults(&plan()));
        }

        #[test]
        fn no_damaged_menu_panics(cut in 0usize..2000, from in 0usize..2000) {
            let kept: String = MENU.chars().take(cut).chain(MENU.chars().skip(from)).collect();
            let _ = GrubMenu::parse(&kept).faults(&plan());
        }
    }
}

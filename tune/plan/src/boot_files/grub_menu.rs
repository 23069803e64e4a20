//! grub.cfg, the menu that GRUB's generator writes: its entries, which of them boots, and whether each carries the
//! parameters that it should.

use super::grub::{self, LINUX, MenuSurroundings, Script, Statement, Word, bls_line, expand, line};
use lowlat_settings::change::BootToken;
use std::collections::BTreeMap;

/// Maximum length of a variable's value in a menu, in bytes, so that a hostile file cannot exhaust memory.
const BYTES_MAX: usize = 16 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrubMenu {
    script: Script,
    /// Its entries, in the order of the file, those of submenus and of every branch included.
    pub entries: Vec<MenuEntry>,
    /// The menu is filled from /boot/loader/entries when it is shown.
    pub has_blscfg: bool,
    variables: BTreeMap<String, String>,
}

/// An entry that boots something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MenuEntry {
    /// The script of /etc/grub.d that wrote it; empty if no comment names one.
    section: String,
    title: String,
    /// `--id`; empty if it has none.
    id: String,
    /// The commands that load its kernel; empty if it loads something else. Ubuntu's cloud images have two: the one
    /// used after a failed start without initial ramdisk, then the usual one.
    linux: Vec<Vec<Word>>,
}

impl MenuEntry {
    /// True if the entry is for recovery, and so must stay as the distribution made it.
    pub fn is_for_recovery(&self) -> bool {
        let title = self.title.to_lowercase();
        self.id.contains("-recovery-") || title.contains("(recovery mode)") || title.contains("rescue")
    }
}

impl GrubMenu {
    /// Parses a menu. Every text is valid; unknown parts are skipped.
    pub fn parse(text: &str) -> Self {
        let script = grub::parse(text);
        let mut menu = Self { script: Script::clone(&script), ..Self::default() };
        menu.collect(&script, None);
        menu
    }

    /// Adds the entries, assignments and kernels of a script, whichever branch they are in.
    fn collect(&mut self, script: &[Statement], mut entry: Option<&mut MenuEntry>) {
        for statement in script {
            match statement {
                Statement::If { arms, otherwise } => {
                    for part in arms.iter().map(|(_, body)| body).chain([otherwise]) {
                        self.collect(part, entry.as_deref_mut());
                    }
                }
                Statement::For { body, .. } | Statement::While { body, .. } => {
                    self.collect(body, entry.as_deref_mut());
                }
                Statement::Command { words, block, section } => {
                    self.collect_command(words, block.as_ref(), section, entry.as_deref_mut());
                }
                Statement::Function { .. } | Statement::Wrong { .. } => {}
            }
        }
    }

    fn collect_command(
        &mut self,
        words: &[Word],
        block: Option<&Script>,
        section: &str,
        entry: Option<&mut MenuEntry>,
    ) {
        let name = words.first().map(Word::written).unwrap_or_default();
        let list =
            |menu: &Self| expand(words, &mut menu.lookup()).list.into_iter().flatten().collect::<Vec<_>>();
        match (name.as_str(), block, entry) {
            ("submenu", Some(block), _) => self.collect(block, None),
            ("menuentry", Some(block), _) => {
                let list = list(self);
                let is_id = |word: &Word| ["--id", "$menuentry_id_option"].contains(&word.written().as_str());
                // `$menuentry_id_option` is "--id" if GRUB supports it: the id is the word before the brace.
                let id = if words.iter().any(is_id) { list.last().cloned() } else { None };
                let title = list.get(1).cloned().unwrap_or_default();
                let (section, id) = (section.to_owned(), id.unwrap_or_default());
                let mut entry = MenuEntry { section, title, id, linux: Vec::new() };
                self.collect(block, Some(&mut entry));
                self.entries.push(entry);
            }
            (name, _, Some(entry)) if LINUX.contains(&name) => entry.linux.push(words.to_vec()),
            ("blscfg", ..) => self.has_blscfg = true,
            ("set", _, None) => {
                let list = list(self);
                if let Some((name, value)) = list.get(1).and_then(|word| word.split_once('='))
                    && value.len() <= BYTES_MAX
                {
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
            }
            _ => {}
        }
    }

    fn lookup(&self) -> impl FnMut(&str) -> Option<String> {
        |name| Some(self.variables.get(name).cloned().unwrap_or_default())
    }

    /// The value that the menu itself assigns to a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Sets variables from the environment block, which is read before the menu.
    pub fn set_variables(&mut self, block: impl IntoIterator<Item = (String, String)>) {
        self.variables.extend(block);
    }

    /// The line of an entry of /boot/loader/entries, with variables replaced.
    pub fn line_of(&self, image: &str, options: &str) -> Option<String> {
        bls_line(image, options, &mut self.lookup())
    }

    /// The line that the kernel gets at the next boot; none if no entry loads a kernel.
    ///
    /// # Errors
    /// What it depends on, if that is not known.
    pub fn next_line(&self, surroundings: &MenuSurroundings<'_>) -> Result<Option<String>, String> {
        grub::next_line(&self.script, surroundings)
    }

    /// Every line that the kernel may get from an entry.
    fn lines(&self, entry: &MenuEntry) -> Vec<String> {
        entry.linux.iter().filter_map(|words| line(words, &mut self.lookup())).collect()
    }

    /// The entries that boot this host's kernels normally: those of the scripts `10_linux*` if comments name the
    /// scripts, without recovery entries.
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

    /// The entries that lack any of `words`, one sentence for each missing word.
    pub fn lacking(&self, words: &[String]) -> Vec<String> {
        self.faults_of_lines(|line| {
            let there = lowlat_host::cmdline::split(line);
            let lacks = words.iter().filter(|word| !there.contains(&word.as_str()));
            lacks.map(|word| format!("{word} is missing")).collect()
        })
    }

    /// Faults of a menu that should contain `tokens`; empty if it can replace the present one.
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

    /// Faults of the lines of all usual entries, each with the entry's title.
    fn faults_of_lines(&self, faults: impl Fn(&str) -> Vec<String>) -> Vec<String> {
        let of_entry = |entry: &&MenuEntry| -> Vec<String> {
            let all = self.lines(entry).into_iter().flat_map(|line| faults(&line));
            all.map(|fault| format!("{:?}: {fault}", entry.title)).collect()
        };
        self.usual_entries().iter().flat_map(of_entry).collect()
    }
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
    fn the_line_of_an_entry_is_the_kernels() {
        let menu = GrubMenu::parse(MENU);
        assert_eq!(
            menu.lines(&menu.entries[0])[0],
            "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1 ro quiet nohz_full=1-7 skew_tick=1 a=b \"dyndbg=file a +p\""
        );
    }

    #[test]
    fn both_lines_of_a_cloud_image_count() {
        let two = "menuentry 'Ubuntu' {\n\tif [ \"${initrdfail}\" = 1 ]; then\n\t  linux\t/a ro nohz_full=1\n\telse\n\t  \
            linux\t/a ro nohz_full=1-7 panic=-1\n\tfi\n}\n";
        let menu = GrubMenu::parse(two);
        assert_eq!(menu.lines(&menu.entries[0])[1], "BOOT_IMAGE=/a ro nohz_full=1-7 panic=-1");
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
            let _ = menu.faults(&plan());
        }

        #[test]
        fn no_damaged_menu_panics(cut in 0usize..2000, from in 0usize..2000) {
            let kept: String = MENU.chars().take(cut).chain(MENU.chars().skip(from)).collect();
            let _ = GrubMenu::parse(&kept).faults(&plan());
        }
    }
}

//! GRUB whose menu a generator writes: changes what the generator reads, and generates a new menu. Where it reads
//! /etc/default/grub.d (Debian, Ubuntu) that is lowlat's drop-in, elsewhere (Red Hat 7, SUSE, Arch) the line in
//! /etc/default/grub.

use super::{
    BootLoader, BootLoaderError, FileChange, files,
    grub_menu_file::{MenuFile, tuned_note},
};
use crate::Programs;
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_plan::boot_files::{self, defaults, drop_in};
use lowlat_settings::change::BootToken;
use lowlat_undo::State;

pub(super) const DEFAULTS: &str = "/etc/default/grub";
const DIRECTORY: &str = "/etc/default/grub.d";

#[derive(Debug)]
pub(super) struct GeneratedGrub {
    menu: MenuFile,
    reads_drop_ins: bool,
}

/// The files of the directory: the names of others, and lowlat's own with their content.
#[derive(Debug, Default)]
struct DropInFiles {
    others: Vec<String>,
    own: Vec<(String, String)>,
}

impl DropInFiles {
    fn read(root: &Root) -> Result<Self, BootLoaderError> {
        let mut directory = Self::default();
        for name in files::names(root, DIRECTORY)?.into_iter().filter(|name| drop_in::is_read(name)) {
            // Other files may contain anything; a file that is not text is not lowlat's.
            let text = files::text(root, &format!("{DIRECTORY}/{name}")).ok().flatten().unwrap_or_default();
            if drop_in::is_own(&text) {
                directory.own.push((name, text));
            } else {
                directory.others.push(name);
            }
        }
        Ok(directory)
    }

    fn tokens(&self) -> Vec<BootToken> {
        self.own.iter().fold(Vec::new(), |all, (_, text)| drop_in::joined(&all, &drop_in::tokens(text)))
    }

    fn name(&self) -> Option<&'static str> {
        drop_in::name_that_sorts_last(self.others.iter().map(String::as_str))
    }
}

/// Lowlat's drop-in, and the removal of those under earlier names.
fn drop_ins(root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
    let directory = DropInFiles::read(root)?;
    let Some(name) = directory.name() else {
        let last = directory.others.last().cloned().unwrap_or_default();
        let fault = "its name sorts after every name that lowlat uses for its drop-in";
        return Err(BootLoaderError::file(&format!("{DIRECTORY}/{last}"), fault, "rename it"));
    };
    let text = drop_in::text(&drop_in::joined(&directory.tokens(), tokens));
    let old = directory.own.iter().filter(|(own, _)| own != name);
    let mut changes: Vec<FileChange> = old
        .map(|(own, _)| FileChange { path: format!("{DIRECTORY}/{own}"), variable: None, new: State::Absent })
        .collect();
    let path = format!("{DIRECTORY}/{name}");
    changes.push(files::change(root, &path, text));
    Ok(changes)
}

impl GeneratedGrub {
    /// The generator reads drop-ins according to its script, or to the distribution if that cannot be read.
    pub(super) fn new(root: &Root, menu: MenuFile) -> Self {
        let texts = ["/usr/sbin/grub-mkconfig", "/usr/bin/grub-mkconfig"].map(|path| root.read(path));
        let reads_drop_ins = match texts.iter().find_map(Reading::known) {
            Some(text) => text.contains("default/grub.d"),
            None => root.exists("/etc/debian_version") && root.exists("/boot/grub"),
        };
        Self { menu, reads_drop_ins }
    }
}

impl BootLoader for GeneratedGrub {
    fn name(&self) -> &'static str {
        if self.reads_drop_ins { "GRUB (Debian)" } else { "GRUB" }
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        boot_files::check(tokens)?;
        if self.reads_drop_ins {
            return drop_ins(root, tokens);
        }
        let text = files::text(root, DEFAULTS)?.unwrap_or_default();
        let new = defaults::edit(&text, tokens)
            .map_err(|fault| BootLoaderError::defaults(DEFAULTS, &fault, tokens))?;
        Ok(vec![files::change(root, DEFAULTS, new)])
    }

    fn generated(&self, root: &Root, programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        let (tokens, words) = if self.reads_drop_ins {
            (DropInFiles::read(root)?.tokens(), Vec::new())
        } else {
            let text = files::text(root, DEFAULTS)?.unwrap_or_default();
            let words = defaults::plain_words(&text)
                .map_err(|fault| BootLoaderError::defaults(DEFAULTS, &fault, &[]))?;
            (Vec::new(), words)
        };
        let change =
            self.menu.generate(root, programs, |menu| [menu.faults(&tokens), menu.lacking(&words)].concat());
        change.map(|change| vec![change])
    }

    fn generator(&self, root: &Root) -> Option<String> {
        Some(self.menu.command(root))
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        self.menu.next_line(root, &[])
    }

    fn notes(&self, root: &Root, tokens: &[BootToken]) -> Vec<String> {
        let is_read = self.reads_drop_ins;
        let directory =
            if is_read { DropInFiles::read(root).unwrap_or_default() } else { DropInFiles::default() };
        let usual = drop_in::name_that_sorts_last([]);
        let name = directory.name().filter(|name| Some(*name) != usual).map(|name| {
            let last = directory.others.last().cloned().unwrap_or_default();
            format!("The drop-in is named {name}, so that it sorts after {DIRECTORY}/{last}.")
        });
        name.into_iter().chain(tuned_note(&self.menu, root, tokens)).collect()
    }
}

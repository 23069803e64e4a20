//! GRUB that takes its entries from /boot/loader/entries (Red Hat 8 and later, Fedora): the entries themselves, the
//! variable kernelopts where they refer to it, and the files from which future kernels get their line.

use super::{
    BootLoader, BootLoaderError, EntryLine, FileChange, files, grub_defaults,
    grub_menu_file::{MenuFile, tuned_note},
};
use crate::Programs;
use lowlat_host::Reading;
use lowlat_plan::boot_files::{
    self, defaults, entry,
    entry_order::{EntryFile, of_grub},
    grub_menu::GrubMenu,
    taken_off,
};
use lowlat_settings::change::BootToken;
use lowlat_sys::Root;

/// Where entries are.
pub(super) const ENTRIES: &str = "/boot/loader/entries";
/// From which kernels that are installed later get their line.
pub(super) const KERNEL_COMMAND_LINE: &str = "/etc/kernel/cmdline";
/// The variable in which Red Hat 8 keeps the line of all entries.
const KERNELOPTS: &str = "kernelopts";

#[derive(Debug)]
pub(super) struct GrubBls {
    pub(super) menu: MenuFile,
}

impl GrubBls {
    /// The variable of the entries' line, changed, and its new value.
    fn kernelopts(&self, root: &Root, tokens: &[BootToken]) -> Result<(FileChange, String), BootLoaderError> {
        let path = self.menu.grubenv(root);
        let fault = |fault: &str, advice: &str| BootLoaderError::File {
            path: path.clone(),
            fault: fault.to_owned(),
            advice: advice.to_owned(),
        };
        let Some(env) = self.menu.read_grubenv(root)? else {
            return Err(fault(
                "it is not there, and entries take their line from it",
                "make it with `grub2-editenv create`",
            ));
        };
        let menu = GrubMenu::parse(&files::text(root, &self.menu.path)?.unwrap_or_default());
        // Where the block does not set it, the menu does; a variable without root= would leave the host without one.
        let present = env.get(KERNELOPTS).filter(|value| !value.trim().is_empty());
        let Some(present) = present.or_else(|| menu.variable(KERNELOPTS).map(str::to_owned)) else {
            return Err(fault(
                "found no kernelopts, expected the line of the entries that refer to it",
                "set it with `grub2-mkconfig -o /etc/grub2.cfg`, which takes it from /etc/default/grub",
            ));
        };
        let new = boot_files::edited(&present, tokens);
        // Whether it fits, before anything is changed.
        env.with(KERNELOPTS, &new).map_err(|fault| BootLoaderError::grubenv(&path, &fault))?;
        Ok((files::variable(root, &path, KERNELOPTS, new.clone()), new))
    }

    fn entries(root: &Root) -> Result<(Vec<EntryFile>, Vec<EntryFile>), BootLoaderError> {
        Ok(files::entries(root, ENTRIES)?.into_iter().partition(|file| entry::is_usual(&file.id, &file.text)))
    }

    fn menu_with(&self, root: &Root, kernelopts: Option<&str>) -> Result<GrubMenu, BootLoaderError> {
        let (mut menu, _) = self.menu.read(root)?;
        menu.set_variables(kernelopts.map(|value| (KERNELOPTS.to_owned(), value.to_owned())));
        Ok(menu)
    }
}

/// The line that the kernel gets from an entry.
fn line(menu: &GrubMenu, text: &str) -> String {
    let image = entry::values(text, "linux").first().copied().unwrap_or_default();
    format!("BOOT_IMAGE={image} {}", menu.expand(&entry::options(text))).trim_end().to_owned()
}

impl BootLoader for GrubBls {
    fn name(&self) -> &'static str {
        "GRUB (Boot Loader Specification)"
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        boot_files::check(tokens).map_err(BootLoaderError::Token)?;
        let (usual, _) = Self::entries(root)?;
        if usual.is_empty() {
            return Err(BootLoaderError::File {
                path: ENTRIES.to_owned(),
                fault: "found entries for rescue alone, expected one that boots a kernel in the usual way"
                    .to_owned(),
                advice: "install a kernel".to_owned(),
            });
        }
        let refers = |file: &EntryFile| entry::refers_to(&file.text, KERNELOPTS);
        let mut changes = Vec::new();
        let mut kernelopts = None;
        if usual.iter().any(refers) {
            let (change, value) = self.kernelopts(root, tokens)?;
            changes.push(change);
            kernelopts = Some(value);
        }
        let menu = self.menu_with(root, kernelopts.as_deref())?;
        let off = taken_off(tokens);
        for file in &usual {
            // What an entry says beside the variable would come behind it and win.
            let new = entry::edit(&file.text, if refers(file) { &off } else { tokens });
            let path = format!("{ENTRIES}/{}.conf", file.id);
            files::check_length(&path, &line(&menu, &new))?;
            changes.push(files::change(root, &path, new));
        }
        changes.extend(future_kernels(root, tokens)?);
        Ok(changes)
    }

    fn generated(&self, _root: &Root, _programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        Ok(Vec::new())
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        let next = || -> Result<Option<String>, BootLoaderError> {
            let (menu, env) = self.menu.read(root)?;
            let saved = |name: &str| env.as_ref().and_then(|env| env.get(name));
            let (next, saved) = (saved("next_entry"), saved("saved_entry"));
            let wanted = menu.wanted(next.as_deref(), saved.as_deref());
            let entries = files::entries(root, ENTRIES)?;
            Ok(of_grub(&entries, wanted).map(|file| line(&menu, &file.text)))
        };
        files::as_reading(next())
    }

    fn entry_lines(&self, root: &Root) -> Vec<EntryLine> {
        let entries = files::entries(root, ENTRIES).unwrap_or_default();
        let line = |file: EntryFile| {
            let path = format!("{ENTRIES}/{}.conf", file.id);
            let path = root.real_path(&path).into_known().unwrap_or(path);
            EntryLine { path, options: entry::options(&file.text) }
        };
        entries.into_iter().map(line).collect()
    }

    fn notes(&self, root: &Root, tokens: &[BootToken]) -> Vec<String> {
        let (_, left) = Self::entries(root).unwrap_or_default();
        let note = |file: &EntryFile| {
            let path = format!("{ENTRIES}/{}.conf", file.id);
            if entry::refers_to(&file.text, KERNELOPTS) {
                format!(
                    "{path} is left alone, but takes its line from the variable kernelopts, which is changed."
                )
            } else {
                format!("{path} is left alone, so that it starts as before.")
            }
        };
        left.iter()
            .map(note)
            .chain(tuned_note(&self.menu, root, tokens))
            .chain(defaults_note(root, tokens))
            .collect()
    }
}

/// The files from which kernels get their line that are installed later. The order matters: where /etc/kernel/cmdline is
/// older than /etc/default/grub, installing a kernel has it written anew.
fn future_kernels(root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
    let mut changes = Vec::new();
    if let Some(text) = files::text(root, grub_defaults::PATH)?
        && let Ok(new) = defaults::edit_for_every_entry(&text, tokens)
    {
        changes.push(files::change(root, grub_defaults::PATH, new));
    }
    if let Some(text) = files::text(root, KERNEL_COMMAND_LINE)? {
        changes.push(files::change(root, KERNEL_COMMAND_LINE, boot_files::edited_file(&text, tokens)));
    }
    Ok(changes)
}

/// Entries boot without /etc/default/grub, so a line there that cannot be edited is told, and stops nothing.
fn defaults_note(root: &Root, tokens: &[BootToken]) -> Option<String> {
    let text = files::text(root, grub_defaults::PATH).ok()??;
    let fault = defaults::edit_for_every_entry(&text, tokens).err()?;
    Some(format!("{} is left alone ({fault}): kernels installed later may go without.", grub_defaults::PATH))
}

//! GRUB with entries in /boot/loader/entries (Red Hat 8 and later, Fedora): the entries, the variable
//! kernelopts that they may refer to, and the files that give kernels installed later their command line.

use super::{
    BootLoader, BootLoaderError, EntryLine, FileChange, files, grub_generated,
    grub_menu_file::{MenuFile, tuned_note},
};
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_plan::boot_files::{
    self, defaults, entry, entry_order::EntryFile, grub_menu::GrubMenu, taken_off,
};
use lowlat_settings::change::BootToken;

pub(super) const ENTRIES: &str = "/boot/loader/entries";
/// The variable with the command line of all entries on Red Hat 8.
const KERNELOPTS: &str = "kernelopts";

#[derive(Debug)]
pub(super) struct GrubBls {
    pub(super) menu: MenuFile,
}

impl GrubBls {
    /// The change of the variable kernelopts, and its new value.
    fn kernelopts(&self, root: &Root, tokens: &[BootToken]) -> Result<(FileChange, String), BootLoaderError> {
        let path = self.menu.grubenv(root);
        let fault = |fault: &str, advice: &str| BootLoaderError::file(&path, fault, advice);
        let Some(env) = self.menu.read_grubenv(root)? else {
            return Err(fault(
                "it is missing, and boot entries refer to it",
                "create it with `grub2-editenv create`",
            ));
        };
        let menu = GrubMenu::parse(&files::text(root, &self.menu.path)?.unwrap_or_default());
        // If the block does not set it, the menu does. With an empty value the host would boot without root=.
        let present = env.get(KERNELOPTS).filter(|value| !value.trim().is_empty());
        let Some(present) = present.or_else(|| menu.variable(KERNELOPTS).map(str::to_owned)) else {
            return Err(fault(
                "found no kernelopts, expected the command line of the entries that refer to it",
                "set it with `grub2-mkconfig -o /etc/grub2.cfg`, which reads /etc/default/grub",
            ));
        };
        let new = boot_files::edited(&present, tokens);
        // Checks that it fits before anything is changed.
        env.with(KERNELOPTS, &new).map_err(|fault| BootLoaderError::grubenv(&path, &fault))?;
        Ok((files::variable(root, &path, KERNELOPTS, new.clone()), new))
    }

    fn entries(root: &Root) -> Result<(Vec<EntryFile>, Vec<EntryFile>), BootLoaderError> {
        Ok(files::entries(root, ENTRIES)?.into_iter().partition(|file| entry::is_usual(&file.id, &file.text)))
    }
}

fn line(menu: &GrubMenu, text: &str) -> String {
    let image = entry::values(text, "linux").first().copied().unwrap_or_default();
    menu.line_of(image, &entry::options(text)).unwrap_or_default()
}

impl BootLoader for GrubBls {
    fn name(&self) -> &'static str {
        "GRUB (Boot Loader Specification)"
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        boot_files::check(tokens)?;
        let (usual, _) = Self::entries(root)?;
        if usual.is_empty() {
            let fault = "found rescue entries only, expected one for normal boots";
            return Err(BootLoaderError::file(ENTRIES, fault, "install a kernel"));
        }
        let refers = |file: &EntryFile| entry::refers_to(&file.text, KERNELOPTS);
        let mut changes = Vec::new();
        let mut kernelopts = None;
        if usual.iter().any(refers) {
            let (change, value) = self.kernelopts(root, tokens)?;
            changes.push(change);
            kernelopts = Some(value);
        }
        let (mut menu, _) = self.menu.read(root)?;
        menu.set_variables(kernelopts.map(|value| (KERNELOPTS.to_owned(), value)));
        let off = taken_off(tokens);
        for file in &usual {
            // Words that an entry adds to the variable follow it and win.
            let new = entry::edit(&file.text, if refers(file) { &off } else { tokens });
            let path = format!("{ENTRIES}/{}.conf", file.id);
            files::check_length(&path, &line(&menu, &new))?;
            changes.push(files::change(root, &path, new));
        }
        changes.extend(future_kernels(root, tokens)?);
        Ok(changes)
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        match files::entries(root, ENTRIES) {
            Ok(entries) => self.menu.next_line(root, &entries),
            Err(error) => files::as_reading(Err(error)),
        }
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
                    "{path} is unchanged, but reads its command line from the variable kernelopts, which changes."
                )
            } else {
                format!("{path} is unchanged, so it boots as before.")
            }
        };
        left.iter()
            .map(note)
            .chain(tuned_note(&self.menu, root, tokens))
            .chain(defaults_note(&self.menu, root, tokens))
            .collect()
    }
}

/// The files that give kernels installed later their command line. The order matters: if /etc/kernel/cmdline
/// is older than /etc/default/grub, installing a kernel rewrites it.
fn future_kernels(root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
    let mut changes = Vec::new();
    if let Some(text) = files::text(root, grub_generated::DEFAULTS)?
        && let Ok(new) = defaults::edit_for_every_entry(&text, tokens)
    {
        changes.push(files::change(root, grub_generated::DEFAULTS, new));
    }
    changes.extend(files::later_kernels(root, tokens)?);
    Ok(changes)
}

/// The note on programs that write the entries again. Entries boot without /etc/default/grub, so a line there that
/// cannot be edited is no error.
fn defaults_note(menu: &MenuFile, root: &Root, tokens: &[BootToken]) -> Option<String> {
    let (path, program) = (grub_generated::DEFAULTS, menu.generator(root));
    let text = match files::text(root, path) {
        Ok(Some(text)) => text,
        Ok(None) => {
            return Some(format!(
                "{path} is missing: `{program}` may write the entries again without these parameters."
            ));
        }
        Err(_) => return None,
    };
    Some(match defaults::edit_for_every_entry(&text, tokens) {
        Ok(_) => format!(
            "`{program}` and kernels installed later take their parameters from {path}, and from {} if it exists: \
             they are set there too.",
            files::KERNEL_COMMAND_LINE
        ),
        Err(fault) => format!(
            "{path} is unchanged ({fault}): `{program}` may write the entries again without these parameters, and \
             kernels installed later may boot without them."
        ),
    })
}

//! GRUB whose generator reads only /etc/default/grub (Red Hat 7, SUSE, Arch): changes that file's line, and generates a
//! new menu.

use super::{
    BootLoader, BootLoaderError, FileChange, files,
    grub_menu_file::{MenuFile, tuned_note},
};
use crate::Programs;
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_plan::boot_files::{self, defaults};
use lowlat_settings::change::BootToken;

pub(super) const PATH: &str = "/etc/default/grub";

#[derive(Debug)]
pub(super) struct GrubDefaults {
    pub(super) menu: MenuFile,
}

impl BootLoader for GrubDefaults {
    fn name(&self) -> &'static str {
        "GRUB"
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        boot_files::check(tokens)?;
        let text = files::text(root, PATH)?.unwrap_or_default();
        let new =
            defaults::edit(&text, tokens).map_err(|fault| BootLoaderError::defaults(PATH, &fault, tokens))?;
        Ok(vec![files::change(root, PATH, new)])
    }

    fn generated(&self, root: &Root, programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        let text = files::text(root, PATH)?.unwrap_or_default();
        let words =
            defaults::plain_words(&text).map_err(|fault| BootLoaderError::defaults(PATH, &fault, &[]))?;
        let faults =
            |menu: &_| [boot_files::grub_menu::GrubMenu::faults(menu, &[]), menu.lacking(&words)].concat();
        self.menu.generate(root, programs, faults).map(|change| vec![change])
    }

    fn generator(&self, root: &Root) -> Option<String> {
        Some(self.menu.command(root))
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        self.menu.next_line(root, &[])
    }

    fn notes(&self, root: &Root, tokens: &[BootToken]) -> Vec<String> {
        tuned_note(&self.menu, root, tokens).into_iter().collect()
    }
}

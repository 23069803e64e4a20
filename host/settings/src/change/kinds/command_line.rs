//! The kernel's command line, all parameters at once.

use crate::change::{
    BootToken, Kind, Mechanism, Part,
    grammar::{BOOT_NAME, BOOT_VALUE, misfit},
};

pub(super) struct CommandLineChange<'a> {
    pub(super) tokens: &'a [BootToken],
}

impl Kind for CommandLineChange<'_> {
    fn name(&self) -> String {
        "the command line".to_owned()
    }

    fn misfit(&self, _after: &str) -> Option<String> {
        self.tokens.iter().find_map(BootToken::misfit)
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::BootLoader { tokens: self.tokens }
    }

    fn part(&self) -> Part {
        Part::Boot
    }

    fn how_to_find(&self) -> String {
        "to find the source: `grep -rs WORD /etc/default/grub* /etc/grub.d /etc/kernel /boot/loader /boot/grub*`, \
         and check the boot menu for edits"
            .to_owned()
    }
}

impl BootToken {
    /// The reason why the name or the value does not fit its type; none if both fit.
    pub(crate) fn misfit(&self) -> Option<String> {
        let value = self.value.as_deref().unwrap_or_default();
        misfit(&[(&BOOT_NAME, &self.name), (&BOOT_VALUE, value)])
    }
}

//! The kernel's command line, all parameters at once.

use crate::change::{
    BootToken, Kind, KindFacts, Mechanism, Part,
    grammar::{BOOT_NAME, BOOT_VALUE, misfit},
};

pub(super) struct CommandLineChange<'a> {
    pub(super) tokens: &'a [BootToken],
}

impl Kind for CommandLineChange<'_> {
    fn facts(&self) -> KindFacts<'_> {
        KindFacts {
            part: Part::Boot,
            how_to_find:
                "to find the source: `grep -rs WORD /etc/default/grub* /etc/grub.d /etc/kernel /boot/loader \
                          /boot/grub*`, and check the boot menu for edits"
                    .to_owned(),
            ..KindFacts::of(
                "the command line",
                Mechanism::BootLoader { tokens: self.tokens },
                &[],
                &BOOT_VALUE,
            )
        }
    }

    fn misfit(&self, _after: &str) -> Option<String> {
        self.tokens.iter().find_map(BootToken::misfit)
    }
}

impl BootToken {
    /// The reason why the name or the value does not fit its type; none if both fit.
    pub(crate) fn misfit(&self) -> Option<String> {
        let value = self.value.as_deref().unwrap_or_default();
        misfit(&[(&BOOT_NAME, &self.name), (&BOOT_VALUE, value)])
    }
}

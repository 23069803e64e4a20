//! Onload on a Solarflare card: releases, and the vendor's programs in the order in which they are needed.

mod procedure;
mod release;
mod remains;

pub use procedure::{
    HELPERS, Installed, Procedure, Refusal, Step, VARIANT, boot_program, build_demos, check_session, demos,
    demos_folder, demos_makefile, firmware, firmware_variant, install, install_packages, is_card_driver,
    is_x4, running_variant, uninstall,
};
pub use release::{KernelFit, Release, fit};
pub use remains::{InstallSurroundings, OnloadRemains, USER};

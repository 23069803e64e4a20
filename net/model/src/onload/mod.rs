//! Onload on a Solarflare card: releases, and the vendor's programs in the order in which they are needed.

mod procedure;
mod release;

pub use procedure::{
    DEMOS, HELPERS, Procedure, Refusal, Step, VARIANT, build_demos, demos_folder, firmware, firmware_variant,
    install, session_over, uninstall,
};
pub use release::{KernelFit, Release};

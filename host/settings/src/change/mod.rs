//! Changes of settings: the proposals of rows, and the kinds of changes (`kinds/`).

pub mod boot;
pub mod cache;
pub mod files;
pub mod grammar;
pub mod irq;
mod kind;
mod kinds;
pub mod kthread;
pub mod memory;
pub mod processes;
mod proposal;
pub mod servers;
pub mod service;
pub mod sysctl;
mod target;
pub mod tuned;

pub use kind::{Ethtool, Field, Kind, KindFacts, Lasting, Mechanism, MissingValue, Part, Rival, Wire};
pub use kinds::nic;
pub use proposal::{Proposal, ProposedChange};
pub use target::{BootToken, Change, Moment, Target, WhyLeftOut};

use crate::{Context, Layer, Setting};

/// The change of a row without a specific one, by its layer.
///
/// Boot rows change their parameter, sysctls their key, rows of debugfs, sysfs, memory and kernel threads
/// the files that they read, services their units. Rows of other layers need a specific change.
pub fn by_layer(context: &Context<'_>, setting: &Setting) -> Proposal {
    match setting.layer {
        Layer::Boot => boot::parameter(context, setting),
        Layer::Sysctl => sysctl::key(context, setting),
        Layer::Debugfs | Layer::Sysfs | Layer::Memory | Layer::Kthread => files::all(context, setting),
        Layer::Service => service::stop(context, setting),
        Layer::Firmware => Proposal::not(
            WhyLeftOut::Firmware,
            format!(
                "set {} to {} in the firmware setup; the OS cannot change it",
                setting.name,
                setting.want(context.profile).text(context).unwrap_or_default()
            ),
        ),
        Layer::Kernel => {
            Proposal::not(WhyLeftOut::Kernel, "decided when the kernel was built; boot another one")
        }
        Layer::Readiness => {
            Proposal::not(WhyLeftOut::StateOfTheMoment, "this is a momentary state, not a setting")
        }
        Layer::Irq | Layer::Nic => {
            Proposal::not(WhyLeftOut::Hardware, "the hardware or its driver decides this; it cannot be set")
        }
    }
}

//! How rows are changed that say nothing of it themselves.

use super::{Proposal, WhyLeftOut, boot, files, service, sysctl};
use crate::{Context, Layer, Setting};

/// A boot row is its parameter, a sysctl its key, a row of debugfs, sysfs, memory or kernel threads the files that it
/// reads, a service its units. Rows of the other layers must say how they are changed.
pub fn by_layer(context: &Context<'_>, setting: &Setting) -> Proposal {
    match setting.layer {
        Layer::Boot => boot::parameter(context, setting),
        Layer::Sysctl => sysctl::key(context, setting),
        Layer::Debugfs | Layer::Sysfs | Layer::Memory | Layer::Kthread => files::all(context, setting),
        Layer::Service => service::stop(context, setting),
        Layer::Firmware => Proposal::not(
            WhyLeftOut::Firmware,
            format!(
                "set {} to {} in the firmware's set-up; the OS cannot reach it",
                setting.name,
                setting.want(context.profile).text(context).unwrap_or_default()
            ),
        ),
        Layer::Readiness => {
            Proposal::not(WhyLeftOut::StateOfTheMoment, "a state of the moment: it is looked at, not set")
        }
        Layer::Irq | Layer::Nic => Proposal::not(
            WhyLeftOut::Hardware,
            "decided by the hardware or its driver, not by a value that can be written",
        ),
    }
}

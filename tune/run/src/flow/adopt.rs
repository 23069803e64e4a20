//! Adopts a plan that came with a copy of another host's disk.

use super::{FlowError, Site, log_check};
use lowlat_host_run::snapshot::machine_id_digest;
use lowlat_plan::HostMark;

/// The result of an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// No plan is in force.
    NothingInForce,
    /// The plan in force was made for this host.
    Already,
    /// The plan counts as made for this host from now on.
    Now,
}

/// Marks the plan in force as made for this host. Its changes are not applied: that happens at boot.
pub fn adopt(site: &Site) -> Result<Adopted, FlowError> {
    if site.state.in_force()?.is_none() {
        return Ok(Adopted::NothingInForce);
    }
    // Read again under the log's lock: a rollback may have held it.
    let log = site.open_log()?;
    let Some((in_force, mut plan)) = site.state.in_force()? else { return Ok(Adopted::NothingInForce) };
    log_check::refuse(site, &log)?;
    let marks =
        HostMark { machine_id_digest: machine_id_digest(&site.root), ..HostMark::of(&site.snapshot()) };
    if !plan.host.is_other_machine(&marks) {
        return Ok(Adopted::Already);
    }
    plan.host = marks;
    site.state.put_in_force(&in_force, &plan)?;
    site.seal(&log)?;
    Ok(Adopted::Now)
}

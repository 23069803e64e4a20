//! Choice of CPUs for a request.

use crate::{CpuChoice, Mode, Place, Refusal, Request, Surroundings, order};
use lowlat_host::{CpuId, CpuSet, HostSnapshot, Reading};

/// Returns the CPUs of threads or copies, in the order in which they are filled.
///
/// # Errors
/// [`Refusal`] if CPUs are missing, forbidden, too few, or share a core where they must not.
pub fn cpus(request: &Request, host: &HostSnapshot, around: &Surroundings) -> Result<Vec<CpuId>, Refusal> {
    let online = &host.topology.online;
    let named = request.thread_map.cpus();
    let listed = match &request.cpus {
        CpuChoice::List(list) => list.union(&named),
        CpuChoice::Place(_) => named.clone(),
    };
    let missing = listed.difference(online);
    if !missing.is_empty() {
        return Err(Refusal(format!(
            "cannot run on {missing:#}: missing or offline\nhint: {online:#} are online"
        )));
    }
    let forbidden = listed.difference(&around.allowed);
    if !forbidden.is_empty() {
        return Err(Refusal(format!(
            "cannot run on {forbidden:#}: outside the cpuset of this process, {:#}\nhint: start lowlat in another control \
             group, for example with `systemd-run --scope`",
            around.allowed
        )));
    }
    let cpus = match &request.cpus {
        CpuChoice::List(list) => list.iter().collect(),
        CpuChoice::Place(place) => {
            let free = candidates(place, host, around)?.difference(&named);
            let mut ordered = order(place, &host.topology, &free);
            if !request.is_open_ended() {
                ordered.truncate(request.busy_count() as usize);
            }
            ordered
        }
    };
    if request.mode == Mode::Spin {
        check_spinners(request, host, &cpus)?;
    }
    Ok(cpus)
}

fn check_spinners(request: &Request, host: &HostSnapshot, cpus: &[CpuId]) -> Result<(), Refusal> {
    let set: CpuSet = cpus.iter().copied().collect();
    let count = request.busy_count();
    if set.len() < count as usize {
        let what = if request.copies.is_some() { "spinning copies" } else { "spinning threads" };
        return Err(Refusal(format!(
            "cannot run {count} {what} on {set:#}: each needs a CPU\nhint: add CPUs, or try --mode interrupt and measure"
        )));
    }
    let used: CpuSet = cpus.iter().copied().take(count as usize).collect();
    let spinning = used.union(&request.thread_map.cpus());
    // Copies are meant to fill a host, siblings included, which only deserves a warning.
    match shared_core(host, &spinning).filter(|_| request.copies.is_none()) {
        Some(core) => Err(Refusal(format!(
            "cannot run two spinning threads on {core:#}: they share a core\nhint: choose CPUs of different cores"
        ))),
        None => Ok(()),
    }
}

/// Returns the first core that has several of the CPUs, with those.
pub fn shared_core(host: &HostSnapshot, cpus: &CpuSet) -> Option<CpuSet> {
    let mut cores = host.topology.cores.iter().map(|core| core.cpus.intersection(cpus));
    cores.find(|core| core.len() > 1)
}

/// Returns the CPUs among which a rule chooses: the isolated ones if there are any.
fn candidates(place: &Place, host: &HostSnapshot, around: &Surroundings) -> Result<CpuSet, Refusal> {
    let usable = host.topology.online.intersection(&around.allowed);
    let isolated = around.of_role.clone().unwrap_or_else(|| host.cpus_isolated()).intersection(&usable);
    let near = match place {
        Place::Near(name) => near(name, host)?,
        _ => None,
    };
    let Some((name, node, on_node)) = near else {
        return Ok(if isolated.is_empty() { usable } else { isolated });
    };
    let choices = [isolated.intersection(&on_node), usable.intersection(&on_node)];
    let found = choices.into_iter().find(|cpus| !cpus.is_empty());
    found.ok_or_else(|| {
        Refusal(format!(
            "cannot choose CPUs near {name}: no CPU of NUMA node {node} is available\nhint: name CPUs with --cpus"
        ))
    })
}

/// Returns why no CPUs are nearest to an interface; `None` if some are, or if all CPUs are near it.
pub fn near_nothing(name: &str, host: &HostSnapshot) -> Option<String> {
    let nic = host.nics.iter().find(|nic| nic.name == name)?;
    let why = match &nic.node {
        Reading::Known(node) if *node >= 0 || host.topology.nodes.len() == 1 => return None,
        Reading::Known(_) => "its device has no NUMA node".to_owned(),
        Reading::Absent => "it has no device".to_owned(),
        unread => format!("its NUMA node was not read: {unread}"),
    };
    Some(format!("no CPU is nearer to {name} than others: {why}. The CPUs were chosen as for compact"))
}

/// Returns the interface's node with its CPUs; `None` if it is near all of them.
fn near<'a>(name: &'a str, host: &HostSnapshot) -> Result<Option<(&'a str, u32, CpuSet)>, Refusal> {
    let Some(nic) = host.nics.iter().find(|nic| nic.name == name) else {
        let names: Vec<&str> = host.nics.iter().map(|nic| nic.name.as_str()).collect();
        let known = if names.is_empty() { "none that was read".to_owned() } else { names.join(", ") };
        return Err(Refusal(format!(
            "cannot choose CPUs near {name}: no such interface\nhint: this host has {known}"
        )));
    };
    let id = nic.node.known().and_then(|node| u32::try_from(*node).ok());
    let node = id.and_then(|id| host.topology.nodes.iter().find(|node| node.id == id));
    Ok(node.map(|node| (name, node.id, node.cpus.clone())))
}

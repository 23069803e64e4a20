//! A plan carried out on a snapshot: what the host would show afterwards, after a reboot.

use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    cmdline::CommandLine,
    snapshot::{HugePages, SchedPolicy, SysctlAssignment, sysctl_path},
};
use lowlat_plan::Plan;
use lowlat_settings::change::{BootToken, Change, Target};

/// Carries every change out.
pub fn apply(plan: &Plan, host: &mut HostSnapshot) {
    for change in &plan.changes {
        one(change, host);
    }
    // After the reboot interrupts are where they were asked to be.
    for irq in &mut host.interrupts.irqs {
        if plan
            .changes
            .iter()
            .any(|c| matches!(&c.target, Target::IrqAffinity { irq: n, .. } if *n == irq.number))
        {
            irq.effective_affinity = irq.affinity.clone();
        }
    }
}

fn cpus(text: &str) -> CpuSet {
    CpuSet::parse_list(text).unwrap_or_else(|error| panic!("{error}"))
}

fn one(change: &Change, host: &mut HostSnapshot) {
    let after = change.after.as_str();
    match &change.target {
        Target::CommandLine { tokens } => boot(tokens, after, host),
        Target::Sysctl { key } => {
            host.files.insert(sysctl_path(key), Reading::Known(after.to_owned()));
        }
        Target::File { path } => file(path, after, host),
        Target::IdleState { name, cpus } => {
            for state in host.cpu.idle_states.iter_mut().filter(|state| state.name == *name) {
                state.cpus_enabled = state.cpus_enabled.difference(cpus);
            }
        }
        Target::HugePages { node, size_bytes } => pages(host, *node, *size_bytes, after),
        Target::IrqAffinity { irq, .. } => {
            for found in host.interrupts.irqs.iter_mut().filter(|found| found.number == *irq) {
                found.affinity = Reading::Known(cpus(after));
            }
        }
        Target::DefaultIrqAffinity => host.interrupts.default_affinity = Reading::Known(cpus(after)),
        Target::KernelThreadAffinity { pid, .. } => {
            for thread in host.tasks.kernel_threads.iter_mut().filter(|thread| thread.pid == *pid) {
                assert!(!thread.is_bound, "{} refuses to be moved", thread.comm);
                thread.cpus_allowed = Reading::Known(cpus(after));
            }
        }
        Target::KernelThreadScheduling { pid, .. } => {
            for thread in host.tasks.kernel_threads.iter_mut().filter(|thread| thread.pid == *pid) {
                thread.policy = SchedPolicy::Fifo;
                thread.rt_priority =
                    after.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a priority");
            }
        }
        Target::WorkqueueCpus { name: None } => host.tasks.workqueue_cpus = Reading::Known(cpus(after)),
        Target::WorkqueueCpus { name: Some(name) } => {
            for queue in host.tasks.workqueues.iter_mut().filter(|queue| queue.name == *name) {
                queue.cpus = Reading::Known(cpus(after));
            }
        }
        Target::Service { unit } => {
            let unit = host.services.units.get_mut(unit).expect("a unit of the host");
            let (active, boot) = after.split_once(", ").unwrap_or((after, ""));
            unit.active = Reading::Known(active.into());
            if !boot.is_empty() {
                unit.enablement = Reading::Known(boot.into());
            }
        }
        Target::TunedProfile => {
            let (profile, mode) = after.split_once(' ').expect("profile and mode");
            host.services.tuned.profile = Reading::Known(profile.into());
            host.services.tuned.mode = Reading::Known(mode.into());
        }
        Target::FileKey { path, key } => file_key(path, key, after, host),
        Target::OwnedFile { path } => owned_file(path, after, host),
        nic => interface(nic, after, host),
    }
}

/// What a kernel started with the line shows.
fn boot(tokens: &[BootToken], line: &str, host: &mut HostSnapshot) {
    host.kernel.command_line = Reading::Known(CommandLine::parse(line));
    for token in tokens {
        let value = token.value.as_deref().unwrap_or_default();
        let shown = match token.name.as_str() {
            "isolcpus" => {
                let list = value.trim_start_matches("managed_irq,").trim_start_matches("domain,");
                host.topology.isolated = Reading::Known(cpus(list));
                continue;
            }
            "nohz_full" => {
                host.topology.nohz_full = Reading::Known(cpus(value));
                continue;
            }
            "transparent_hugepage" => {
                host.memory.thp_enabled = Reading::Known(value.into());
                continue;
            }
            "rcupdate.rcu_normal_after_boot" => ("/sys/kernel/rcu_normal", "1"),
            "cpuidle.off" => ("/sys/module/cpuidle/parameters/off", "1"),
            "ipv6.disable" => ("/sys/module/ipv6/parameters/disable", "1"),
            "mce" => ("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "1"),
            "nmi_watchdog" => ("/proc/sys/kernel/nmi_watchdog", "0"),
            "nosoftlockup" => ("/proc/sys/kernel/soft_watchdog", "0"),
            "rcutree.nohz_full_patience_delay" => {
                ("/sys/module/rcutree/parameters/nohz_full_patience_delay", value)
            }
            "rcu_nocbs" => {
                for thread in &mut host.tasks.kernel_threads {
                    if thread.comm.starts_with("kthreadd") {
                        let mut offload = thread.clone();
                        offload.comm = "rcuop/1".into();
                        offload.pid = 1_000_000;
                        offload.cpus_allowed = Reading::Known(CpuSet::of(0));
                        host.tasks.kernel_threads.push(offload);
                        break;
                    }
                }
                continue;
            }
            _ => continue,
        };
        host.files.insert(shown.0.into(), Reading::Known(shown.1.into()));
    }
}

fn file(path: &str, after: &str, host: &mut HostSnapshot) {
    let known = Reading::Known(after.to_owned());
    let part = |at: usize| path.split('/').nth(at).unwrap_or_default();
    match path {
        "/sys/kernel/mm/transparent_hugepage/enabled" => host.memory.thp_enabled = known,
        "/sys/kernel/mm/transparent_hugepage/defrag" => host.memory.thp_defrag = known,
        "/sys/kernel/mm/ksm/run" => host.memory.ksm_run = Reading::Known(after.parse().expect("a number")),
        "/sys/devices/system/clocksource/clocksource0/current_clocksource" => host.cpu.clocksource = known,
        _ if path.starts_with("/sys/block/") => {
            for disk in host.disks.iter_mut().filter(|disk| disk.name == part(3)) {
                disk.scheduler = known.clone();
            }
        }
        _ if path.ends_with("/scaling_governor") => {
            let cpu = part(5).trim_start_matches("cpu").parse().expect("a CPU");
            for policy in host.cpu.frequency.iter_mut().filter(|policy| policy.cpus.contains(cpu)) {
                policy.governor = known.clone();
            }
        }
        _ => {
            assert!(host.files.contains_key(path), "{path} is none of the host's files");
            host.files.insert(path.to_owned(), known);
        }
    }
}

fn pages(host: &mut HostSnapshot, node: Option<u32>, size_bytes: u64, after: &str) {
    let is_meant = |pool: &&mut HugePages| pool.node == node && pool.size_bytes == size_bytes;
    for pool in host.memory.huge_pages.iter_mut().filter(is_meant) {
        pool.total = Reading::Known(after.parse().expect("a count"));
    }
}

fn file_key(path: &str, key: &str, after: &str, host: &mut HostSnapshot) {
    if path == "/etc/tuned/tuned-main.conf" {
        assert_eq!(key, "rollback");
        host.services.tuned.rollback = Reading::Known(after.to_owned());
        return;
    }
    let text = host.file(path);
    let kept = text.text().lines().filter(|line| !line.trim_start().starts_with(&format!("{key}=")));
    let lines: Vec<String> = kept.map(str::to_owned).chain([format!("{key}={after}")]).collect();
    host.files.insert(path.to_owned(), Reading::Known(lines.join("\n")));
}

fn owned_file(path: &str, after: &str, host: &mut HostSnapshot) {
    if path.contains("irqbalance") {
        let list = after.lines().find_map(|line| line.strip_prefix("Environment=IRQBALANCE_BANNED_CPULIST="));
        host.services.irqbalance.banned_cpus = Reading::Known(cpus(list.expect("the list")));
        return;
    }
    let lines = after.lines().enumerate().filter_map(|(at, line)| {
        let (key, value) = line.split_once(" = ")?;
        let line = u32::try_from(at + 1).ok()?;
        Some(SysctlAssignment { path: path.to_owned(), line, key: key.into(), value: value.into() })
    });
    host.kernel.sysctl_files.extend(lines);
}

fn interface(target: &Target, after: &str, host: &mut HostSnapshot) {
    let name = match target {
        Target::NicChannels { nic, .. }
        | Target::NicCoalescing { nic, .. }
        | Target::NicFeature { nic, .. }
        | Target::NicRps { nic, .. }
        | Target::NicXps { nic, .. } => nic,
        other => panic!("{other:?} is carried out nowhere"),
    };
    let nic = host.nics.iter_mut().find(|nic| nic.name == *name).expect("an interface of the host");
    match target {
        Target::NicChannels { field, .. } => {
            let Reading::Known(channels) = &mut nic.channels else { panic!("no channels") };
            let count = after.parse().expect("a count");
            if field == "combined" { channels.combined = count } else { channels.rx = count }
        }
        Target::NicCoalescing { field, .. } => {
            let Reading::Known(coalescing) = &mut nic.coalescing else { panic!("no coalescing") };
            match field.as_str() {
                "rx-usecs" => coalescing.rx_usecs = after.parse().ok(),
                _ => coalescing.adaptive_rx = Some(after == "on"),
            }
        }
        Target::NicFeature { feature, .. } => {
            let Reading::Known(offloads) = &mut nic.offloads else { panic!("no offloads") };
            offloads.insert(feature.clone(), after == "on");
        }
        Target::NicRps { queue, .. } | Target::NicXps { queue, .. } => {
            for mask in nic.rps.iter_mut().chain(&mut nic.xps).filter(|mask| mask.queue == *queue) {
                mask.cpus = Reading::Known(cpus(after));
            }
        }
        _ => {}
    }
}

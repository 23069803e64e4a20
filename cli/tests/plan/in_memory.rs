//! A plan applied to a snapshot, which then shows the host after a reboot.

use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    cmdline::CommandLine,
    snapshot::{Assignment, SchedPolicy},
};
use lowlat_plan::Plan;
use lowlat_settings::change::{BootToken, Change, Target};

pub fn apply(plan: &Plan, host: &mut HostSnapshot) {
    for change in &plan.changes {
        one(change, host);
    }
    // After the reboot, interrupts are on their requested CPUs.
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
        Target::KernelThreadScheduling { pid, .. } => {
            for thread in host.tasks.kernel_threads.iter_mut().filter(|thread| thread.pid == *pid) {
                thread.policy = SchedPolicy::Fifo;
                thread.rt_priority =
                    after.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a priority");
            }
        }
        Target::TunedProfile => {
            let (profile, mode) = after.split_once(' ').expect("profile and mode");
            host.services.tuned.profile = Reading::Known(profile.into());
            host.services.tuned.mode = Reading::Known(mode.into());
        }
        Target::FileKey { path, key } => file_key(path, key, after, host),
        Target::OwnedFile { path } => owned_file(path, after, host),
        Target::IdleState { .. } => change.target.kind().put(host, after),
        target => {
            if let Target::KernelThreadAffinity { pid, comm } = target {
                let is_bound = host.tasks.kernel_threads.iter().any(|t| t.pid == *pid && t.is_bound);
                assert!(!is_bound, "{comm} refuses to be moved");
            }
            let kind = target.kind();
            assert!(kind.present(host).is_known(), "the host has no {target:?}");
            kind.put(host, after);
            assert!(kind.is_same(kind.present(host).text(), after), "{target:?} is set nowhere");
        }
    }
}

/// Shows the host as a kernel started with the line would.
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
            "nosmt" => {
                host.cpu.smt_control = Reading::Known("off".into());
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
    if path.starts_with("/etc/modprobe.d/") {
        host.files.insert(path.to_owned(), Reading::Known(after.to_owned()));
        if let Reading::Known(modules) = &mut host.kernel.modules {
            modules.retain(|module| !after.contains(&format!("install {module} /bin/false\n")));
        }
        return;
    }
    let lines = after.lines().enumerate().filter_map(|(at, line)| {
        let (key, value) = line.split_once(" = ")?;
        let line = u32::try_from(at + 1).ok()?;
        Some(Assignment { path: path.to_owned(), line, key: key.into(), value: value.into() })
    });
    host.kernel.sysctl_files.extend(lines);
}

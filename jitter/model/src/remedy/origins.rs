//! Settings that decide the state of other settings.
//!
//! A remedy names the state that lets a cause reach a CPU: an interrupt's affinity. If another setting decides this
//! state and differs (irqbalance runs), that setting must be changed.

const AFFINITY: &[&str] = &["irq.irqbalance_banned", "boot.irqaffinity", "irq.default_affinity"];

/// A setting, and those that decide its state.
const ORIGINS: &[(&str, &[&str])] = &[
    ("irq.affinity", AFFINITY),
    ("irq.spread_nic_queues", AFFINITY),
    ("irq.default_affinity", &["boot.irqaffinity"]),
    ("irq.managed", &["boot.isolcpus"]),
    ("nic.rps", &["nic.queue_count"]),
    ("boot.nohz_full", &["boot.nohz", "kernel.config.no_hz_full"]),
    ("boot.rcu_nocbs", &["boot.nohz_full", "kernel.config.rcu_nocb_cpu"]),
    ("sysfs.clocksource", &["boot.tsc", "boot.clocksource"]),
    ("sysctl.kernel.nmi_watchdog", &["sysctl.kernel.watchdog", "boot.nmi_watchdog"]),
    ("sysctl.kernel.watchdog_cpumask", &["sysctl.kernel.watchdog", "boot.nosoftlockup"]),
    ("sysctl.vm.compaction_proactiveness", &["memory.thp_defrag"]),
    ("memory.thp_enabled", &["boot.transparent_hugepage"]),
    ("memory.ksm", &["service.ksm"]),
    ("sysfs.cpufreq.governor", &["service.cpuspeed", "service.tuned.profile"]),
    ("sysfs.machinecheck.check_interval", &["boot.mce"]),
    ("kthread.rcu", &["boot.rcu_nocbs"]),
    ("kthread.workqueue.global", &["boot.isolcpus"]),
    ("sysfs.cpuset.partition", &["boot.isolcpus"]),
];

/// Returns the settings that decide the state of this one, the most likely first; empty if there are none.
pub fn origins(setting: &str) -> &'static [&'static str] {
    ORIGINS.iter().find(|(of, _)| *of == setting).map_or(&[], |(_, origins)| origins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::CATALOGUE;

    #[test]
    fn every_name_is_a_setting_and_none_decides_itself() {
        let is_known = |id: &str| CATALOGUE.settings().any(|setting| setting.id == id);
        for (setting, origins) in ORIGINS {
            assert!(is_known(setting), "{setting}");
            for origin in *origins {
                assert!(is_known(origin) && origin != setting, "{origin} of {setting}");
            }
        }
    }
}

//! Studies of hand-made records: the model's own figures, with what it says of causes made by hand beside them.

use lowlat_model::jitter::{
    Cause, CauseKind, CauseShares, CauseSource, CauseStudy, JitterRecord, JitterStudy, Percentile, Remedy,
    study,
};
use lowlat_model::statistics::RateInterval;
use std::collections::BTreeMap;

/// What removes a cause on these hosts.
fn remedy(cause: &Cause) -> Option<Remedy> {
    let (setting, action) = match (cause.kind, cause.name.as_str()) {
        (CauseKind::Vector, "local timer") | (CauseKind::Hrtimer, _) => {
            ("boot.nohz_full", "stop the tick of CPUs that run one thread: nohz_full=1-7,9-15, then reboot")
        }
        (CauseKind::Softirq, "RCU") => {
            ("boot.rcu_nocbs", "move RCU callbacks to housekeeping CPUs: rcu_nocbs=1-7,9-15, then reboot")
        }
        (CauseKind::Irq, "nvme0q3") => (
            "boot.isolcpus",
            "nvme0q3 is a managed interrupt, which affinity can't move: isolcpus=managed_irq,domain,1-7,9-15",
        ),
        (CauseKind::Work, "vmstat_update") => {
            ("sysctl.vm.stat_interval", "let statistics be summed up rarely: vm.stat_interval=3600")
        }
        (CauseKind::Thread, "systemd-journald") => {
            ("boot.isolcpus", "keep the thread on housekeeping CPUs: CPUAffinity=0,8 for system services")
        }
        (CauseKind::Nmi, _) => ("boot.nmi_watchdog", "switch the watchdog off: nmi_watchdog=0"),
        _ => return None,
    };
    Some(Remedy { setting: setting.into(), action: action.into() })
}

/// The study that a document carries beside the record.
pub fn of(record: &JitterRecord) -> JitterStudy {
    let mut study = study(record).unwrap();
    let over_time = |share: f64, longest: u64| -> Vec<Percentile> {
        [0.5, 0.9, 0.99, 0.999, 0.999_9, 0.999_99, 0.999_999]
            .map(|quantile| {
                let is_hit = share > 1.0 - quantile;
                Percentile { quantile, length_ns: if is_hit { longest / 90 } else { 0 } }
            })
            .to_vec()
    };
    for cpu in &mut study.cpus {
        cpu.time_percentiles = over_time(cpu.lost_share.unwrap_or(0.0), cpu.length_ns_max.unwrap_or(0));
    }
    study.all.time_percentiles =
        over_time(study.all.lost_share.unwrap_or(0.0), study.all.length_ns_max.unwrap_or(0));
    if record.causes.as_ref().is_some_and(|causes| causes.source == CauseSource::Trace) {
        add_causes(record, &mut study);
    }
    study
}

fn add_causes(record: &JitterRecord, study: &mut JitterStudy) {
    let mut all: BTreeMap<(CauseKind, String), CauseStudy> = BTreeMap::new();
    for cpu in record.causes.iter().flat_map(|causes| &causes.cpus) {
        for total in &cpu.totals {
            let cause = match total.cause.kind {
                CauseKind::Thread => Cause { number: None, ..total.cause.clone() },
                _ => total.cause.clone(),
            };
            let entry = all.entry((cause.kind, cause.name.clone())).or_insert_with(|| CauseStudy {
                remedy: remedy(&cause),
                cause,
                ..CauseStudy::default()
            });
            entry.cpus.insert(cpu.cpu);
            entry.count += total.count;
            entry.main_count += total.main_count;
            entry.ns_total += total.ns_total;
            entry.ns_max = entry.ns_max.max(total.ns_max);
        }
    }
    let mut causes: Vec<CauseStudy> = all.into_values().collect();
    let sum: u64 = causes.iter().map(|cause| cause.ns_total).sum();
    for cause in &mut causes {
        cause.share = cause.ns_total as f64 / sum.max(1) as f64;
        cause.rate = RateInterval::of(cause.count, study.all.core_seconds);
    }
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns_total));
    let part = |is: fn(CauseKind) -> bool| -> f64 {
        causes.iter().filter(|of| is(of.cause.kind)).map(|of| of.share).sum()
    };
    study.shares = Some(CauseShares {
        named: part(|kind| kind.is_kernel() && kind != CauseKind::EntryExit),
        entry_exit: part(|kind| kind == CauseKind::EntryExit),
        firmware_or_hypervisor: part(|kind| kind == CauseKind::FirmwareOrHypervisor),
        unexplained: part(|kind| kind == CauseKind::Unexplained),
        not_traced: part(|kind| kind == CauseKind::NotTraced),
    });
    study.causes = causes;
}

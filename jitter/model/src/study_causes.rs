//! The study of causes: their shares over all CPUs, and how much of the time is named.

use super::{
    Cause, CauseKind, CauseShares, CauseSource, CauseStudy, CauseTotal, CpuCauses, JitterCauses,
    JitterRecord, JitterStudy, RemedyContext, StudyError, lengths_of,
    remedy::{self, remedy},
    study,
    study::study_each,
};
use lowlat_host::{IsolatedCpus, statistics::RateInterval};
use std::collections::BTreeMap;

/// The common name of all threads of lowlat.
const OWN_THREADS: &str = "lowlat";

/// Studies a record, and adds the remedy of each cause on this host.
///
/// # Errors
/// [`StudyError`] if a CPU's histogram cannot be decoded or does not match its count.
pub fn study_with(
    record: &JitterRecord,
    context: Option<&RemedyContext<'_>>,
) -> Result<JitterStudy, StudyError> {
    Ok(with_remedies(study(record)?, context))
}

/// The same if histograms may be damaged: a CPU with such a one has only its counters, and there are no percentiles over
/// all CPUs.
pub fn study_damaged(record: &JitterRecord, context: Option<&RemedyContext<'_>>) -> JitterStudy {
    let lengths = record.cpus.iter().map(lengths_of).collect();
    with_remedies(study_each(record, lengths), context)
}

fn with_remedies(mut study: JitterStudy, context: Option<&RemedyContext<'_>>) -> JitterStudy {
    if let Some(context) = context {
        let remedies: Vec<_> =
            study.causes.iter().map(|found| remedy(&found.cause, &found.cpus, context, &study)).collect();
        for (found, remedy) in study.causes.iter_mut().zip(remedies) {
            found.remedy = remedy;
        }
        let isolated = IsolatedCpus::of(context.host, &context.allocation.isolated);
        for of in &mut study.cpus {
            of.isolation = isolated.get(of.cpu);
        }
    }
    study
}

/// The time that each setting would have saved in this run, by ID: the time of the causes that it removes, on the CPUs
/// that it helps. The parts of a CPU add up to the time lost there at most.
pub fn savings(
    record: &JitterRecord,
    study: &JitterStudy,
    context: &RemedyContext<'_>,
) -> BTreeMap<String, u64> {
    let mut saved: BTreeMap<String, u64> = BTreeMap::new();
    for cpu in traced(record).iter().flat_map(|causes| &causes.cpus) {
        let measured = record.cpus.iter().find(|measured| measured.cpu == cpu.cpu);
        let lost_ns = measured.map_or(0, |of| u128::from(of.interruption_ns_total)) + own_ns(cpu);
        // A cause that began before an interruption may have more time than the interruption.
        let whole_ns = attributed_ns(cpu).max(lost_ns).max(1);
        for total in cpu.totals.iter().filter(|total| remedy::helps(&total.cause, cpu.cpu, context, study)) {
            let cause = study.causes.iter().find(|found| key(&found.cause) == key(&total.cause));
            let Some(remedy) = cause.and_then(|cause| cause.remedy.as_ref()) else { continue };
            let ns = u64::try_from(u128::from(total.ns_total) * lost_ns / whole_ns).unwrap_or(u64::MAX);
            let sum = saved.entry(remedy.setting.clone()).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    saved
}

/// Every cause over all CPUs, the largest first; empty if nothing was traced.
///
/// The rate uses the whole sampled time of all measured CPUs. If the ring between sampler and collector lost
/// interruptions ([`CpuCauses::ring_lost_count`]), it is too low.
pub(super) fn causes_of(record: &JitterRecord) -> Vec<CauseStudy> {
    let Some(causes) = traced(record) else { return Vec::new() };
    let mut merged = Merged::new();
    for cpu in &causes.cpus {
        for total in &cpu.totals {
            merge(&mut merged, cpu, total);
        }
    }
    let core_seconds = record.cpus.iter().map(|cpu| cpu.runtime_ns as f64 / 1e9).sum();
    let whole_ns: u128 = causes.cpus.iter().map(attributed_ns).sum();
    let mut found: Vec<CauseStudy> = merged.into_values().collect();
    for cause in &mut found {
        cause.share = part(u128::from(cause.ns_total), whole_ns);
        cause.rate = RateInterval::of(cause.count, core_seconds);
    }
    found.sort_by(|a, b| b.ns_total.cmp(&a.ns_total).then_with(|| a.cause.cmp(&b.cause)));
    found
}

/// Shares of the time of all interruptions; `None` if nothing was traced or nothing interrupted.
pub(super) fn shares_of(record: &JitterRecord) -> Option<CauseShares> {
    let causes = traced(record)?;
    let mut ns_by_kind: BTreeMap<CauseKind, u128> = BTreeMap::new();
    let mut entry_exit_ns = 0;
    for total in causes.cpus.iter().flat_map(|cpu| &cpu.totals) {
        *ns_by_kind.entry(total.cause.kind).or_default() += u128::from(total.ns_total);
        entry_exit_ns += u128::from(entry_exit_of(total));
    }
    let attributed: BTreeMap<_, u128> =
        causes.cpus.iter().map(|cpu| (cpu.cpu, attributed_ns(cpu).saturating_sub(own_ns(cpu)))).collect();
    let missed_ns = |cpu: &super::JitterCpu| {
        let seen = attributed.get(&cpu.cpu).copied().unwrap_or(0);
        u128::from(cpu.interruption_ns_total).saturating_sub(seen)
    };
    *ns_by_kind.entry(CauseKind::NotTraced).or_default() += record.cpus.iter().map(missed_ns).sum::<u128>();
    let whole_ns: u128 = ns_by_kind.values().sum();
    if whole_ns == 0 {
        return None;
    }
    let of = |kind| part(ns_by_kind.get(&kind).copied().unwrap_or(0), whole_ns);
    let kernel_ns: u128 = ns_by_kind.iter().filter(|(kind, _)| kind.is_kernel()).map(|(_, ns)| ns).sum();
    Some(CauseShares {
        named: part(kernel_ns.saturating_sub(entry_exit_ns), whole_ns),
        entry_exit: part(entry_exit_ns, whole_ns),
        firmware_or_hypervisor: of(CauseKind::FirmwareOrHypervisor),
        unexplained: of(CauseKind::Unexplained),
        not_traced: of(CauseKind::NotTraced),
    })
}

/// The causes of a record if they come from a trace.
fn traced(record: &JitterRecord) -> Option<&JitterCauses> {
    record.causes.as_ref().filter(|causes| causes.source == CauseSource::Trace)
}

fn attributed_ns(cpu: &CpuCauses) -> u128 {
    cpu.totals.iter().map(|total| u128::from(total.ns_total)).sum()
}

/// Time of interruptions that the run itself caused, which the CPU's record leaves out.
fn own_ns(cpu: &CpuCauses) -> u128 {
    cpu.own_holds.as_ref().map_or(0, |own| u128::from(own.ns_total))
}

/// Entry and exit time of a cause. It is part of the cause's time, whatever a document says.
fn entry_exit_of(total: &CauseTotal) -> u64 {
    match total.cause.kind {
        CauseKind::EntryExit => total.ns_total,
        kind if kind.is_kernel() => total.entry_exit_ns.min(total.ns_total),
        _ => 0,
    }
}

/// Returns what identifies a cause: all threads of lowlat count as one, whatever their names.
fn key(cause: &Cause) -> (CauseKind, String, bool) {
    let is_own_thread = cause.is_own && cause.kind == CauseKind::Thread;
    let name = if is_own_thread { OWN_THREADS.to_owned() } else { cause.name.clone() };
    (cause.kind, name, cause.is_own)
}

type Merged = BTreeMap<(CauseKind, String, bool), CauseStudy>;

fn merge(merged: &mut Merged, cpu: &CpuCauses, total: &CauseTotal) {
    let merged = merged.entry(key(&total.cause)).or_insert_with_key(|(_, name, _)| {
        let cause = Cause { name: name.clone(), ..total.cause.clone() };
        CauseStudy { cause, ..CauseStudy::default() }
    });
    // Values that differ between CPUs are removed.
    if merged.cause.number != total.cause.number {
        merged.cause.number = None;
    }
    if merged.cause.priority != total.cause.priority {
        merged.cause.priority = None;
    }
    // A hostile document must not make the set exceed its limit.
    if cpu.cpu <= lowlat_host::CPU_ID_MAX {
        merged.cpus.insert(cpu.cpu);
    }
    merged.count = merged.count.saturating_add(total.count);
    merged.main_count = merged.main_count.saturating_add(total.main_count);
    merged.ns_total = merged.ns_total.saturating_add(total.ns_total);
    merged.entry_exit_ns = merged.entry_exit_ns.saturating_add(entry_exit_of(total));
    merged.ns_max = merged.ns_max.max(total.ns_max);
    if let Some(cpus) = &total.allowed_cpus {
        let all = merged.allowed_cpus.get_or_insert_default();
        *all = all.union(cpus);
    }
}

fn part(ns: u128, whole_ns: u128) -> f64 {
    if whole_ns == 0 { 0.0 } else { ns as f64 / whole_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JitterCpu;
    use lowlat_catalogue::testing::list;
    use lowlat_host::{Allocation, HostSnapshot, Role};

    fn total(kind: CauseKind, name: &str, number: Option<i64>, count: u64, ns_total: u64) -> CauseTotal {
        let cause = Cause { kind, name: name.into(), number, ..Cause::default() };
        CauseTotal {
            cause,
            count,
            main_count: count,
            ns_total,
            entry_exit_ns: 0,
            ns_max: ns_total,
            ..CauseTotal::default()
        }
    }

    fn record(cpus: Vec<(u32, u64, Vec<CauseTotal>)>) -> JitterRecord {
        let measured = |(cpu, interruption_ns_total, _): &(u32, u64, Vec<CauseTotal>)| JitterCpu {
            cpu: *cpu,
            runtime_ns: 10_000_000_000,
            interruption_ns_total: *interruption_ns_total,
            ..JitterCpu::default()
        };
        let found =
            |(cpu, _, totals): (u32, u64, Vec<CauseTotal>)| CpuCauses { cpu, totals, ..CpuCauses::default() };
        JitterRecord {
            cpus: cpus.iter().map(measured).collect(),
            causes: Some(JitterCauses {
                source: CauseSource::Trace,
                cpus: cpus.into_iter().map(found).collect(),
                ..JitterCauses::default()
            }),
            ..JitterRecord::default()
        }
    }

    #[test]
    fn causes_are_merged_over_cpus() {
        use CauseKind::{Irq, Thread};
        let own = |name: &str, ns| {
            let mut own = total(Thread, name, Some(9), 1, ns);
            own.cause.is_own = true;
            own
        };
        let record = record(vec![
            (
                1,
                500,
                vec![
                    total(Irq, "nvme0q3", Some(47), 3, 300),
                    total(Thread, "sh", Some(5), 1, 100),
                    own("a", 100),
                ],
            ),
            (
                2,
                500,
                vec![
                    total(Irq, "nvme0q3", Some(47), 2, 200),
                    total(Thread, "sh", Some(6), 1, 250),
                    own("b", 50),
                ],
            ),
        ]);
        let study = study(&record).unwrap();
        let rows: Vec<(String, u64, u64)> =
            study.causes.iter().map(|c| (c.cause.label(), c.count, c.ns_total)).collect();
        let row = |label: &str, count, ns| (label.to_owned(), count, ns);
        assert_eq!(rows[..2], [row("irq 47 nvme0q3", 5, 500), row("thread sh", 2, 350)]);
        assert_eq!(rows[2], row("thread lowlat (pid 9)", 2, 150));
        assert_eq!(study.causes[0].cpus, list("1-2"));
        assert_eq!(study.causes[0].ns_max, 300);
        assert!((study.causes[0].share - 0.5).abs() < 1e-12, "{:?}", study.causes[0]);
        let rate = study.causes[0].rate.unwrap();
        assert!((rate.per_s - 0.25).abs() < 1e-12 && rate.per_s_low < 0.25 && rate.per_s_high > 0.25);
        assert_eq!(study.causes[0].remedy, None);

        let (host, role) = (HostSnapshot::default(), Role::default());
        let allocation =
            Allocation { housekeeping: list("0"), isolated: list("1-2"), ..Allocation::default() };
        let context = RemedyContext { host: &host, allocation: &allocation, role: &role };
        let with = study_with(&record, Some(&context)).unwrap();
        let settings: Vec<&str> =
            with.causes.iter().map(|c| c.remedy.as_ref().unwrap().setting.as_str()).collect();
        assert_eq!(settings, ["irq.managed", "boot.isolcpus", ""]);
        assert_eq!(study_with(&record, None).unwrap(), study);
    }

    #[test]
    fn a_setting_saves_what_was_lost_on_the_cpus_that_it_helps() {
        use CauseKind::{Nmi, PageFault, Thread};
        let whole = 20_000_000_000;
        let record = record(vec![
            // Housekeeping: a busy program takes nearly all of it.
            (
                0,
                whole,
                vec![total(Thread, "burn", None, 9, 15_000_000_000), total(Nmi, "", None, 1, 5_000_000_000)],
            ),
            (
                1,
                1_000,
                vec![
                    total(Thread, "burn", None, 1, 600),
                    total(Thread, "kworker/1:0", None, 1, 300),
                    total(PageFault, "", None, 1, 100),
                ],
            ),
            // Longer than the interruption that it began before.
            (2, 1_000, vec![total(Thread, "burn", None, 1, 3_000), total(Nmi, "", None, 1, 1_000)]),
            (3, 700, vec![total(Thread, "burn", None, 1, 500)]),
        ]);
        let (host, role) = (HostSnapshot::default(), Role::default());
        let allocation =
            Allocation { housekeeping: list("0"), isolated: list("1-3"), ..Allocation::default() };
        let context = RemedyContext { host: &host, allocation: &allocation, role: &role };
        let study = study_with(&record, Some(&context)).unwrap();
        let saved = savings(&record, &study, &context);
        assert_eq!(saved["boot.isolcpus"], 600 + 300 + 750 + 500);
        // A watchdog disturbs housekeeping too.
        assert_eq!(saved["sysctl.kernel.nmi_watchdog"], 5_000_000_000 + 250);
        assert_eq!(saved[""], 100);
        let lost: u64 = record.cpus.iter().map(|cpu| cpu.interruption_ns_total).sum();
        assert!(saved.values().sum::<u64>() <= lost);
        let only_housekeeping = Allocation { housekeeping: list("0-3"), ..Allocation::default() };
        let context = RemedyContext { allocation: &only_housekeeping, ..context };
        assert_eq!(savings(&record, &study, &context).get("boot.isolcpus"), None);
    }

    proptest::proptest! {
        #[test]
        fn savings_never_exceed_what_was_lost(
            parts in proptest::collection::vec((0_usize..5, proptest::prelude::any::<u64>(), 0_u32..4), 0..20),
            lost in proptest::collection::vec(proptest::prelude::any::<u32>(), 4..5),
        ) {
            use CauseKind::{Irq, Nmi, PageFault, Thread, Work};
            let kinds = [Irq, Nmi, PageFault, Thread, Work];
            let of = |cpu: u32| {
                let own = parts.iter().filter(|part| part.2 == cpu);
                own.map(|(kind, ns, _)| total(kinds[*kind], "x", None, 1, *ns)).collect::<Vec<_>>()
            };
            let record = record((0..4).map(|cpu| (cpu, u64::from(lost[cpu as usize]), of(cpu))).collect());
            let (host, role) = (HostSnapshot::default(), Role::default());
            let allocation = Allocation { housekeeping: list("0"), isolated: list("1-3"), ..Allocation::default() };
            let context = RemedyContext { host: &host, allocation: &allocation, role: &role };
            let study = study_with(&record, Some(&context)).unwrap();
            let saved: u64 = savings(&record, &study, &context).values().sum();
            proptest::prop_assert!(saved <= lost.iter().map(|lost| u64::from(*lost)).sum::<u64>());
        }
    }

    #[test]
    fn shares_add_up_to_one_with_what_was_lost() {
        use CauseKind::{EntryExit, FirmwareOrHypervisor, Irq, NotTraced, Unexplained};
        let record = record(vec![
            (1, 1_000, vec![total(Irq, "a", None, 1, 300), total(EntryExit, "", None, 1, 100)]),
            (
                2,
                600,
                vec![total(FirmwareOrHypervisor, "", None, 1, 250), total(Unexplained, "", None, 1, 350)],
            ),
            (3, 400, vec![total(NotTraced, "", None, 1, 400)]),
        ]);
        let shares = study(&record).unwrap().shares.unwrap();
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{shares:?}");
        near(shares.named, 0.15);
        near(shares.entry_exit, 0.05);
        near(shares.firmware_or_hypervisor, 0.125);
        near(shares.unexplained, 0.175);
        // 600 ns of CPU 1 were never attributed, 400 ns of CPU 3 could not be.
        near(shares.not_traced, 0.5);
        near(
            shares.named
                + shares.entry_exit
                + shares.firmware_or_hypervisor
                + shares.unexplained
                + shares.not_traced,
            1.0,
        );
    }

    #[test]
    fn the_way_in_and_out_is_part_of_its_cause() {
        use CauseKind::{EntryExit, Irq, Unexplained};
        let with =
            |kind, name, ns, entry_exit_ns| CauseTotal { entry_exit_ns, ..total(kind, name, None, 1, ns) };
        let record = record(vec![
            (
                1,
                1_000,
                vec![with(Irq, "a", 600, 150), with(EntryExit, "", 100, 100), with(Irq, "b", 300, 900)],
            ),
            // Time without a kernel activity has no entry.
            (2, 1_000, vec![with(Irq, "a", 400, 50), with(Unexplained, "", 600, 600)]),
        ]);
        let study = study(&record).unwrap();
        let row = |kind, name: &str| {
            let found =
                study.causes.iter().find(|found| found.cause.kind == kind && found.cause.name == name);
            found.map(|found| (found.ns_total, found.entry_exit_ns)).unwrap()
        };
        assert_eq!(
            [row(Irq, "a"), row(Irq, "b"), row(EntryExit, "")],
            [(1_000, 200), (300, 300), (100, 100)]
        );
        let shares = study.shares.unwrap();
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{shares:?}");
        near(shares.named, 0.4);
        near(shares.entry_exit, 0.3);
        near(shares.unexplained, 0.3);
        near(shares.named + shares.entry_exit + shares.unexplained, 1.0);
    }

    #[test]
    fn without_a_trace_nothing_is_said() {
        let mut counted = record(vec![(1, 100, vec![total(CauseKind::Irq, "a", None, 1, 100)])]);
        counted.causes.as_mut().unwrap().source = CauseSource::Counters;
        for record in [counted, JitterRecord::default()] {
            let study = study(&record).unwrap();
            assert_eq!((study.causes.len(), study.shares), (0, None));
        }
        assert_eq!(study(&record(vec![(1, 0, Vec::new())])).unwrap().shares, None);
        let hostile =
            record(vec![(u32::MAX, 0, vec![total(CauseKind::Irq, "a", None, u64::MAX, u64::MAX); 2])]);
        let study = study(&hostile).unwrap();
        assert!(study.causes[0].cpus.is_empty() && study.causes[0].ns_total == u64::MAX);
        assert!((study.shares.unwrap().named - 1.0).abs() < 1e-12);
    }
}

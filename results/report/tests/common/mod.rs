//! Result documents made by hand, shared by the tests and by the example that writes sample pages.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "the numbers of hand-made hosts are small"
)]

mod causes;
mod cores;
mod findings;
mod host;
mod jitter;
mod study;

pub use cores::cores;
pub use host::{Shape, host};

use lowlat_host::{Allocation, CpuSet, HostSnapshot, Profile, Role};
use lowlat_jitter::{JitterMeasurement, ReadinessPoint, ReadinessState};
use lowlat_results::{
    ResultDocument,
    compare::{Comparison, SideBySide, compare_documents},
    fleet::{Fleet, FleetHost},
};
use lowlat_settings::{
    Verdict,
    audit::{Audit, Score},
};

/// Two EPYC 7F32 of eight cores, each core with a private third-level cache: the host of the guide.
pub fn epyc() -> ResultDocument {
    let mut document = document(host(&Shape::EPYC_7F32), "0,8");
    document.audit = audit(findings::all());
    measured(&mut document, 16, 60);
    document.allocation.steps = [
        "Package 0 has 8 cores; its first core by topology is core 0 (CPU 0): housekeeping.",
        "Package 1 has 8 cores; its first core by topology is core 0 (CPU 8): housekeeping.",
        "Every other core is isolated: no last-level cache is shared between the two sides.",
    ]
    .map(str::to_owned)
    .to_vec();
    document.warnings = vec!["Read without root: 6 facts are denied. Run as root to see them.".into()];
    document
}

/// A run of `lowlat jitter` on every CPU of the same host, with causes from the kernel's trace.
pub fn traced() -> ResultDocument {
    let mut document = epyc();
    document.command = "jitter".into();
    document.warnings.clear();
    document.readiness = readiness();
    let busy = document.allocation.housekeeping.clone();
    let record = &mut document.jitter_mut().unwrap().record;
    record.real_time = Some("SCHED_FIFO 10".into());
    causes::add_to(record, |cpu| busy.contains(cpu));
    with_study(document)
}

/// The same run where tracefs is not mounted.
pub fn counted() -> ResultDocument {
    let mut document = traced();
    causes::counters_only(&mut document.jitter_mut().unwrap().record);
    with_study(document)
}

/// The stock host against the tuned one, on the CPUs that both runs measured.
pub fn comparison() -> Comparison {
    compare_documents(&[&traced()], &[&tuned()]).unwrap()
}

/// The tuned host of [`comparison`].
pub fn tuned() -> ResultDocument {
    let mut tuned = quiet();
    tuned.started_at = "2026-03-03T17:40:02Z".into();
    let changed = ["sysctl.vm.stat_interval", "boot.nohz_full", "boot.rcu_nocbs"];
    tuned.audit = traced().audit;
    for finding in tuned.audit.findings.iter_mut().filter(|finding| changed.contains(&finding.id.as_str())) {
        finding.verdict = Verdict::Good;
        finding.observed.clone_from(&finding.wanted);
    }
    tuned
}

/// The stock host, the tuned one, and a run without a measurement.
pub fn three() -> Vec<ResultDocument> {
    let mut unmeasured = epyc();
    unmeasured.measurements.clear();
    vec![traced(), tuned(), unmeasured]
}

pub fn named(documents: &[ResultDocument]) -> Vec<lowlat_results_report::Named<'_>> {
    let names = ["before.json", "after.json", "settings-only.json"];
    names.iter().zip(documents).map(|(name, document)| ((*name).to_owned(), document)).collect()
}

/// Hosts of which two differ from the others, one of them with a hostile name.
pub fn fleet() -> Fleet {
    let host = |name: &str, document: &ResultDocument| FleetHost::of(name, document);
    let usual = traced();
    let mut odd = usual.clone();
    for finding in odd.audit.findings.iter_mut().filter(|finding| finding.id == "boot.nohz_full") {
        finding.verdict = Verdict::Good;
    }
    let mut hosts: Vec<FleetHost> = (1..=6).map(|at| host(&format!("desk{at}"), &usual)).collect();
    hosts.push(host("desk<7>\u{1b}[2J", &odd));
    hosts.push(host("hostile", &hostile()));
    Fleet::of(hosts)
}

/// A fleet of many hosts, each of which differs from the others in other settings.
pub fn large_fleet(count: usize) -> Fleet {
    let usual = epyc();
    let hosts = (0..count).map(|at| {
        let mut odd = usual.clone();
        for (number, finding) in odd.audit.findings.iter_mut().enumerate() {
            if at % 10 == 0 && (at / 10 * 7 + number * 5) % 11 < 3 {
                finding.verdict =
                    if finding.verdict == Verdict::Good { Verdict::Wrong } else { Verdict::Good };
            }
        }
        FleetHost::of(&format!("desk-{at:03}"), &odd)
    });
    Fleet::of(hosts.collect())
}

/// The first of [`three`] side by side, with a limit.
pub fn side_by_side(count: usize) -> SideBySide {
    let documents = three();
    let documents = named(&documents[..count]);
    SideBySide::of(&documents, false, Some(&"5%".parse().unwrap())).unwrap()
}

/// Two isolated CPUs after tuning: four interruptions in ten minutes.
pub fn quiet() -> ResultDocument {
    let mut document = traced();
    let record = &mut document.jitter_mut().unwrap().record;
    *record = jitter::quiet_record(&[6, 7], 610);
    causes::add_to(record, |_| false);
    record.causes.as_mut().unwrap().groups = None;
    document.readiness.clear();
    document.audit = audit(Vec::new());
    with_study(document)
}

/// A host with too many CPUs to read one by one, each with causes.
pub fn vast(cpus: u32) -> ResultDocument {
    let mut document = traced();
    let fresh = jitter::record(&document.allocation, cpus, 5);
    let record = &mut document.jitter_mut().unwrap().record;
    *record = fresh;
    causes::add_to(record, |cpu| cpu % 64 == 0);
    document.allocation.isolated = (0..cpus).filter(|cpu| cpu % 64 != 0).collect();
    document.allocation.housekeeping = (0..cpus).filter(|cpu| cpu % 64 == 0).collect();
    with_study(document)
}

/// Adds a jitter measurement of that many CPUs.
fn measured(document: &mut ResultDocument, cpus: u32, seconds: u64) {
    let record = jitter::record(&document.allocation, cpus, seconds);
    document.measurements.push(JitterMeasurement::from(record).into());
}

/// The document with the study that lowlat puts beside the record.
pub fn with_study(mut document: ResultDocument) -> ResultDocument {
    let study = study::of(&document);
    document.jitter_mut().unwrap().study = study;
    document
}

fn readiness() -> Vec<ReadinessPoint> {
    let point = |id: &str, state, observed: &str, action: &str, is_blocking| ReadinessPoint {
        id: id.into(),
        state,
        observed: observed.into(),
        action: action.into(),
        is_blocking,
    };
    vec![
        point("load", ReadinessState::Ready, "load average 0.12", "", false),
        point("affinity", ReadinessState::Ready, "lowlat runs on CPUs 0,8", "", false),
        point(
            "busy_threads",
            ReadinessState::NotReady,
            "stress-ng (pid 4711) ran on CPU 5 for 96 % of the last second",
            "Stop it, or move it to the housekeeping CPUs 0,8: taskset -p -c 0,8 4711.",
            true,
        ),
        point(
            "governor",
            ReadinessState::NotKnown,
            "the cpufreq directory may not be read",
            "Run as root.",
            false,
        ),
    ]
}

/// The same shape of document for another host, with jitter on every CPU.
pub fn wide(shape: &Shape, housekeeping: &str, seconds: u64) -> ResultDocument {
    let mut document = document(host(shape), housekeeping);
    document.audit = audit(findings::all());
    let cpus = u32::try_from(document.snapshot.topology.counts.pus).unwrap();
    measured(&mut document, cpus, seconds);
    document
}

/// A virtual machine of one CPU where next to nothing is known and nothing was measured.
pub fn bare() -> ResultDocument {
    let mut snapshot = host(&Shape { packages: 1, cores_per_package: 1, ..Shape::EPYC_7F32 });
    let topology = snapshot.topology.clone();
    snapshot = HostSnapshot { topology, schema_version: 1, ..HostSnapshot::default() };
    let mut document = document(snapshot, "0");
    document.allocation.warnings = vec!["One CPU: nothing can be isolated on this host.".into()];
    document
}

/// A document in which every text of the host is an attack on the page or the terminal.
pub fn hostile() -> ResultDocument {
    const EVIL: &str = "</script></style><img src=x onerror=alert(1)>\"'&<svg onload=x>\u{1b}[31m\u{202e}";
    let mut document = epyc();
    let evil = || lowlat_host::Reading::Known(EVIL.to_owned());
    let host = &mut document.snapshot;
    (host.firmware.system_vendor, host.firmware.system_product) = (evil(), evil());
    (host.kernel.release, host.kernel.distribution, host.cpu.model_name) = (evil(), evil(), evil());
    for nic in &mut host.nics {
        (nic.driver, nic.firmware, nic.bus) = (evil(), evil(), evil());
        nic.name.push_str(EVIL);
    }
    for disk in &mut host.disks {
        disk.name.push_str(EVIL);
        disk.model = evil();
    }
    for finding in &mut document.audit.findings {
        for text in [&mut finding.id, &mut finding.observed, &mut finding.because] {
            text.push_str(EVIL);
        }
    }
    document.readiness = readiness();
    for point in &mut document.readiness {
        point.observed.push_str(EVIL);
        point.action.push_str(EVIL);
    }
    let record = &mut document.jitter_mut().unwrap().record;
    causes::add_to(record, |_| true);
    let causes = record.causes.as_mut().unwrap();
    (causes.reason, causes.trace_clock) = (EVIL.into(), EVIL.into());
    for cpu in &mut causes.cpus {
        let totals = cpu.totals.iter_mut().map(|total| &mut total.cause);
        let steps = cpu.worst.iter_mut().flat_map(|of| &mut of.timeline).map(|step| &mut step.cause);
        totals.chain(steps).for_each(|cause| cause.name.push_str(EVIL));
    }
    let mut study = study::of(&document).unwrap();
    for cause in &mut study.causes {
        let remedy = cause.remedy.get_or_insert_default();
        remedy.setting.push_str(EVIL);
        remedy.action.push_str(EVIL);
    }
    document.jitter_mut().unwrap().study = Some(study);
    document.warnings.push(EVIL.to_owned());
    document.allocation.steps.push(EVIL.to_owned());
    EVIL.clone_into(&mut document.started_at);
    document
}

/// The audit that these findings make.
pub fn audit(mut findings: Vec<lowlat_settings::Finding>) -> Audit {
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    Audit { profile: Profile::Trading, score: Score::of(&findings), findings, warnings: Vec::new() }
}

fn document(snapshot: HostSnapshot, housekeeping: &str) -> ResultDocument {
    let housekeeping = CpuSet::parse_list(housekeeping).unwrap();
    let isolated = snapshot.topology.online.difference(&housekeeping);
    ResultDocument {
        document: ResultDocument::DOCUMENT.into(),
        schema_version: ResultDocument::SCHEMA_VERSION,
        lowlat_version: "0.1.0".into(),
        command: "assess".into(),
        started_at: "2026-03-02T08:15:30Z".into(),
        elapsed_s: 64.2,
        is_interrupted: false,
        labels: lowlat_host::Labels::default(),
        role: Role::default(),
        snapshot,
        allocation: Allocation { housekeeping, isolated, ..Allocation::default() },
        audit: Audit::default(),
        measurements: Vec::new(),
        readiness: Vec::new(),
        warnings: Vec::new(),
    }
}

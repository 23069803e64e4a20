//! Golden files of every captured host: what is read, how it is judged, which CPUs are chosen.

use crate::common;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_settings::{Context, audit::Audit};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _};

fn read(path: &std::path::Path) -> HostSnapshot {
    snapshot::read(&Root::open(path).unwrap_or_else(|error| panic!("{error}")), CATALOGUE)
}

/// The snapshot with the lists that differ at each boot cut to what must stay.
fn stable(host: &HostSnapshot) -> Value {
    let names = |irq: &lowlat_host::snapshot::Irq| irq.actions.join("+");
    json!({
        "topology": host.topology, "cpu": host.cpu, "firmware": host.firmware, "memory": host.memory,
        "kernel": {
            "release": host.kernel.release, "command_line": host.kernel.command_line, "machine": host.kernel.machine,
            "config": host.kernel.config, "tainted": host.kernel.tainted, "distribution": host.kernel.distribution,
            "sysctl_files": host.kernel.sysctl_files,
        },
        "nics": host.nics, "disks": host.disks, "virtualization.is_virtual": host.virtualization.is_virtual,
        "services": {
            "source": host.services.source, "units": host.services.units.len(), "tuned": host.services.tuned,
            "irqbalance": host.services.irqbalance, "cgroup_version": host.services.cgroup_version,
        },
        "scheduler": host.scheduler,
        "interrupts": host.interrupts.irqs.iter().map(names).collect::<Vec<_>>(),
        "kernel_threads": host.tasks.kernel_threads.len(),
    })
}

/// JSON with a line for each field of the top two levels, and for each element of a list there.
fn lines_of(value: &Value) -> String {
    let mut text = String::new();
    for (name, part) in value.as_object().expect("an object") {
        let fields: Vec<(String, &Value)> = match part {
            Value::Object(fields) => {
                fields.iter().map(|(field, of)| (format!("{name}.{field}"), of)).collect()
            }
            _ => vec![(name.clone(), part)],
        };
        for (field, of) in fields {
            match of {
                Value::Array(elements) if elements.iter().any(Value::is_object) => {
                    for (at, of) in elements.iter().enumerate() {
                        let _ = writeln!(text, "{field}[{at}]: {of}");
                    }
                }
                _ => drop(writeln!(text, "{field}: {of}")),
            }
        }
    }
    text
}

#[test]
fn every_fixture_reads_as_it_did() {
    let fixtures = common::fixtures();
    assert!(
        fixtures.len() >= 4,
        "fixtures/hosts holds {} captures, expected the four hosts of the lab",
        fixtures.len()
    );
    for (name, path) in fixtures {
        insta::assert_snapshot!(format!("snapshot@{name}"), lines_of(&stable(&read(&path))));
    }
}

/// Judgements of each setting on the captured hosts: a line for each judgement, with the hosts that got it.
#[test]
fn every_fixture_is_judged_as_it_was() {
    let mut scores = String::new();
    let mut settings: BTreeMap<&str, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (name, path) in common::fixtures() {
        let host = read(&path);
        for profile in Profile::ALL {
            let role = Role { profile, ..Role::default() };
            let allocation = Allocation::choose(&host, &role);
            let audit = Audit::of(&Context {
                host: &host,
                role: &role,
                allocation: &allocation,
                profile,
                catalogue: CATALOGUE,
            });
            let on = format!("{name} {profile}");
            let _ = writeln!(scores, "{on}: {:?}, {:?}", audit.score.percent, audit.score.count_by_verdict);
            for f in audit.findings {
                let said = [
                    ("", f.verdict.word()),
                    ("has: ", &f.observed),
                    ("wants: ", &f.wanted),
                    ("", &f.because),
                ];
                let said = said.iter().filter(|(_, text)| !text.is_empty());
                let said: Vec<String> = said.map(|(what, text)| format!("{what}{text}")).collect();
                let id = CATALOGUE.find(&f.id).expect("a setting").id;
                settings.entry(id).or_default().entry(said.join(" | ")).or_default().push(on.clone());
            }
        }
    }
    let mut table = scores;
    for (id, judged) in settings {
        let _ = writeln!(table, "{id}");
        let count = judged.len();
        for (said, hosts) in judged {
            let on = if count == 1 { "all".to_owned() } else { hosts.join(", ") };
            let _ = writeln!(table, "  {said}\n    on {on}");
        }
    }
    insta::assert_snapshot!("findings", table);
}

#[test]
fn every_fixture_gets_the_cpus_it_got() {
    for (name, path) in common::fixtures() {
        let allocation = Allocation::choose(&read(&path), &Role::default());
        insta::assert_json_snapshot!(format!("allocation@{name}"), allocation);
    }
}

#[test]
fn the_guide_s_host_answers_as_the_guide_s_script() {
    let path = common::capture("epyc-7f32-2x8");
    let root = path.display().to_string();
    for (arguments, answer) in [
        (&["housekeeping"][..], "0,8"),
        (&["housekeeping", "--list"], "0,8"),
        (&["housekeeping", "--mask"], "101"),
        (&["isolated"], "1-7,9-15"),
        (&["nobalance"], "1-7,9-15"),
        (&["nobalance", "--mask"], "fefe"),
        (&["isolated", "--mask"], "fefe"),
        (&["isolated", "--systemd"], "1-7 9-15"),
        (&["housekeeping", "--ksoftirqd"], "0:f:2:101:ksoftirqd.*"),
        (&["housekeeping", "--rcub"], "0:f:4:101:rcub.*"),
    ] {
        let output = common::lowlat(&[&["cpus"], arguments, &["--root", &root]].concat());
        assert_eq!(
            common::text(&output.stdout).trim_end(),
            answer,
            "{arguments:?} {}",
            common::text(&output.stderr)
        );
    }
}

#[test]
fn every_archive_beside_the_checkout_is_audited() {
    let archives = common::topologies();
    if archives.is_empty() {
        eprintln!(
            "skipped: audit of other people's captures: no archives beside the checkout (LOWLAT_TOPOLOGIES names them)"
        );
    }
    for (name, path) in archives.into_iter().chain(common::fixtures()) {
        let output = common::lowlat(&["audit", "--root", &path.display().to_string(), "--json"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {}", common::text(&output.stderr));
        let audit: Audit =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(audit.findings.len(), CATALOGUE.settings().count(), "{name}");
    }
}

#[test]
fn the_inventory_of_every_archive_shows_each_cache_and_each_distance() {
    let archives = common::topologies();
    if archives.is_empty() {
        eprintln!(
            "skipped: inventory of other people's captures: no archives beside the checkout (LOWLAT_TOPOLOGIES names them)"
        );
    }
    for (name, path) in archives.into_iter().chain(common::fixtures()) {
        let host = read(&path);
        let text = lowlat_host_report::host_text(&host, None, 1_000);
        let text = anstream::adapter::strip_str(&text).to_string();
        let mut caches = 0_usize;
        for line in
            text.lines().map(str::trim).filter(|line| line.starts_with('L') && line.contains(", each for "))
        {
            for part in line.split("; ") {
                let (before, _) = part.split_once(" x ").expect("a number of caches");
                let number = before.split_whitespace().last().expect("a number").replace(',', "");
                caches += number.parse::<usize>().unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
            }
        }
        assert_eq!(caches, host.topology.caches.len(), "{name}: {text}");
        let nodes = Some(host.topology.nodes.len()).filter(|nodes| *nodes > 1).unwrap_or(0);
        let distances = text.lines().filter(|line| line.trim_start().starts_with("Distances ")).count();
        assert_eq!(distances, nodes, "{name}: {text}");
    }
}

/// Intel's driver on an old kernel calls them C0, NHM-C1, NHM-C3 and NHM-C6.
#[test]
fn a_plan_leaves_the_shallow_idle_states_of_old_drivers_enabled() {
    let name = "40intel64-2g2n4c+pcilocality";
    let Some((_, path)) = common::topologies().into_iter().find(|(found, _)| found == name) else {
        eprintln!(
            "skipped: idle states of an old driver: no {name} beside the checkout (LOWLAT_TOPOLOGIES names it)"
        );
        return;
    };
    let output = common::lowlat(&["tune", "plan", "--root", &path.display().to_string()]);
    let plan = common::text(&output.stdout);
    for state in ["NHM-C3", "NHM-C6"] {
        assert!(plan.contains(&format!("+ {state} on CPUs 4-39: disabled")), "{state}: {plan}");
    }
    assert!(!plan.contains("NHM-C1") && !plan.contains("C0 on"), "{plan}");
}

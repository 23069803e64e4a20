//! Hostile plans and hosts: preparing returns steps or reasons, and never panics.

use super::{
    super::*,
    host::{Host, plan_of},
};
use lowlat_host::CpuSet;
use lowlat_settings::change::{BootToken, nic};
use proptest::prelude::*;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("../..".to_owned()),
        Just("/proc/irq/default_smp_affinity".to_owned()),
        Just("/etc/file".to_owned()),
        "[a-z/.\\[\\]0-9,=\n\0 -]{0,12}",
        any::<String>(),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    let number = prop_oneof![0u32..4, any::<u32>()];
    (word(), word(), number, any::<u8>()).prop_map(|(a, b, number, kind)| match kind % 18 {
        0 => {
            Target::CommandLine { tokens: vec![BootToken { setting: a, name: b, value: None, before: None }] }
        }
        1 => Target::Sysctl { key: a },
        2 => Target::File { path: a },
        3 => Target::IdleState { name: a, cpus: CpuSet::of(number % 5_000) },
        4 => Target::HugePages { node: Some(number), size_bytes: u64::from(number) << 10 },
        5 => Target::HugePages { node: None, size_bytes: u64::MAX },
        6 => Target::IrqAffinity { irq: number, actions: vec![a, b] },
        7 => Target::DefaultIrqAffinity,
        8 => Target::KernelThreadAffinity { comm: a, pid: number },
        9 => Target::KernelThreadScheduling { comm: a, pid: number },
        10 => Target::WorkqueueCpus { name: Some(a) },
        11 => Target::WorkqueueCpus { name: None },
        12 => nic::CHANNELS.of(a, b),
        13 => nic::COALESCING.of(a, b),
        14 => nic::RPS.of(a, b),
        15 => nic::XPS.of(a, b),
        16 => Target::FileKey { path: a, key: b },
        _ => Target::OwnedFile { path: a },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_panics_and_nothing_is_lost(
        changes in prop::collection::vec((target(), word()), 0..8),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let host = Host::of(&[]);
        for path in ["proc/irq/default_smp_affinity", "proc/sys/a", "etc/file", "sys/devices/virtual/workqueue/cpumask"] {
            std::fs::create_dir_all(host.path(path).parent().unwrap()).unwrap();
            std::fs::write(host.path(path), &bytes).unwrap();
        }
        let start = host.tree();
        let snapshot = host.snapshot();
        let log = host.log();
        let plan = plan_of(changes.iter().map(|(target, after)| (target.clone(), after.as_str())).collect());
        for part in [Part::Queues, Part::RunTime, Part::Files] {
            let Ok(preparation) = prepare(&plan, &snapshot, &log, part) else { continue };
            for (place, change) in plan.changes.iter().enumerate() {
                let is_told = preparation.left.iter().any(|left| left.change == place)
                    || preparation.notes.iter().any(|note| note.change == place)
                    || preparation.steps.iter().any(|step| step.change == place || step.also.contains(&place));
                prop_assert_eq!(is_told, is_in(&change.target, part, &plan)
                    || (part == Part::RunTime && is_told), "{:?} in {:?}", change, part);
            }
            let mut ids: Vec<&str> = preparation.steps.iter().map(|prepared| prepared.step.id.as_str()).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), count);
        }
        prop_assert_eq!(host.tree(), start, "preparing writes nothing");
    }
}

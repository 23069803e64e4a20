use super::*;
use crate::testing::TestTree;

const INTERRUPTS: &str = "            CPU0       CPU1       CPU3
   9:          0          4          0   IO-APIC   9-fasteoi   acpi
  47:   12345678          0          1  IR-PCI-MSI-0000:01:00.0   1-edge      nvme0q3
 NMI:          1          2          3   Non-maskable interrupts
 LOC:     331149     333511          0   Local timer interrupts
 ERR:          3
";

fn host() -> TestTree {
    TestTree::of(&[
        ("/proc/interrupts", INTERRUPTS),
        ("/proc/softirqs", "                    CPU0       CPU1\n       TIMER:      26847          0\n"),
        ("/proc/irq/default_smp_affinity", "0000000f\n"),
        ("/proc/irq/9/smp_affinity_list", "0-3\n"),
        ("/proc/irq/9/effective_affinity_list", "1\n"),
        ("/proc/irq/9/node", "-1\n"),
        ("/proc/irq/12/smp_affinity", "00000000,0000000a\n"),
        ("/proc/irq/12/smp_affinity_list", "1,x\n"),
        ("/proc/irq/47/smp_affinity_list", "1,x\n"),
        ("/proc/irq/47/node", "one\n"),
        (
            "/sys/kernel/debug/irq/irqs/47",
            "handler:  handle_edge_irq\ndstate:   0x2b401a00\n            IRQD_ACTIVATED\n            IRQD_AFFINITY_MANAGED\nnode:     0\n",
        ),
        ("/sys/kernel/debug/irq/irqs/9", "dstate:   0x37400e00\n            IRQD_LEVEL\n"),
        ("/sys/kernel/debug/irq/irqs/12", "handler:  handle_bad"),
    ])
}

#[test]
fn interrupts_are_joined_from_their_three_homes() {
    let facts = read(&host().root());
    let numbers: Vec<u32> = facts.irqs.iter().map(|irq| irq.number).collect();
    assert_eq!(numbers, [9, 12, 47]);
    let [acpi, silent, nvme] = &facts.irqs[..] else { panic!("{facts:?}") };
    assert_eq!(acpi.goes_to().to_string(), "1");
    assert_eq!((acpi.node.clone(), acpi.is_managed.clone()), (Reading::Known(-1), Reading::Known(false)));
    assert_eq!((silent.affinity.to_string(), silent.actions.len()), ("1,3".into(), 0));
    assert!(matches!(silent.is_managed, Reading::Unparsable(_)), "a cut file does not say no");
    assert_eq!((nvme.chip.as_str(), nvme.label().as_str()), ("IR-PCI-MSI-0000:01:00.0 1-edge", "47 nvme0q3"));
    assert_eq!(nvme.count_by_cpu, BTreeMap::from([(0, 12_345_678), (3, 1)]));
    assert_eq!(nvme.is_managed, Reading::Known(true));
    assert!(matches!(nvme.affinity, Reading::Unparsable(_)) && matches!(nvme.node, Reading::Unparsable(_)));
    assert!(nvme.effective_affinity.is_absent());
    assert_eq!(facts.default_affinity.to_string(), "0-3");
}

#[test]
fn vectors_and_softirqs_keep_their_names_and_totals_are_not_counts_of_a_cpu() {
    let facts = read(&host().root());
    let names: Vec<&str> = facts.vectors.iter().map(|vector| vector.name.as_str()).collect();
    assert_eq!(names, ["NMI", "LOC"]);
    assert_eq!(facts.vectors[1].description, "Local timer interrupts");
    assert_eq!(facts.vectors[1].count_by_cpu, BTreeMap::from([(0, 331_149), (1, 333_511)]));
    assert_eq!(facts.softirqs[0].name, "TIMER");
    assert_eq!(facts.softirqs[0].count_by_cpu, BTreeMap::from([(0, 26_847)]));
}

#[test]
fn a_host_without_interrupt_files_has_none() {
    let facts = read(&TestTree::new().root());
    assert_eq!(facts, InterruptFacts::default());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0..INTERRUPTS.len()) {
        let tree = TestTree::new()
            .file("/proc/interrupts", [&INTERRUPTS.as_bytes()[..cut], &bytes].concat())
            .file("/proc/softirqs", &bytes)
            .file("/proc/irq/default_smp_affinity", &bytes)
            .file("/proc/irq/9/smp_affinity_list", &bytes)
            .file("/proc/irq/9/node", &bytes)
            .file("/sys/kernel/debug/irq/irqs/9", &bytes);
        let _ = read(&tree.root());
    }
}

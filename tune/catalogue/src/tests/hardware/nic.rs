use super::{Fixture, Reading, Verdict, check, cpus, good_host, known, nic};
use Verdict::{Good, NotApplicable, Unknown, Wrong};
use lowlat_host::snapshot::{
    Channels, Coalescing, Eee, Fec, Napi, Nic, Pause, PcieLink, QueueMask, Rings, Timestamping,
};

fn no_nic(f: &mut Fixture) {
    f.host.nics.clear();
}

#[test]
fn the_role_chooses_the_interfaces() {
    let mut fixture = good_host();
    let mut slow = nic();
    slow.name = "eth1".into();
    slow.coalescing = Reading::Known(Coalescing { rx_usecs: Some(50), ..Coalescing::default() });
    fixture.host.nics.push(slow);
    let all = fixture.finding("nic.rx_usecs");
    assert_eq!((all.verdict, all.observed.as_str()), (Wrong, "eth1: 50 us"));
    fixture.role.nics = vec!["eth0".into()];
    assert_eq!(fixture.finding("nic.rx_usecs").verdict, Good);
    fixture.role.nics = vec!["eth7".into()];
    assert_eq!(fixture.finding("nic.rx_usecs").verdict, NotApplicable);
}

#[test]
fn unused_and_virtual_interfaces_are_ignored() {
    check(
        "nic.rx_usecs",
        &[
            ("no NIC", no_nic, NotApplicable),
            ("not physical", |f| f.nic().is_physical = false, NotApplicable),
            ("down", |f| f.nic().operstate = known("down"), NotApplicable),
        ],
    );
    check(
        "nic.link_up",
        &[
            ("up", |_| {}, Good),
            ("down and not named", |f| f.nic().operstate = known("down"), NotApplicable),
            (
                "down and named",
                |f| {
                    f.nic().operstate = known("down");
                    f.role.nics = vec!["eth0".into()];
                },
                Wrong,
            ),
            ("no speed", |f| f.nic().speed_mbps = Reading::Absent, Unknown),
            ("denied", |f| f.nic().operstate = Reading::Denied, Unknown),
        ],
    );
}

fn coalescing(f: &mut Fixture, rx_usecs: Option<u32>, adaptive_rx: Option<bool>) {
    f.nic().coalescing = Reading::Known(Coalescing { rx_usecs, adaptive_rx, ..Coalescing::default() });
}

#[test]
fn interrupt_moderation_is_off() {
    check(
        "nic.rx_usecs",
        &[
            ("0", |_| {}, Good),
            ("3", |f| coalescing(f, Some(3), None), Wrong),
            ("no such field", |f| coalescing(f, None, None), NotApplicable),
            ("denied", |f| f.nic().coalescing = Reading::Denied, Unknown),
            ("absent", |f| f.nic().coalescing = Reading::Absent, NotApplicable),
            ("guide", Fixture::guide, NotApplicable),
        ],
    );
    check(
        "nic.adaptive_rx",
        &[
            ("off", |_| {}, Good),
            ("on", |f| coalescing(f, Some(0), Some(true)), Wrong),
            ("no such field", |f| coalescing(f, Some(0), None), NotApplicable),
            ("denied", |f| f.nic().coalescing = Reading::Denied, Unknown),
        ],
    );
}

fn rings(f: &mut Fixture, rx: u32, missed: &str) {
    f.nic().rings = known(Rings { rx, rx_max: 4096, ..Rings::default() });
    let path = "/sys/class/net/eth0/statistics/rx_missed_errors";
    f.host.files.insert(path.into(), known(missed));
}

#[test]
fn a_ring_is_too_small_once_it_lost_packets() {
    check(
        "nic.rings",
        &[
            ("lost none", |f| rings(f, 256, "0"), Good),
            ("lost some", |f| rings(f, 256, "3"), Wrong),
            ("lost some, and is the largest", |f| rings(f, 4096, "3"), Good),
            ("not counted", |f| f.nic().rings = known(Rings { rx_max: 8, ..Rings::default() }), Unknown),
            ("no number", |f| rings(f, 256, "some"), Unknown),
            ("denied", |f| f.nic().rings = Reading::Denied, Unknown),
            ("absent", |f| f.nic().rings = Reading::Absent, NotApplicable),
            ("guide", Fixture::guide, NotApplicable),
        ],
    );
    let mut fixture = good_host();
    rings(&mut fixture, 256, "0");
    let fifo = "/sys/class/net/eth0/statistics/rx_fifo_errors";
    fixture.host.files.insert(fifo.into(), known("9"));
    let finding = fixture.finding("nic.rings");
    assert_eq!((finding.verdict, finding.observed.as_str()), (Wrong, "eth0: 256 of 4096"));
    assert_eq!(finding.because, "9 packets were lost because no descriptor was free");
}

fn mask(list: &str) -> Vec<QueueMask> {
    vec![QueueMask { queue: "q-0".into(), cpus: known(cpus(list)) }]
}

#[test]
fn queues_and_steering_use_housekeeping_cpus() {
    check(
        "nic.queue_count",
        &[
            ("2 of 2", |_| {}, Good),
            (
                "16 of 2",
                |f| f.nic().channels = known(Channels { combined: 16, ..Channels::default() }),
                Wrong,
            ),
            ("denied", |f| f.nic().channels = Reading::Denied, Unknown),
            ("absent", |f| f.nic().channels = Reading::Absent, NotApplicable),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
    check(
        "nic.rps",
        &[
            ("off", |_| {}, Good),
            ("on isolated", |f| f.nic().rps = mask("0-15"), Wrong),
            ("on housekeeping", |f| f.nic().rps = mask("0,8"), Good),
            ("on isolated, of a bridge", |f| f.host.nics.push(bridge("9")), Wrong),
            ("on housekeeping, of a bridge", |f| f.host.nics.push(bridge("0")), Good),
            ("denied", |f| f.nic().rps[0].cpus = Reading::Denied, Unknown),
            ("no queues", |f| f.nic().rps.clear(), NotApplicable),
        ],
    );
    check(
        "nic.xps",
        &[
            ("housekeeping", |_| {}, Good),
            ("a separate queue", |f| f.nic().xps = mask("9"), Good),
            ("shared", |f| f.nic().xps = mask("8,9"), Wrong),
            ("denied", |f| f.nic().xps[0].cpus = Reading::Denied, Unknown),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
}

/// An interface without a device, steered to these CPUs.
fn bridge(cpus: &str) -> Nic {
    Nic { name: "br0".into(), rps: mask(cpus), ..Nic::default() }
}

const TIMEOUT: &str = "/sys/class/net/eth0/gro_flush_timeout";
const DEFER: &str = "/sys/class/net/eth0/napi_defer_hard_irqs";

#[test]
fn merging_and_deferral_are_off() {
    check(
        "nic.lro",
        &[
            ("off", |_| {}, Good),
            ("LRO", |f| f.nic().offloads = known([("rx-lro".to_owned(), true)]), Wrong),
            ("GRO in hardware", |f| f.nic().offloads = known([("rx-gro-hw".to_owned(), true)]), Wrong),
            ("denied", |f| f.nic().offloads = Reading::Denied, Unknown),
            ("absent", |f| f.nic().offloads = Reading::Absent, NotApplicable),
        ],
    );
    check(
        "nic.gro_flush_timeout",
        &[
            ("0", |_| {}, Good),
            ("20 us", |f| f.file(TIMEOUT, known("20000")), Wrong),
            ("junk", |f| f.file(TIMEOUT, known("soon")), Unknown),
            ("denied", |f| f.file(TIMEOUT, Reading::Denied), Unknown),
            ("absent", |f| f.file(TIMEOUT, Reading::Absent), NotApplicable),
        ],
    );
    check(
        "nic.napi_defer_hard_irqs",
        &[
            ("0", |_| {}, Good),
            ("10", |f| f.file(DEFER, known("10")), Wrong),
            ("denied", |f| f.file(DEFER, Reading::Denied), Unknown),
            ("absent", |f| f.file(DEFER, Reading::Absent), NotApplicable),
        ],
    );
    let mut fixture = good_host();
    fixture.file(DEFER, known("10"));
    assert!(fixture.finding("nic.napi_defer_hard_irqs").because.contains("no effect"));
}

#[test]
fn the_nic_is_near_isolated_cpus() {
    check(
        "nic.numa_node",
        &[
            ("known", |_| {}, Good),
            ("-1", |f| f.nic().node = Reading::Known(-1), Wrong),
            ("denied", |f| f.nic().node = Reading::Denied, Unknown),
            ("no bus", |f| f.nic().node = Reading::Absent, NotApplicable),
            ("one node", |f| f.host.topology.nodes.truncate(1), NotApplicable),
        ],
    );
    check(
        "nic.isolated_cpus_near",
        &[
            ("near", |_| {}, Good),
            ("on the other node", |f| f.allocation.isolated = cpus("1-7"), Wrong),
            ("node not reported", |f| f.nic().node = Reading::Known(-1), Unknown),
            ("none isolated", Fixture::no_isolated, NotApplicable),
            ("one node", |f| f.host.topology.nodes.truncate(1), NotApplicable),
        ],
    );
}

fn link(f: &mut Fixture, change: impl FnOnce(&mut PcieLink)) {
    if let Reading::Known(link) = &mut f.nic().link {
        change(link);
    }
}

/// Sets the registers of an X722 with a port of 10 Gb/s.
fn x722(f: &mut Fixture, speed: &str, speed_max: &str) {
    f.nic().pci_id = known("8086:37D0");
    f.nic().speed_mbps = known(10_000u32);
    let (now, max) = (known(speed), known(speed_max));
    link(f, |l| (l.width, l.width_max, l.speed, l.speed_max) = (known(1u32), known(1u32), now, max));
}

#[test]
fn the_pcie_link_is_full_and_awake() {
    check(
        "nic.pcie_link_width",
        &[
            ("x8", |_| {}, Good),
            ("x4 of x8", |f| link(f, |l| l.width = known(4u32)), Wrong),
            ("a virtual function", |f| link(f, |l| l.width = known(0u32)), NotApplicable),
            ("denied", |f| link(f, |l| l.width = Reading::Denied), Unknown),
            ("no link", |f| f.nic().link = Reading::Absent, NotApplicable),
        ],
    );
    check(
        "nic.pcie_link_speed",
        &[
            ("8 GT/s", |_| {}, Good),
            ("2.5 of 8", |f| link(f, |l| l.speed = known("2.5 GT/s PCIe")), Wrong),
            (
                "16.0 needs more than text order",
                |f| link(f, |l| l.speed_max = known("16.0 GT/s PCIe")),
                Wrong,
            ),
            ("X722, by its number", |f| x722(f, "2.5 GT/s PCIe", "8.0 GT/s PCIe"), NotApplicable),
            (
                "another one in a chipset, which could not do what its port does",
                |f| {
                    x722(f, "2.5 GT/s PCIe", "2.5 GT/s PCIe");
                    f.nic().pci_id = known("8086:15c4");
                },
                NotApplicable,
            ),
            (
                "a card in a narrow slot",
                |f| {
                    x722(f, "2.5 GT/s PCIe", "8.0 GT/s PCIe");
                    f.nic().pci_id = known("8086:1572");
                    link(f, |l| l.width_max = known(8u32));
                },
                Wrong,
            ),
            ("junk", |f| link(f, |l| l.speed = known("Unknown")), Unknown),
            ("multi-byte junk", |f| link(f, |l| l.speed = known("1.é GT/s")), Unknown),
            ("denied", |f| f.nic().link = Reading::Denied, Unknown),
        ],
    );
    check(
        "nic.pcie_aspm",
        &[
            ("off", |_| {}, Good),
            ("on", |f| link(f, |l| l.aspm = known(true)), Wrong),
            ("no switch", |f| link(f, |l| l.aspm = Reading::Absent), Unknown),
            ("no link", |f| f.nic().link = Reading::Absent, NotApplicable),
        ],
    );
}

const VERSION: &str = "/sys/module/onload/version";

#[test]
fn time_stamps_and_solarflare() {
    check(
        "nic.hardware_timestamping",
        &[
            ("all", |_| {}, Good),
            (
                "no clock",
                |f| {
                    f.nic().timestamping =
                        known(Timestamping { hardware_rx: true, hardware_tx: true, phc_index: None });
                },
                Wrong,
            ),
            ("none", |f| f.nic().timestamping = Reading::Absent, Wrong),
            ("denied", |f| f.nic().timestamping = Reading::Denied, Unknown),
            ("no NIC", no_nic, NotApplicable),
        ],
    );
    check(
        "nic.solarflare_firmware_variant",
        &[
            ("rx1 tx1 stands in the version of every variant", |_| {}, Unknown),
            ("another version", |f| f.nic().firmware = known("8.0.2.1000 rx0 tx0"), Unknown),
            ("another card", |f| f.nic().driver = known("mlx5_core"), NotApplicable),
        ],
    );
    check(
        "nic.onload",
        &[
            ("loaded", |_| {}, Good),
            ("not loaded", |f| f.file(VERSION, Reading::Absent), Wrong),
            ("denied", |f| f.file(VERSION, Reading::Denied), Unknown),
            ("another card", |f| f.nic().driver = known("mlx5_core"), NotApplicable),
        ],
    );
}

#[test]
fn moderation_of_both_directions_is_judged_apart() {
    fn with(f: &mut Fixture, change: fn(&mut Coalescing)) {
        if let Reading::Known(coalescing) = &mut f.nic().coalescing {
            change(coalescing);
        }
    }
    check(
        "nic.rx_usecs_irq",
        &[
            ("not offered", |_| {}, NotApplicable),
            ("0", |f| with(f, |c| c.rx_usecs_irq = Some(0)), Good),
            ("60, and rx-usecs is 0", |f| with(f, |c| c.rx_usecs_irq = Some(60)), Wrong),
        ],
    );
    check(
        "nic.tx_usecs",
        &[("not offered", |_| {}, NotApplicable), ("150", |f| with(f, |c| c.tx_usecs = Some(150)), Wrong)],
    );
    check("nic.adaptive_tx", &[("on", |f| with(f, |c| c.adaptive_tx = Some(true)), Wrong)]);
}

#[test]
fn both_ends_of_the_link_are_left_alone() {
    fn fec(f: &mut Fixture, configured: &str, active: Option<&str>) {
        let configured = configured.split(' ').map(str::to_owned).collect();
        f.nic().fec = known(Fec { configured, active: active.map(str::to_owned) });
    }
    check(
        "nic.pause",
        &[
            ("none", |_| {}, NotApplicable),
            ("off", |f| f.nic().pause = known(Pause { autoneg: true, rx: false, tx: false }), Good),
            ("rx", |f| f.nic().pause = known(Pause { autoneg: true, rx: true, tx: false }), Wrong),
            ("denied", |f| f.nic().pause = Reading::Denied, Unknown),
        ],
    );
    check(
        "nic.fec",
        &[
            ("none", |_| {}, NotApplicable),
            ("auto, none in use", |f| fec(f, "auto", Some("off")), Good),
            ("auto, RS in use", |f| fec(f, "auto", Some("rs")), Wrong),
            ("no link", |f| fec(f, "auto rs", None), Unknown),
            ("off and no link", |f| fec(f, "off", None), Good),
        ],
    );
    check(
        "nic.eee",
        &[
            ("none", |_| {}, NotApplicable),
            ("on", |f| f.nic().eee = known(Eee { eee: true, is_active: true }), Wrong),
            ("off", |f| f.nic().eee = known(Eee::default()), Good),
        ],
    );
}

#[test]
fn pause_frames_are_set_after_their_negotiation_is_off() {
    let steps = |autoneg: bool, rx: bool| -> Vec<String> {
        let mut fixture = good_host();
        fixture.nic().pause = known(Pause { autoneg, rx, tx: false });
        let steps = fixture.proposal("nic.pause").steps;
        steps.iter().map(|step| format!("{} {}", step.target.kind().facts().name, step.after)).collect()
    };
    assert_eq!(steps(true, true), ["eth0 autoneg pause off", "eth0 rx pause off"]);
    assert_eq!(steps(false, true), ["eth0 rx pause off"]);
    assert_eq!(steps(true, false), [""; 0]);
}

fn napis(f: &mut Fixture, change: fn(&mut Napi)) {
    let mut napi = Napi {
        name: "rx-0".into(),
        irq: Some(40),
        queues: vec!["rx-0".into()],
        defer_hard_irqs: Some(0),
        gro_flush_timeout_ns: Some(0),
        irq_suspend_timeout_ns: Some(0),
        ..Napi::default()
    };
    change(&mut napi);
    f.nic().napis = known(vec![napi]);
    for name in ["gro_flush_timeout", "napi_defer_hard_irqs"] {
        f.file(&format!("/sys/class/net/eth0/{name}"), known("0"));
    }
}

#[test]
fn one_instance_that_defers_is_a_fault_unless_an_application_polls() {
    check(
        "nic.gro_flush_timeout",
        &[
            ("0 everywhere", |f| napis(f, |_| {}), Good),
            ("one instance", |f| napis(f, |napi| napi.gro_flush_timeout_ns = Some(20_000)), Wrong),
            (
                "one instance whose interrupts are suspended",
                |f| {
                    napis(f, |napi| {
                        napi.gro_flush_timeout_ns = Some(20_000);
                        napi.irq_suspend_timeout_ns = Some(1);
                    });
                },
                Good,
            ),
        ],
    );
    check(
        "nic.napi_defer_hard_irqs",
        &[("one instance", |f| napis(f, |napi| napi.defer_hard_irqs = Some(2)), Wrong)],
    );
    check(
        "nic.irq_suspend_timeout",
        &[
            ("not listed", |_| {}, NotApplicable),
            ("0", |f| napis(f, |_| {}), Good),
            ("alone", |f| napis(f, |napi| napi.irq_suspend_timeout_ns = Some(9)), Wrong),
            (
                "with its timer",
                |f| {
                    napis(f, |napi| {
                        napi.irq_suspend_timeout_ns = Some(20_000_000);
                        (napi.defer_hard_irqs, napi.gro_flush_timeout_ns) = (Some(100), Some(50_000));
                    });
                },
                Good,
            ),
            ("denied", |f| f.nic().napis = Reading::Denied, Unknown),
            (
                "0 where applications busy-poll",
                |f| {
                    napis(f, |_| {});
                    f.role.is_busy_polling = true;
                },
                Wrong,
            ),
        ],
    );
    let mut fixture = good_host();
    napis(&mut fixture, |_| {});
    fixture.role.is_busy_polling = true;
    let steps = fixture.proposal("nic.irq_suspend_timeout").steps;
    let planned: Vec<String> =
        steps.iter().map(|step| format!("{} {}", step.target.kind().facts().name, step.after)).collect();
    let expected = [
        "eth0 rx-0/defer-hard-irqs 100",
        "eth0 rx-0/gro-flush-timeout 50000",
        "eth0 rx-0/irq-suspend-timeout 20000000",
    ];
    assert_eq!(planned, expected);
    for step in &steps {
        step.target.kind().put(&mut fixture.host, &step.after);
    }
    for id in ["nic.irq_suspend_timeout", "nic.gro_flush_timeout", "nic.napi_defer_hard_irqs"] {
        assert_eq!(fixture.finding(id).verdict, Good, "{id}");
    }
    check(
        "nic.onload_queues",
        &[
            ("no role with Onload", |_| {}, NotApplicable),
            ("no role, not registered", |f| f.nic().onload_queues = known(0_u32), NotApplicable),
            ("registered", |f| f.nic().onload_queues = known(2_u32), Good),
            ("no module", |f| f.role.is_using_onload = true, Unknown),
            ("denied", |f| f.nic().onload_queues = Reading::Denied, Unknown),
        ],
    );
    let mut fixture = good_host();
    (fixture.nic().onload_queues, fixture.role.is_using_onload) = (Reading::Known(0), true);
    assert_eq!(fixture.finding("nic.onload_queues").verdict, Wrong);
    let steps = fixture.proposal("nic.onload_queues").steps;
    for step in &steps {
        step.target.kind().put(&mut fixture.host, &step.after);
    }
    assert_eq!((steps.len(), fixture.finding("nic.onload_queues").verdict), (1, Good));
    let path = "/sys/class/net/eth0/threaded";
    let mut fixture = good_host();
    for (text, verdict) in [("0", Good), ("1", Wrong)] {
        fixture.file(path, known(text));
        assert_eq!(fixture.finding("nic.threaded").verdict, verdict, "{text}");
    }
}

#[test]
fn the_table_spreads_over_queues_off_isolated_cpus() {
    fn table(f: &mut Fixture, cpus_of_irq: &str) {
        napis(f, |_| {});
        f.nic().rss_indirection = known(vec![0, 0]);
        for irq in &mut f.host.interrupts.irqs {
            irq.effective_affinity = known(cpus(cpus_of_irq));
        }
    }
    check(
        "nic.rss_indirection",
        &[
            ("no table", |_| {}, NotApplicable),
            ("housekeeping", |f| table(f, "0"), Good),
            ("isolated", |f| table(f, "1"), Wrong),
            ("queues without interrupts", |f| f.nic().rss_indirection = known(vec![0]), Unknown),
        ],
    );
}

#[test]
fn lost_packets_are_named() {
    fn lost(f: &mut Fixture, name: &str, count: u64) {
        f.nic().drops = [(name.to_owned(), count)].into();
    }
    check(
        "nic.drops",
        &[
            ("not read", |_| {}, Unknown),
            ("none", |f| lost(f, "rx_crc_errors", 0), Good),
            ("of unknown protocols", |f| lost(f, "rx_dropped", 9), Good),
            ("damaged", |f| lost(f, "rx_crc_errors", 1), Wrong),
        ],
    );
}

#[test]
fn time_stamps_leave_tickless_cpus_alone_on_newer_kernels() {
    check(
        "nic.timestamp_static_key",
        &[
            ("nohz_full on 6.12", |_| {}, Good),
            ("isolated with ticks", |f| f.host.topology.nohz_full = Reading::Absent, Wrong),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
}

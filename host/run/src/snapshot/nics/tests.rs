use super::*;
use crate::testing::TestTree;

const FUNCTION: &str = "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0";

/// A Solarflare adapter and lo, and a file that is not an interface.
fn host() -> TestTree {
    let function = |name: &str| format!("{FUNCTION}/{name}");
    let net = |name: &str| format!("{FUNCTION}/net/eth0/{name}");
    TestTree::new()
        .link("/sys/class/net/eth0", &format!("{FUNCTION}/net/eth0"))
        .file("/sys/class/net/bonding_masters", "")
        .file("/sys/class/net/lo/address", "00:00:00:00:00:00\n")
        .file("/sys/class/net/lo/mtu", "65536\n")
        .file(&net("address"), "00:0f:53:65:4a:10\n")
        .file(&net("operstate"), "up\n")
        .file(&net("speed"), "10000\n")
        .file(&net("mtu"), "1500\n")
        .link(&net("device"), "../../../0000:41:00.0")
        .file(&net("queues/rx-0/rps_cpus"), "0000,00000000\n")
        .file(&net("queues/rx-10/rps_cpus"), "f\n")
        .file(&net("queues/rx-2/rps_cpus"), "junk\n")
        .file(&net("queues/tx-0/xps_cpus"), "1\n")
        .file(&function("vendor"), "0x1924\n")
        .file(&function("device"), "0x0a03\n")
        .file(&function("numa_node"), "1\n")
        .file(&function("msi_irqs/121"), "msix\n")
        .file(&function("msi_irqs/98"), "msix\n")
        .file(&function("irq"), "16\n")
        .file(&function("current_link_width"), "8\n")
        .file(&function("max_link_width"), "16\n")
        .file(&function("current_link_speed"), "8.0 GT/s PCIe\n")
        .file(&function("link/l0s_aspm"), "0\n")
        .file(&function("link/l1_aspm"), "1\n")
        .dir("/sys/bus/pci/drivers/sfc")
        .link(&function("driver"), "/sys/bus/pci/drivers/sfc")
        .file("/sys/module/sfc/version", "5.3.16\n")
}

#[test]
fn an_adapter_is_read_with_its_function() {
    let nics = read(&host().root());
    let names: Vec<&str> = nics.iter().map(|nic| nic.name.as_str()).collect();
    assert_eq!(names, ["eth0", "lo"]);
    let nic = &nics[0];
    assert!(nic.is_physical && !nics[1].is_physical);
    assert_eq!((nic.driver.text(), nic.driver_version.text()), ("sfc", "5.3.16"));
    assert_eq!((nic.bus.text(), nic.pci_id.text()), ("0000:41:00.0", "1924:0a03"));
    assert_eq!((nic.oui_vendor.text(), nic.operstate.text()), ("Solarflare", "up"));
    assert_eq!(
        (nic.speed_mbps.clone(), nic.mtu_bytes.clone()),
        (Reading::Known(10_000), Reading::Known(1_500))
    );
    assert_eq!((nic.node.clone(), nic.irqs.as_slice()), (Reading::Known(1), &[98, 121][..]));
    let link = nic.link.known().unwrap();
    assert_eq!((link.width.clone(), link.width_max.clone()), (Reading::Known(8), Reading::Known(16)));
    assert_eq!((link.speed.text(), link.aspm.clone()), ("8.0 GT/s PCIe", Reading::Known(true)));
    assert!(link.speed_max.is_absent());
    let queues: Vec<&str> = nic.rps.iter().map(|queue| queue.queue.as_str()).collect();
    assert_eq!(queues, ["rx-0", "rx-2", "rx-10"]);
    assert_eq!(nic.rps[0].cpus.known().map(lowlat_host::CpuSet::len), Some(0));
    assert!(matches!(nic.rps[1].cpus, Reading::Unparsable(_)));
    assert_eq!(nic.xps[0].cpus.to_string(), "0");
    assert!(matches!(nic.channels, Reading::Unparsable(_)));
}

#[test]
fn an_interface_whose_link_was_not_kept_is_unread_and_not_missing() {
    let unread = |tree: TestTree| {
        let root = tree.root();
        let names: Vec<String> = read(&root).into_iter().map(|nic| nic.name).collect();
        (names, root.take_unread().remove("/sys/class/net"))
    };
    let (names, place) = unread(host());
    assert_eq!((names.len(), place), (2, None), "a file such as bonding_masters is no interface");
    // As git without symbolic links and zip extract a link.
    let (names, place) =
        unread(host().file("/sys/class/net/eth1", "../../devices/pci0000:00/0000:00:03.0/net/eth1"));
    assert!(names.len() == 2 && matches!(place, Some(Reading::Unparsable(_))), "{place:?}");
    let (_, place) =
        unread(host().link("/sys/class/net/eth2", "../../devices/pci0000:00/0000:00:04.0/net/eth2"));
    assert!(matches!(place, Some(Reading::Unparsable(_))), "{place:?}");
}

#[test]
fn an_interface_without_a_device_has_none_of_its_facts() {
    let lo = &read(&host().root())[1];
    assert!(lo.bus.is_absent() && lo.node.is_absent() && lo.link.is_absent() && lo.oui_vendor.is_absent());
    assert!(lo.speed_mbps.is_absent() && lo.irqs.is_empty() && lo.driver.is_absent());
}

#[test]
fn a_link_that_is_down_has_no_speed_and_a_line_interrupt_is_taken_without_messages() {
    for speed in ["-1", "4294967295"] {
        let tree = TestTree::of(&[("/sys/class/net/a/address", "x"), ("/sys/class/net/a/speed", speed)]);
        assert!(read(&tree.root())[0].speed_mbps.is_absent(), "{speed}");
    }
    let tree = TestTree::new()
        .file("/sys/devices/pci0000:00/0000:00:03.0/irq", "11\n")
        .dir("/sys/devices/pci0000:00/0000:00:03.0/virtio2")
        .file("/sys/class/net/a/address", "52:54:00:00:00:01\n")
        .link("/sys/class/net/a/device", "/sys/devices/pci0000:00/0000:00:03.0/virtio2");
    let nic = &read(&tree.root())[0];
    assert_eq!(
        (nic.irqs.as_slice(), nic.bus.text(), nic.oui_vendor.text()),
        (&[11][..], "0000:00:03.0", "QEMU")
    );
}

#[test]
fn ethtool_fills_what_files_leave_open() {
    let driver = ethtool::Driver { name: "other".into(), version: "9".into(), firmware: "8.5.1.1000".into() };
    let answers = Answers { driver: Reading::Known(driver), ..Answers::default() };
    let nic =
        with_answers(Nic { driver: Reading::Known("sfc".into()), ..Nic::default() }, Reading::Known(answers));
    assert_eq!(
        (nic.driver.text(), nic.driver_version.text(), nic.firmware.text()),
        ("sfc", "9", "8.5.1.1000")
    );
    let silent = Answers { driver: Reading::Known(ethtool::Driver::default()), ..Answers::default() };
    assert!(with_answers(Nic::default(), Reading::Known(silent)).firmware.is_absent());
    assert_eq!(with_answers(Nic::default(), Reading::Denied).firmware, Reading::Denied);
}

#[test]
fn the_live_host_has_a_loopback_interface_or_none_at_all() {
    let nics = read(&Root::live());
    if nics.is_empty() {
        eprintln!("skipped: no network interface in /sys/class/net");
        return;
    }
    let lo = nics.iter().find(|nic| nic.name == "lo").expect("a network namespace has lo");
    assert!(lo.offloads.is_known() && lo.mtu_bytes.is_known(), "{lo:?}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
        let names = ["vendor", "device", "numa_node", "irq", "current_link_width", "link/l1_aspm"];
        let tree = names.iter().fold(host(), |tree, name| tree.file(&format!("{FUNCTION}/{name}"), &bytes));
        let names = ["address", "speed", "mtu", "operstate", "queues/rx-0/rps_cpus"];
        let tree = names.iter().fold(tree, |tree, name| tree.file(&format!("{FUNCTION}/net/eth0/{name}"), &bytes));
        assert_eq!(read(&tree.root()).len(), 2);
    }
}

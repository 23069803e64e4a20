use super::{super::plain, *};
use crate::netlink::message::{self, attribute};
use crate::testing::TestTree;
use lowlat_settings::change::nic::{self, NicKind};
use std::process::Command;

fn setting(kind: &'static NicKind, name: &str) -> Option<Setting> {
    Setting::of(kind.ethtool()?, name)
}

fn number(kind: u16, number: u32) -> Vec<u8> {
    attribute(kind, &number.to_ne_bytes())
}

fn bit(index: u32, name: &str) -> Vec<u8> {
    attribute(
        1 | message::NESTED,
        &[number(1, index), attribute(2, &[name.as_bytes(), &[0]].concat())].concat(),
    )
}

fn bitset(kind: u16, bits: &[Vec<u8>]) -> Vec<u8> {
    let bits = attribute(3 | message::NESTED, &bits.concat());
    attribute(kind | message::NESTED, &[attribute(1, &[]), number(2, 64), bits].concat())
}

#[test]
fn answers_are_decoded_and_missing_values_are_distinguished_from_zero() {
    let answer = [number(2, 1), number(5, 64), number(6, 1), number(9, 16)].concat();
    let expected = Channels { rx: 1, tx: 0, combined: 16, rx_max: 1, tx_max: 0, combined_max: 64 };
    assert_eq!(decode::channels(EthtoolNumbers::Netlink(&answer)), expected);
    let rings = Rings { rx: 2, tx: 4, rx_max: 1, tx_max: 3 };
    assert_eq!(
        decode::rings(EthtoolNumbers::Netlink(
            &[number(2, 1), number(5, 3), number(6, 2), number(9, 4)].concat()
        )),
        rings
    );
    let coalescing =
        decode::coalescing(EthtoolNumbers::Netlink(&[number(2, 0), attribute(11, &[1])].concat()));
    let expected = Coalescing { rx_usecs: Some(0), adaptive_rx: Some(true), ..Coalescing::default() };
    assert_eq!(coalescing, expected);
    let by_ioctl = decode::coalescing(EthtoolNumbers::Structure(&[0; 92]));
    assert_eq!(by_ioctl.adaptive_tx, Some(false));
    let queue = Coalescing { adaptive_rx: Some(false), ..expected.clone() };
    assert_eq!(
        decode::as_far_as(&by_ioctl, Some(&expected)),
        queue,
        "an unsupported value of a queue is not zero"
    );
}

#[test]
fn features_and_time_stamps_come_from_bitsets() {
    let answer = [
        bitset(2, &[bit(0, "rx-gro"), bit(1, "tx-scatter-gather"), bit(9, "loopback")]),
        bitset(4, &[bit(0, "rx-gro")]),
    ];
    let features = decode::features(&answer.concat());
    let on: Vec<(&str, bool)> = features.iter().map(|(name, is_on)| (name.as_str(), *is_on)).collect();
    assert_eq!(on, [("loopback", false), ("rx-gro", true), ("tx-scatter-gather", false)]);
    let answer =
        [bitset(2, &[bit(0, "hardware-transmit"), bit(4, "software-system-clock")]), number(5, 3)].concat();
    let expected = Timestamping { hardware_rx: false, hardware_tx: true, phc_index: Some(3) };
    assert_eq!(decode::timestamping(&answer), expected);
}

#[test]
fn switches_contexts_priorities_and_modules_are_decoded() {
    let on = |index: u32, name: &str| {
        let name = attribute(2, &[name.as_bytes(), &[0]].concat());
        attribute(1 | message::NESTED, &[number(1, index), name, attribute(3, &[])].concat())
    };
    let flags = decode::private_flags(&bitset(2, &[bit(0, "legacy-rx"), on(1, "s0ix-enabled")]));
    assert_eq!(flags, [("legacy-rx".to_owned(), false), ("s0ix-enabled".to_owned(), true)].into());
    let table =
        |queues: &[u32]| attribute(4, &queues.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<_>>());
    let context = [number(2, 1), table(&[4, 5, 4, 5])].concat();
    assert_eq!(decode::rss_context(&context), Some((1, vec![4, 5])));
    assert_eq!(decode::rss_context(&table(&[0, 1])), None, "the interface's own has no number");
    // Classes 3 and 4 of 8 have flow control.
    let pfc = attribute(2, &[8, 0b1_1000, 0, 0]);
    let answer =
        |inner: &[u8]| [&[0, 21, 0, 0], attribute(0x0D | message::NESTED, inner).as_slice()].concat();
    assert_eq!(decode::pfc(&answer(&pfc)), Some(vec![3, 4]));
    assert_eq!(decode::pfc(&answer(&attribute(2, &[8, 0, 0, 0]))), Some(vec![]));
    assert_eq!((decode::pfc(&answer(&[])), decode::pfc(&[])), (None, None), "not off: not known");
    let mut memory = vec![0; 256];
    memory[0] = 0x11;
    memory[148..164].copy_from_slice(b"FINISAR CORP.   ");
    memory[168..184].copy_from_slice(b"FTLC9551REPM    ");
    assert_eq!(decode::module(&memory).as_deref(), Some("QSFP28 FINISAR CORP. FTLC9551REPM"));
    memory[0] = 0x03;
    memory[20..36].copy_from_slice(b"Solarflare      ");
    assert_eq!(decode::module(&memory[..128]).as_deref(), Some("SFP Solarflare"), "without its upper half");
    memory[0] = 0x77;
    assert_eq!((decode::module(&memory), decode::module(&[])), (None, None));
}

/// Losses of a driver as `ethtool -S` prints them; `None` without ethtool.
fn losses_by_ethtool(interface: &str) -> Option<BTreeMap<String, u64>> {
    let output = Command::new("ethtool").args(["-S", interface]).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let counters = text.lines().filter_map(|line| line.trim().rsplit_once(": "));
    let counters = counters.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    Some(counters.filter(|(name, _)| name.contains("drop") || name.contains("err")).collect())
}

#[test]
fn a_capture_returns_the_answers() {
    let answers_before = Answers {
        driver: Reading::Known(Driver { name: "sfc".into(), version: "6".into(), firmware: "8.5.1".into() }),
        channels: Reading::Denied,
        ..Answers::default()
    };
    let tree =
        TestTree::new().file("/.lowlat/interface/ethtool/eth0", serde_json::to_vec(&answers_before).unwrap());
    assert_eq!(answers(&tree.root(), "eth0"), Reading::Known(answers_before));
    assert!(matches!(answers(&tree.root(), "eth1"), Reading::Unparsable(_)));
    assert_eq!(plain("a/../b:1"), "a____b_1");
}

/// Runs the test in a separate network namespace with a pair of virtual Ethernet interfaces, which is removed
/// with the thread; `false` if this user may not create one.
pub(super) fn in_namespace_with_veth(test: impl FnOnce() + Send + 'static) -> bool {
    let in_thread = move || {
        // SAFETY: only the network namespace is left, which changes nothing that memory or open files rely on; the
        // file table stays shared with the other threads.
        let left = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) };
        let add = || {
            Command::new("ip")
                .args("link add lowlat0 numrxqueues 4 numtxqueues 4 type veth peer name lowlat1".split(' '))
                .output()
        };
        let is_there = left.is_ok() && add().is_ok_and(|output| output.status.success());
        if is_there {
            test();
        }
        is_there
    };
    std::thread::spawn(in_thread).join().unwrap()
}

#[test]
fn a_virtual_interface_answers_over_netlink_and_ioctl() {
    let is_run = in_namespace_with_veth(|| {
        let answers = ask("lowlat0");
        assert_eq!(answers.driver.known().unwrap().name, "veth");
        let features = answers.offloads.known().unwrap();
        assert!(features.contains_key("rx-gro") && features.values().any(|is_on| *is_on), "{features:?}");
        assert_eq!(ioctl::features("lowlat0").unwrap(), *features, "both ways report the same");
        let stamps = answers.timestamping.known().unwrap();
        assert_eq!(*stamps, Timestamping::default(), "veth stamps in software only");
        assert_eq!(ioctl::timestamping("lowlat0").unwrap(), *stamps);
        if let Reading::Known(channels) = &answers.channels {
            assert_eq!(
                decode::channels(EthtoolNumbers::Structure(
                    &ioctl::fixed("lowlat0", ioctl::command::CHANNELS).unwrap()
                )),
                *channels
            );
        }
        assert!(answers.coalescing.is_absent(), "veth has no coalescing: {:?}", answers.coalescing);
        assert!(answers.flow_rules.is_absent() && answers.pfc_priorities.is_absent(), "{answers:?}");
        assert!(answers.transceiver.is_absent() && answers.queue_coalescing.is_absent(), "{answers:?}");
        match losses_by_ethtool("lowlat0") {
            Some(losses) => assert_eq!(*answers.driver_drops.known().unwrap(), losses),
            None => eprintln!("skipped: counters of a driver: there is no ethtool command"),
        }
        assert_eq!(ask("none0"), Answers::default());
        assert_eq!(ask("a name that is too long"), Answers::default());
    });
    if !is_run {
        eprintln!("skipped: may not make a network namespace with a veth pair, or there is no ip command");
    }
}

#[test]
fn values_are_read_by_what_the_setting_takes() {
    let channels = setting(&nic::CHANNELS, "combined").unwrap();
    assert_eq!(channels.value("8\n").unwrap(), Value::Number(8));
    let adaptive = setting(&nic::COALESCING, "adaptive-rx").unwrap();
    assert_eq!(adaptive.value("on").unwrap().to_string(), "on");
    for (setting, text) in [(&channels, "on"), (&channels, "-1"), (&channels, ""), (&adaptive, "1")] {
        let error = setting.value(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("found {text:?}, expected ")), "{error}");
    }
    assert!(setting(&nic::CHANNELS, "rx-usecs").is_none() && setting(&nic::COALESCING, "").is_none());
    assert!(setting(&nic::FEATURE, "").is_none() && setting(&nic::FEATURE, &"x".repeat(32)).is_none());
    assert!(setting(&nic::FEATURE, "rx lro").is_none());
}

#[test]
fn a_virtual_interface_is_changed_over_netlink_and_ioctl() {
    let is_run = in_namespace_with_veth(|| {
        let (on, off) = (Value::Switch(true), Value::Switch(false));
        let checksum = setting(&nic::FEATURE, "tx-checksum-ip-generic").unwrap();
        assert_eq!(checksum.get("lowlat0").unwrap(), Some(on.clone()));
        checksum.set("lowlat0", &off).unwrap();
        assert_eq!(checksum.get("lowlat0").unwrap(), Some(off.clone()));
        ioctl::set_feature("lowlat0", "tx-checksum-ip-generic", true).unwrap();
        assert_eq!(checksum.get("lowlat0").unwrap(), Some(on.clone()));
        // Software segmentation needs scatter-gather: without it the kernel ignores the request.
        setting(&nic::FEATURE, "tx-scatter-gather").unwrap().set("lowlat0", &off).unwrap();
        let error =
            setting(&nic::FEATURE, "tx-generic-segmentation").unwrap().set("lowlat0", &on).unwrap_err();
        assert!(
            error.to_string().starts_with("the driver accepted the change but left the value off: "),
            "{error}"
        );
        let rx = setting(&nic::CHANNELS, "rx").unwrap();
        match rx.get("lowlat0").unwrap() {
            Some(Value::Number(count @ 2..)) => {
                rx.set("lowlat0", &Value::Number(count - 1)).unwrap();
                assert_eq!(rx.get("lowlat0").unwrap(), Some(Value::Number(count - 1)));
                ioctl::set_word("lowlat0", ioctl::command::CHANNELS, 5, u32::try_from(count).unwrap())
                    .unwrap();
                assert_eq!(rx.get("lowlat0").unwrap(), Some(Value::Number(count)));
                let error = rx.set("lowlat0", &Value::Number(9_999)).unwrap_err().to_string();
                assert!(error.contains("requested channel count exceeds maximum"), "{error}");
                assert!(
                    error.ends_with("the driver does not accept this value; leave this step out"),
                    "{error}"
                );
            }
            other => eprintln!("skipped: this kernel's veth cannot change its queues ({other:?})"),
        }
        let usecs = setting(&nic::COALESCING, "rx-usecs").unwrap();
        assert_eq!(usecs.get("lowlat0").unwrap(), None);
        let error = usecs.set("lowlat0", &Value::Number(0)).unwrap_err().to_string();
        assert!(error.contains("the driver does not support this setting"), "{error}");
        assert_eq!(checksum.get("none0").unwrap(), None);
        let error = checksum.set("none0", &on).unwrap_err().to_string();
        assert!(error.ends_with("the interface does not exist; make a new plan"), "{error}");
        for bad in ["a name that is too long", ""] {
            assert!(checksum.set(bad, &on).is_err(), "{bad}");
        }
    });
    if !is_run {
        eprintln!("skipped: may not make a network namespace with a veth pair, or there is no ip command");
    }
}

#[test]
fn a_tap_interface_has_its_coalescing_changed() {
    let is_run = in_namespace_with_veth(|| {
        let made =
            Command::new("ip").args(["tuntap", "add", "dev", "lowlat2", "mode", "tap"]).output().unwrap();
        if !made.status.success() {
            eprintln!("skipped: cannot make a tap interface: {}", String::from_utf8_lossy(&made.stderr));
            return;
        }
        let frames = setting(&nic::COALESCING, "rx-frames").unwrap();
        assert_eq!(frames.get("lowlat2").unwrap(), Some(Value::Number(0)));
        frames.set("lowlat2", &Value::Number(8)).unwrap();
        assert_eq!(frames.get("lowlat2").unwrap(), Some(Value::Number(8)));
        ioctl::set_word("lowlat2", ioctl::command::COALESCING, 2, 4).unwrap();
        assert_eq!(frames.get("lowlat2").unwrap(), Some(Value::Number(4)));
        let error = setting(&nic::COALESCING, "adaptive-rx")
            .unwrap()
            .set("lowlat2", &Value::Switch(true))
            .unwrap_err();
        assert!(error.to_string().contains("leave this step out"), "{error}");
    });
    if !is_run {
        eprintln!("skipped: may not make a network namespace with a veth pair, or there is no ip command");
    }
}

#[test]
fn a_capture_of_an_earlier_version_does_not_say_that_the_driver_lacks_what_it_was_not_asked() {
    let absent = r#"{"driver":"absent","channels":"absent","rings":"absent","coalescing":"absent",
        "offloads":"absent","timestamping":"absent"}"#;
    let tree = TestTree::new().file("/.lowlat/interface/ethtool/eth0", absent.as_bytes());
    let answers = answers(&tree.root(), "eth0").into_known().unwrap();
    assert!(answers.channels.is_absent());
    assert!(matches!(answers.pause, Reading::Unparsable(_)), "{:?}", answers.pause);
    assert!(matches!(answers.rss_indirection, Reading::Unparsable(_)));
}

#[test]
fn pause_frames_energy_saving_and_error_correction_are_decoded() {
    let on = |kind: u16| attribute(kind, &[1]);
    let pause = Pause { autoneg: false, rx: true, tx: false };
    assert_eq!(decode::pause(EthtoolNumbers::Netlink(&[attribute(2, &[0]), on(3)].concat())), pause);
    assert_eq!(decode::eee(&[attribute(4, &[0]), on(5)].concat()), Eee { eee: true, is_active: false });
    let modes = bitset(2, &[bit(50, "RS"), bit(51, "BASER")]);
    let fec = Fec { configured: vec!["auto".into(), "rs".into(), "baser".into()], active: Some("rs".into()) };
    assert_eq!(decode::fec(&[modes, on(3), number(4, 50)].concat()), fec);
    assert_eq!(decode::fec(&bitset(2, &[bit(49, "None")])).configured, ["off"]);
}

#[test]
fn each_value_of_a_napi_instance_is_changed_on_a_virtual_interface() {
    let is_run = in_namespace_with_veth(|| {
        for arguments in ["link set lowlat0 up", "link set lowlat1 up", "addr add 10.9.8.7/24 dev lowlat0"] {
            assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success(), "{arguments}");
        }
        let gro = setting(&nic::FEATURE, "rx-gro").unwrap();
        gro.set("lowlat0", &Value::Switch(true)).unwrap();
        let answers = napi::ask("lowlat0");
        let Reading::Known(napis) = &answers.napis else {
            eprintln!("skipped: this kernel does not list NAPI instances ({:?})", answers.napis);
            return;
        };
        assert_eq!(napis.len(), 4, "one for each receive queue with GRO: {napis:?}");
        // veth does not link its queues with their instances.
        let names: Vec<&str> = napis.iter().map(|napi| napi.name.as_str()).collect();
        assert_eq!(names, ["napi-0", "napi-1", "napi-2", "napi-3"]);
        assert!(answers.xdp_features.known().unwrap().contains(&"basic".to_owned()), "{answers:?}");
        let timeout = setting(&nic::NAPI, "napi-2/gro-flush-timeout").unwrap();
        assert_eq!(timeout.get("lowlat0").unwrap(), Some(Value::Number(0)));
        if let Err(error) = timeout.set("lowlat0", &Value::Number(20_000)) {
            eprintln!("skipped: this kernel does not change one NAPI instance (6.13): {error}");
            return;
        }
        assert_eq!(timeout.get("lowlat0").unwrap(), Some(Value::Number(20_000)));
        let other = setting(&nic::NAPI, "napi-1/gro-flush-timeout").unwrap();
        assert_eq!(other.get("lowlat0").unwrap(), Some(Value::Number(0)), "only one instance changed");
        for name in ["napi-0/defer-hard-irqs", "napi-0/irq-suspend-timeout"] {
            let value = setting(&nic::NAPI, name).unwrap();
            value.set("lowlat0", &Value::Number(100)).unwrap();
            assert_eq!(value.get("lowlat0").unwrap(), Some(Value::Number(100)), "{name}");
        }
        let [first, second] =
            [0, 1].map(|at: usize| napi::napi_instance(napis[at].napi_id).into_known().unwrap());
        assert_eq!((first.interface.as_str(), first.irq_suspend_timeout_ns), ("lowlat0", Some(100)));
        assert_eq!(second.irq_suspend_timeout_ns, Some(0));
        assert!(!napi::napi_instance(u32::MAX).is_known());
        let none = setting(&nic::NAPI, "napi-9/defer-hard-irqs").unwrap();
        assert_eq!(none.get("lowlat0").unwrap(), None);
        let entries = crate::netlink::list_addresses().unwrap();
        assert!(entries.iter().any(|entry| entry.windows(4).any(|bytes| bytes == [10, 9, 8, 7])));
    });
    if !is_run {
        eprintln!("skipped: may not make a network namespace with a veth pair, or there is no ip command");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), kind in 0u16..30) {
        for bytes in [bytes.clone(), attribute(kind, &bytes), bitset(kind, &[attribute(1, &bytes)])] {
            let numbers = EthtoolNumbers::Netlink(&bytes);
            let _ = (decode::channels(numbers), decode::rings(numbers), decode::coalescing(numbers));
            let _ = (decode::features(&bytes), decode::timestamping(&bytes));
            let _ = (decode::pause(numbers), decode::eee(&bytes), decode::fec(&bytes));
        }
        let tree = TestTree::new().file("/.lowlat/interface/ethtool/eth0", &bytes);
        let _ = answers(&tree.root(), "eth0");
    }
}

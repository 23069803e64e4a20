use super::*;

fn nic(name: &str) -> Nic {
    Nic { name: name.into(), is_physical: true, ..Nic::default() }
}

#[test]
fn a_port_without_carrier_is_unusable() {
    let mut port = nic("enp1s0f0");
    port.carrier = Reading::Known(false);
    assert!(unusable(&port).is_some_and(|why| why.starts_with("no carrier")));
    port.carrier = Reading::Known(true);
    assert_eq!(unusable(&port), None);
    // The kernel does not report the carrier of an interface that is down.
    port.carrier = Reading::Absent;
    port.operstate = Reading::Known("down".into());
    assert!(unusable(&port).is_some_and(|why| why.starts_with("down")));
    assert!(unusable(&nic("lo")).is_some_and(|why| why.starts_with("loopback")));
}

#[test]
fn a_solarflare_card_is_known_by_driver_and_address_and_its_variant_by_neither() {
    let mut card = nic("enp1s0f1");
    card.mac = Reading::Known("00:0F:53:65:4a:11".into());
    assert_eq!(Solarflare::of(&card), Solarflare::ByAddressOnly);
    card.driver = Reading::Known("sfc".into());
    card.firmware = Reading::Known("6.2.7.1001 rx1 tx1".into());
    assert_eq!(Solarflare::of(&card), Solarflare::ByDriverAndAddress);
    let host = HostSnapshot { nics: vec![card], ..HostSnapshot::default() };
    let none = CpuSet::default();
    let views = [NicView::of(&host, &none, &host.nics[0])];
    let text = anstream::adapter::strip_str(&nics_text(&host, &none, &views, 80)).to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("firmware variant not known"), "{text}");
    assert!(!text.contains("ultra-low-latency"), "{text}");
}

#[test]
fn several_interfaces_get_a_table_that_names_the_dead_port() {
    let mut dead = nic("enp1s0f0");
    dead.carrier = Reading::Known(false);
    let mut alive = nic("enp1s0f1");
    (alive.carrier, alive.speed_mbps) = (Reading::Known(true), Reading::Known(10_000));
    alive.addresses = Reading::Known(vec!["192.168.1.2/24".into()]);
    let host = HostSnapshot { nics: vec![dead, alive, nic("veth0")], ..HostSnapshot::default() };
    let none = CpuSet::default();
    let views: Vec<NicView<'_>> = host.nics[..2].iter().map(|nic| NicView::of(&host, &none, nic)).collect();
    let text = anstream::adapter::strip_str(&nics_text(&host, &none, &views, 80)).to_string();
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("enp1s0f0").contains("no carrier") && row("enp1s0f0").contains(" no"), "{text}");
    assert!(row("enp1s0f1").contains("yes") && row("enp1s0f1").contains("192.168.1.2/24"), "{text}");
    assert!(text.contains("Unusable for measurement: no carrier"), "{text}");
    assert!(text.contains("Other interfaces\n  veth0"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

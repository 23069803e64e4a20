//! AF_XDP between two network namespaces.

use super::{
    alone, check,
    runs::cpus,
    short,
    veth::{ADDRESSES, ADDRESSES_V6, INTERFACE, Pair, inside, pair, pair_of},
};
use lowlat_net::{
    pingpong::{PingpongRecord, Scenario, Transport, Waiting},
    xdp::{XdpEnds, XdpFacts, XdpMode, XdpOptions},
};
use lowlat_sys::route::{self, XdpAttached};

/// A scenario with messages of every kind of frame: without payload, padded, as long as the MTU allows.
fn scenario(mode: XdpMode, waiting: Waiting) -> Scenario {
    let xdp = Some(XdpOptions { mode, ends: XdpEnds::Both });
    Scenario { xdp, waiting, sizes: vec![0, 17, 32, 1_452], ..short(Transport::Xdp) }
}

/// The program on an end's interface.
fn attached(pair: &Pair, end: usize) -> Option<XdpAttached> {
    let find = || (1..64).filter_map(|index| route::interface(index).ok()).find(|one| one.name == INTERFACE);
    inside(&pair.names[end], find).join().unwrap().expect("the interface").xdp
}

fn facts(record: &PingpongRecord) -> [&XdpFacts; 2] {
    [&record.client, &record.server].map(|end| end.xdp.as_ref().expect("an end with AF_XDP"))
}

#[test]
fn every_mode_that_veth_has_passes_frames_and_leaves_nothing() {
    let _alone = alone();
    let Some(pair) = pair("every_mode_that_veth_has_passes_frames_and_leaves_nothing") else { return };
    for mode in [XdpMode::Native, XdpMode::Generic, XdpMode::Auto] {
        for waiting in [Waiting::Block, Waiting::BusyPoll, Waiting::Spin] {
            if waiting.spins() && cpus() < 2 {
                eprintln!("skipped: {mode}, {waiting}: one CPU");
                continue;
            }
            let record = pair.measure(scenario(mode, waiting));
            check(&record);
            let expected = if mode == XdpMode::Generic { XdpMode::Generic } else { XdpMode::Native };
            for facts in facts(&record) {
                assert_eq!((facts.mode(), facts.queues, &facts.fallback), (expected, 1, &None), "{facts:?}");
                assert_eq!(facts.interface, INTERFACE);
            }
            let p50 = record.sizes[2].figures.median_ns;
            eprintln!("xdp, {mode}, {waiting}: half round trip of 32 bytes {p50} ns");
            assert_eq!([attached(&pair, 0), attached(&pair, 1)], [None, None], "the programs are detached");
        }
    }
}

#[test]
fn frames_pass_over_ipv6_too() {
    let _alone = alone();
    let Some(pair) = pair("frames_pass_over_ipv6_too") else { return };
    let address = format!("[{}]", ADDRESSES_V6[1]);
    check(&pair.try_measure(scenario(XdpMode::Native, Waiting::Block), &address).unwrap());
}

#[test]
fn every_queue_has_a_socket() {
    let _alone = alone();
    let Some(pair) = pair_of("every_queue_has_a_socket", "3") else { return };
    for waiting in [Waiting::Block, Waiting::BusyPoll] {
        let record = pair.measure(scenario(XdpMode::Native, waiting));
        check(&record);
        assert_eq!(facts(&record).map(|facts| facts.queues), [3, 3]);
    }
}

#[test]
fn one_end_alone_reaches_a_socket_of_the_kernel() {
    let _alone = alone();
    let Some(pair) = pair("one_end_alone_reaches_a_socket_of_the_kernel") else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let xdp = Some(XdpOptions { mode, ends: XdpEnds::Client });
        let record = pair.measure(Scenario { xdp, ..scenario(mode, Waiting::Block) });
        check(&record);
        assert_eq!((record.client.xdp.unwrap().mode(), record.server.xdp), (mode, None));
    }
}

#[test]
fn what_veth_lacks_is_refused_with_a_hint_and_leaves_nothing() {
    let _alone = alone();
    let Some(pair) = pair("what_veth_lacks_is_refused_with_a_hint_and_leaves_nothing") else { return };
    let refused = |scenario| pair.try_measure(scenario, ADDRESSES[1]).unwrap_err().to_string();
    assert_eq!(
        refused(scenario(XdpMode::ZeroCopy, Waiting::Block)),
        "cannot use AF_XDP on eth0 in mode zero-copy: Operation not supported (os error 95)\nhint: use --xdp-mode native"
    );
    let long = Scenario { sizes: vec![32, 1_473], ..scenario(XdpMode::Native, Waiting::Block) };
    assert_eq!(
        refused(long),
        "cannot send 1473 bytes through AF_XDP: packets on eth0 carry 1472\nhint: name smaller ones with --sizes"
    );
    assert_eq!([attached(&pair, 0), attached(&pair, 1)], [None, None]);
}

#[test]
fn loopback_is_refused() {
    let _alone = alone();
    let server = super::Server::start();
    let error =
        super::client(scenario(XdpMode::Auto, Waiting::Block), &server.address.to_string()).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot use AF_XDP: interface lo does not use Ethernet\nhint:"),
        "{error}"
    );
}

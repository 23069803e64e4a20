//! AF_XDP between two network namespaces.

use super::{
    check,
    runs::cpus,
    short,
    veth::{ADDRESSES, ADDRESSES_V6, INTERFACE, Pair, inside, ip, pair, pair_of},
};
// Not beside real-time samplers: the kernel releases a closed socket's queue in a thread of ordinary priority.
use crate::beside_others;
use lowlat_net::{
    pingpong::{PingpongRecord, Scenario, Transport, Waiting},
    xdp::{Flow, XdpEnds, XdpFacts, XdpMode, XdpOptions, program},
};
use lowlat_net_run::{
    bpf::{Program, SocketMap, XdpPlace},
    route::{self, XdpAttached},
};
use std::{
    thread,
    time::{Duration, Instant},
};

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

/// A process that another test is just starting has every descriptor of this one until it runs its own program.
fn assert_nothing_attached(pair: &Pair) {
    let begun = Instant::now();
    while [0, 1].iter().any(|end| attached(pair, *end).is_some()) {
        assert!(begun.elapsed() < Duration::from_secs(10), "a program is still attached");
        thread::sleep(Duration::from_millis(10));
    }
}

fn facts(record: &PingpongRecord) -> [&XdpFacts; 2] {
    [&record.client, &record.server].map(|end| end.xdp.as_ref().expect("an end with AF_XDP"))
}

#[test]
fn every_mode_that_veth_has_passes_frames_and_leaves_nothing() {
    let _beside = beside_others();
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
            assert_nothing_attached(&pair);
        }
    }
}

#[test]
fn frames_pass_over_ipv6_too() {
    let _beside = beside_others();
    let Some(pair) = pair("frames_pass_over_ipv6_too") else { return };
    let address = format!("[{}]", ADDRESSES_V6[1]);
    check(&pair.try_measure(scenario(XdpMode::Native, Waiting::Block), &address).unwrap());
}

#[test]
fn every_queue_has_a_socket() {
    let _beside = beside_others();
    let Some(pair) = pair_of("every_queue_has_a_socket", "3") else { return };
    for waiting in [Waiting::Block, Waiting::BusyPoll] {
        let record = pair.measure(scenario(XdpMode::Native, waiting));
        check(&record);
        assert_eq!(facts(&record).map(|facts| facts.queues), [3, 3]);
    }
}

#[test]
fn one_end_alone_reaches_a_socket_of_the_kernel() {
    let _beside = beside_others();
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
    let _beside = beside_others();
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
    assert_nothing_attached(&pair);
}

/// Gives both interfaces so many bytes a packet.
fn set_mtu(pair: &Pair, bytes: &str) {
    pair.names.iter().for_each(|name| ip(&["-n", name, "link", "set", INTERFACE, "mtu", bytes]).unwrap());
}

#[test]
fn a_driver_that_refuses_long_packets_is_used_in_the_generic_mode() {
    let _beside = beside_others();
    let Some(pair) = pair_of("a_driver_that_refuses_long_packets_is_used_in_the_generic_mode", "2") else {
        return;
    };
    set_mtu(&pair, "9000");
    let refused = |scenario| pair.try_measure(scenario, ADDRESSES[1]).unwrap_err().to_string();
    // The queue of each try is bound for a moment longer: runs follow each other at once.
    for _ in 0..3 {
        let sizes = vec![32, 1_452, 3_778];
        let record = pair.measure(Scenario { sizes, ..scenario(XdpMode::Auto, Waiting::Block) });
        check(&record);
        for facts in facts(&record) {
            let why = facts.fallback.as_deref().unwrap_or_default();
            assert!(
                facts.mode() == XdpMode::Generic && why.contains("Numerical result out of range"),
                "{facts:?}"
            );
        }
        assert_nothing_attached(&pair);
        assert_eq!(
            refused(scenario(XdpMode::Native, Waiting::Block)),
            "cannot use AF_XDP on eth0 in mode native: Numerical result out of range (os error 34)\nhint: use --xdp-mode generic"
        );
    }
}

/// Binds a socket to the interface's first queue in the namespace of this thread, which may be that of a run before for a
/// moment longer.
fn bound() -> (xdp::socket::XdpSocket, xdp::Rings, xdp::Umem) {
    let begun = Instant::now();
    loop {
        match try_bound() {
            Ok(bound) => return bound,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(10), "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn try_bound() -> Result<(xdp::socket::XdpSocket, xdp::Rings, xdp::Umem), xdp::socket::SocketError> {
    let index = interface_index();
    let umem = xdp::umem::UmemCfgBuilder { frame_count: 64, ..Default::default() }.build().unwrap();
    let umem = xdp::Umem::map(umem).unwrap();
    let mut builder = xdp::socket::XdpSocketBuilder::new().unwrap();
    let rings = xdp::RingConfigBuilder { rx_count: 32, fill_count: 32, tx_count: 32, completion_count: 32 };
    let (rings, mut flags) = builder.build_rings(&umem, rings.build().unwrap()).unwrap();
    flags.force_copy();
    Ok((builder.bind(xdp::nic::NicIndex::new(index), 0, flags)?, rings, umem))
}

/// The index of the interface in the namespace of this thread.
fn interface_index() -> u32 {
    (1..64)
        .find(|index| route::interface(*index).is_ok_and(|one| one.name == INTERFACE))
        .expect("the interface")
}

#[test]
fn a_queue_of_another_socket_is_awaited_and_nothing_else_is_blamed() {
    let _beside = beside_others();
    let Some(pair) = pair("a_queue_of_another_socket_is_awaited_and_nothing_else_is_blamed") else { return };
    let measure_beside = |held_ms| {
        let (sender, is_bound) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let holding = inside(&pair.names[0], move || {
            let held = bound();
            sender.send(()).unwrap();
            let _ = ended.recv_timeout(Duration::from_millis(held_ms));
            drop(held);
        });
        is_bound.recv().unwrap();
        let result = pair.try_measure(scenario(XdpMode::Generic, Waiting::Block), ADDRESSES[1]);
        let _ = end.send(());
        holding.join().unwrap();
        result.map_err(|error| error.to_string())
    };
    let refusal = "cannot use AF_XDP on eth0: another socket has one of its queues\nhint: end the process that `ss --xdp --processes` \
                   shows";
    assert_eq!(measure_beside(20_000).unwrap_err(), refusal);
    // On a busy machine the other socket can be closed, and the kernel can free its queue, much later than it should.
    let served = (0..10).find_map(|_| {
        let result = measure_beside(700);
        result.inspect_err(|error| assert_eq!(error, refusal)).ok()
    });
    check(&served.expect("a queue that is free after 0.7 s"));
}

#[test]
fn only_a_program_that_is_attached_is_to_be_detached() {
    let _beside = beside_others();
    let Some(pair) = pair("only_a_program_that_is_attached_is_to_be_detached") else { return };
    for (place, mode) in [
        (XdpPlace::Driver, XdpMode::Native),
        (XdpPlace::Generic, XdpMode::Native),
        (XdpPlace::Driver, XdpMode::Auto),
    ] {
        assert_nothing_attached(&pair);
        let (sender, is_attached) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let holding = inside(&pair.names[0], move || {
            let map = SocketMap::create(1).unwrap();
            let address = "10.214.71.9:9".parse().unwrap();
            let flow = Flow { source: address, destination: address };
            let link =
                Program::load(&program(&flow, map.descriptor())).unwrap().attach(interface_index(), place);
            sender.send(()).unwrap();
            let _ = ended.recv_timeout(Duration::from_secs(30));
            drop(link.unwrap());
        });
        is_attached.recv().unwrap();
        let error = pair.try_measure(scenario(mode, Waiting::Block), ADDRESSES[1]).unwrap_err().to_string();
        end.send(()).unwrap();
        holding.join().unwrap();
        let expected = "cannot use AF_XDP on eth0: it has another XDP program\nhint: end what attached it, or detach it with `ip \
                        link set eth0 xdp off`";
        assert_eq!(error, expected, "{place:?}, {mode}");
    }
}

#[test]
fn loopback_is_refused() {
    let _beside = beside_others();
    let server = super::Server::start();
    let error =
        super::client(scenario(XdpMode::Auto, Waiting::Block), &server.address.to_string()).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot use AF_XDP: interface lo does not use Ethernet\nhint:"),
        "{error}"
    );
}

//! Input from the network or from other programs: frames of the ping-pong protocol and of Ethernet, output of programs
//! that measure round trips, sizes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_net::{
    pingpong::{
        parse_sizes,
        parts::{RoundTrip, SLOWEST_MAX, Split, Stamps, Tally, Wakes},
        protocol::{HEAD_BYTES, Message, body_bytes, decode, encode},
    },
    sfnt,
    tools::{self, Tool},
    xdp::frame::{self, Path},
};

/// Whatever a peer claims, every message is counted once, and parts that add up have no part longer than the whole.
fn add_up(rows: &[Stamps]) {
    let mut tally = Tally::new([true, false]);
    for (at_ns, (client, server)) in (0..).zip(rows.iter().zip(rows.iter().rev())) {
        let measured_ns = client.received_ns.unwrap_or(1).wrapping_sub(client.sending_ns.unwrap_or(0));
        let (client_wake, server_wake) = (Wakes::At(measured_ns), Wakes::Unknown);
        let exchange =
            RoundTrip { at_ns, measured_ns, client: *client, server: *server, client_wake, server_wake };
        if let Ok(split) = Split::of(&exchange) {
            assert_eq!(split.sum_ns(), measured_ns);
        }
        tally.add(exchange);
    }
    let figures = tally.figures();
    assert_eq!(figures.messages, rows.len() as u64);
    assert!(figures.missing + figures.disordered + figures.adding_up <= figures.messages);
    assert!(tally.slowest().len() <= SLOWEST_MAX);
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let _ = body_bytes(*head).map_err(|error| error.to_string());
        if let Ok(message) = decode(body) {
            if let Message::Stamps { rows } = &message {
                add_up(rows);
            }
            if let Message::Open { scenario, .. } = &message {
                let _ = scenario.check().map_err(|error| error.to_string());
            }
            let frame = encode(&message);
            assert!(decode(&frame[HEAD_BYTES..]).is_ok());
        }
    }
    if let Some(datagram) = frame::parse(bytes) {
        let path = Path {
            source_mac: [1; 6],
            destination_mac: [2; 6],
            source: datagram.source,
            destination: datagram.destination,
        };
        let again = frame::build(&path, datagram.payload).expect("what was parsed fits into a packet");
        assert_eq!(frame::parse(&again), Some(datagram));
    }
    let _ = lowlat_net::plain(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = parse_sizes(text).map_err(|error| error.to_string());
    if let Ok(logs) = sfnt::parse(text) {
        for log in &logs {
            let _ = sfnt::doubts(log);
            assert!(sfnt::parse(&log.to_string()).is_ok_and(|again| !again.is_empty()));
        }
    }
    let _ = tools::parse(text).map_err(|error| error.to_string());
    let command: Vec<String> = text.split_whitespace().take(8).map(str::to_owned).collect();
    for tool in Tool::ALL {
        if let Ok(output) = tool.parse(text, &command) {
            let times = output.rows.iter().flat_map(|row| [row.mean_ns, row.p50_ns, row.p99_ns]).flatten();
            assert!(times.into_iter().all(|ns| ns.is_finite() && ns >= 0.0));
        }
    }
});

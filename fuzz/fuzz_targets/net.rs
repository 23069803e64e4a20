//! What comes over the network or from other programs: frames of the ping-pong protocol, output of sfnt-pingpong, sizes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_net::{
    pingpong::{
        parse_sizes,
        protocol::{HEAD_BYTES, Message, body_bytes, decode, encode},
    },
    sfnt,
};

fuzz_target!(|bytes: &[u8]| {
    if let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let _ = body_bytes(*head).map_err(|error| error.to_string());
        if let Ok(message) = decode(body) {
            if let Message::Open { scenario, .. } = &message {
                let _ = scenario.check().map_err(|error| error.to_string());
            }
            let frame = encode(&message);
            assert!(decode(&frame[HEAD_BYTES..]).is_ok());
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = parse_sizes(text).map_err(|error| error.to_string());
    if let Ok(logs) = sfnt::parse(text) {
        for log in &logs {
            let _ = sfnt::doubts(log);
            assert!(sfnt::parse(&log.to_string()).is_ok_and(|again| !again.is_empty()));
        }
    }
});

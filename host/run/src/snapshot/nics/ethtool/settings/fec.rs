//! Encodings of forward error correction, as `ethtool --set-fec IF encoding` takes them, with commas between.

use super::{Value, ask};
use crate::{
    netlink::{
        Connection, Family, Refusal,
        message::{NESTED, attribute},
    },
    snapshot::ethtool::{
        decode::{self, FEC_ENCODINGS},
        request,
    },
};
use rustix::io::Errno;

pub(super) const NAME: &str = "encoding";
pub(super) const EXPECTED: &str = "words of auto, off, rs, baser, llrs with commas between";

/// ethtool's word for the driver's choice.
const AUTO: &str = "auto";

pub(super) fn is_valid(text: &str) -> bool {
    text.split(',').all(|word| word == AUTO || FEC_ENCODINGS.iter().any(|(.., known)| *known == word))
}

pub(super) fn get(interface: &str) -> Result<Option<Value>, Errno> {
    let configured = decode::fec(&ask(interface, request::FEC)?).configured;
    Ok((!configured.is_empty()).then(|| Value::Text(configured.join(","))))
}

pub(super) fn set(interface: &str, to: &str) -> Result<(), Refusal> {
    Connection::open(Family::Ethtool)?.set_of(interface, request::SET_FEC, &wanted(to))
}

/// The modes as a list of named bits, and whether the driver chooses among them.
fn wanted(text: &str) -> Vec<u8> {
    const MODES: u16 = 2;
    const IS_AUTO: u16 = 3;
    const NO_MASK: u16 = 1;
    const BITS: u16 = 3;
    const BIT: u16 = 1;
    const BIT_NAME: u16 = 2;
    let words: Vec<&str> = text.split(',').collect();
    let modes = FEC_ENCODINGS.iter().filter(|(.., word)| words.contains(word));
    let bits: Vec<u8> = modes
        .flat_map(|(_, name, _)| {
            attribute(BIT | NESTED, &attribute(BIT_NAME, &[name.as_bytes(), &[0]].concat()))
        })
        .collect();
    let list = [attribute(NO_MASK, &[]), attribute(BITS | NESTED, &bits)].concat();
    let is_auto = attribute(IS_AUTO, &[u8::from(words.contains(&AUTO))]);
    [attribute(MODES | NESTED, &list), is_auto].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_reads_back_as_it_was_meant() {
        for text in ["off", "rs", "auto,rs,baser", "auto", "llrs"] {
            assert!(is_valid(text), "{text}");
            assert!(wanted(text).len() >= 12, "{text}");
        }
        // The kernel answers with numbers of bits where requests may have names.
        let sent = wanted("auto,baser");
        assert!(sent.windows(6).any(|bytes| bytes == b"BASER\0") && !sent.windows(3).any(|b| b == b"RS\0"));
        for text in ["", "on", "rs,", "RS", "off rs"] {
            assert!(!is_valid(text), "{text}");
        }
    }
}

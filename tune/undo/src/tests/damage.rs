//! Torn tails and flipped bits.

use super::{super::*, Host};
use proptest::prelude::*;
use std::fs;

fn applied() -> (Host, Vec<UndoStep>, String) {
    let host = Host::new();
    let (start, plan) = (host.tree(true), host.plan());
    host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
    (host, plan, start)
}

/// The records in the segment, as seen in the resulting history.
fn inspect(host: &Host) -> Inspection {
    host.inspection()
}

/// Offsets of the segment at which a record starts or the file ends.
pub(super) fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut at = segment::HEADER_BYTES;
    let mut all = vec![at];
    while let Some(length) = record::u32_at(bytes, at) {
        at += record::HEAD_BYTES + usize::try_from(length).unwrap();
        all.push(at);
    }
    all
}

#[test]
fn a_tail_torn_at_every_byte_is_reported_and_not_trusted() {
    let (host, ..) = applied();
    let segment = host.log.join("segment-00000001");
    let bytes = fs::read(&segment).unwrap();
    let boundaries = boundaries(&bytes);
    assert_eq!(boundaries.last(), Some(&bytes.len()));
    for cut in 0..bytes.len() {
        fs::write(&segment, &bytes[..cut]).unwrap();
        let found = inspect(&host);
        assert_eq!(found.damage, None, "cut at {cut}");
        assert_eq!(found.torn.is_none(), boundaries.contains(&cut), "cut at {cut}");
        let records = boundaries.iter().filter(|b| **b <= cut).count().saturating_sub(1);
        // Start, then two records per step.
        assert_eq!(found.history.entries.len(), records / 2, "cut at {cut}");
        if cut % 8 != 0 {
            continue;
        }
        // Zeros instead of the bytes: the file system had only extended the file.
        fs::write(&segment, [&bytes[..cut], &vec![0; 100][..]].concat()).unwrap();
        let zeros = inspect(&host);
        assert!(zeros.torn.is_some() || zeros.damage.is_some(), "cut at {cut}, zeros behind");
        assert!(zeros.history.entries.len() <= records / 2);
    }
}

#[test]
fn from_every_torn_record_both_ways_are_open() {
    let end = {
        let (host, ..) = applied();
        host.tree(false)
    };
    let mut torn_seen = 0;
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        let faults = Faults::crash_at(at);
        let got_through =
            host.open(faults).is_ok_and(|mut log| log.apply("p", &plan, OnFailure::RollBack).is_ok());
        if got_through {
            break;
        }
        let segment = host.log.join("segment-00000001");
        let Some(torn) = host.log.exists().then(|| inspect(&host).torn).flatten() else { continue };
        torn_seen += 1;
        // More or less of the torn record than the crash left.
        let bytes = fs::read(&segment).unwrap();
        let begin = usize::try_from(torn.offset).unwrap();
        let length = [1, record::HEAD_BYTES - 1, record::HEAD_BYTES, bytes.len() - begin];
        fs::write(&segment, &bytes[..bytes.len().min(begin + length[torn_seen % 4])]).unwrap();
        let mut log = host.open(Faults::none()).unwrap();
        assert!(log.scan.torn.is_some());
        log.apply("p", &plan, OnFailure::RollBack).unwrap();
        assert_eq!(host.tree(false), end);
        drop(log);
        // The segment after the torn one is found again.
        let mut log = host.open(Faults::none()).unwrap();
        assert_eq!((&log.scan.torn, log.damage()), (&None, None));
        assert!(log.rollback_where(|_| true).is_complete());
        assert_eq!(host.tree(true), start);
    }
    assert!(torn_seen >= 16, "{torn_seen}");
}

#[test]
fn damage_is_kept_in_mind_until_accepted() {
    let (host, plan, start) = applied();
    let segment = host.log.join("segment-00000001");
    let mut bytes = fs::read(&segment).unwrap();
    let last = boundaries(&bytes)[13];
    bytes[last + 30] ^= 4;
    fs::write(&segment, bytes).unwrap();
    let mut log = host.open(Faults::none()).unwrap();
    assert!(log.damage().unwrap().to_string().contains("segment-00000001 at byte"));
    let error = log.apply("q", &plan, OnFailure::RollBack).unwrap_err().to_string();
    assert!(error.contains("cannot rely on the undo log"), "{error}");
    let report = log.rollback_where(|_| true);
    assert!(report.left.is_empty() && report.damage.is_some() && !report.is_complete());
    assert_eq!(report.restored.len(), 6, "the seventh step is behind the damage, or not known to be done");
    drop(log);
    let mut log = host.open(Faults::none()).unwrap();
    assert!(log.damage().is_some(), "the rollback's records do not hide it");
    log.accept_damage().unwrap();
    drop(log);
    let mut log = host.open(Faults::none()).unwrap();
    assert_eq!(log.damage(), None);
    // The unknown step already has the wanted state, so it is not touched, and not rolled back.
    log.apply("q", &plan, OnFailure::RollBack).unwrap();
    assert!(log.rollback_where(|_| true).is_complete());
    assert_ne!(host.tree(true), start);
}

#[test]
fn damaged_content_is_not_restored() {
    let (host, plan, _) = applied();
    let State::File(old) = &plan[1].old else { panic!() };
    let kept = host.log.join("contents").join(store::hash_of(&old.bytes));
    fs::write(kept, "other text").unwrap();
    let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
    assert_eq!(report.left.len(), 1);
    assert!(report.to_string().contains("the stored content is damaged"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Any flipped bit is reported, or is where nothing is lost; the following rollback is correct.
    #[test]
    fn a_flipped_bit_is_never_trusted(place in 0.0f64..1.0, bit in 0u8..8) {
        let (host, plan, _) = applied();
        let whole = inspect(&host).history;
        let segment = host.log.join("segment-00000001");
        let mut bytes = fs::read(&segment).unwrap();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = (place * bytes.len() as f64) as usize;
        bytes[at] ^= 1 << bit;
        fs::write(&segment, bytes).unwrap();
        let found = inspect(&host);
        prop_assert!(found.damage.is_some(), "bit {bit} of byte {at}");
        let known = found.history.entries.len();
        for (is, was) in found.history.entries.iter().zip(&whole.entries) {
            prop_assert_eq!(&is.old, &was.old);
        }
        let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
        // The unknown step beside a known one keeps their directory.
        prop_assert!(report.left.is_empty(), "{}", report);
        let writer = host.writer(Faults::none());
        for (number, step) in plan.iter().enumerate() {
            let present = match step.target.kind.as_str() {
                "value" => writer.read_value(&step.target.name).unwrap(),
                _ => writer.read_file(&step.target.name).unwrap(),
            };
            let wanted = if number < known { &step.old } else { &step.new };
            prop_assert!(step.target.comparison.same(&present, wanted), "step {}", step.id);
        }
    }

    /// Arbitrary bytes are not a log, and cause no panic.
    #[test]
    fn arbitrary_bytes_are_reported(bytes in prop::collection::vec(any::<u8>(), 0..400), has_header: bool) {
        let host = Host::empty();
        fs::create_dir(&host.log).unwrap();
        let header = segment::SegmentHeader {
            before: segment::EarlierLog::Sound, continues: 0, trusted_bytes: 0, first_sequence: 1,
        };
        let head = if has_header { header.encode() } else { Vec::new() };
        fs::write(host.log.join("segment-00000001"), [head, bytes].concat()).unwrap();
        prop_assert!(inspect(&host).history.entries.is_empty());
    }
}

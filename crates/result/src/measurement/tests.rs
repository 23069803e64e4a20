//! Documents of version 1, written by lowlat before a document held a list of measurements, and unknown kinds.

use super::Measurement;
use crate::ResultDocument;
use lowlat_net::{choose::NetChoiceMeasurement, compare::NetCompareMeasurement};
use serde_json::{Value, from_value, json, to_value};

/// A run of `lowlat jitter` with a gate, an `assess`, and an `assess` that measured nothing.
const JITTER: &str = include_str!("../../../../fixtures/results/jitter.json");
const ASSESS: &str = include_str!("../../../../fixtures/results/assess.json");
const UNMEASURED: &str = include_str!("../../../../fixtures/results/assess-unmeasured.json");

/// The document as it was written, as it opens, and as it is written again.
fn opened(text: &str) -> (Value, ResultDocument, Value) {
    let written: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(written["schema_version"], 1);
    let document: ResultDocument = serde_json::from_str(text).expect("a document");
    let again = to_value(&document).expect("JSON");
    (written, document, again)
}

#[test]
fn a_jitter_run_of_version_1_opens_whole() {
    let (written, document, again) = opened(JITTER);
    let [Measurement::Jitter(jitter)] = document.measurements.as_slice() else {
        panic!("{:?}", document.measurements.iter().map(Measurement::kind).collect::<Vec<_>>());
    };
    assert_eq!(to_value(&jitter.record).unwrap(), written["jitter"]);
    assert_eq!(to_value(&jitter.study).unwrap(), written["jitter_study"]);
    assert_eq!(to_value(&jitter.gate).unwrap(), written["gate"]);
    assert_eq!(jitter.record.warnings.len(), 3);

    let list = again["measurements"].as_array().expect("a list");
    assert_eq!((list.len(), &list[0]["kind"], &list[0]["record"]), (1, &json!("jitter"), &written["jitter"]));
    for gone in ["jitter", "jitter_study", "gate"] {
        assert_eq!(again.get(gone), None, "{gone} has moved into the list");
    }
    assert_eq!((&again["snapshot"], &again["audit"]), (&written["snapshot"], &written["audit"]));
    assert_eq!(from_value::<ResultDocument>(again).unwrap(), document, "the new form reads back");
}

#[test]
fn assessments_of_version_1_open() {
    let (written, document, _) = opened(ASSESS);
    let jitter = document.jitter().expect("measured");
    assert!(jitter.study.is_some() && jitter.gate.is_none());
    assert_eq!(to_value(&jitter.record).unwrap(), written["jitter"]);

    let (_, document, again) = opened(UNMEASURED);
    assert_eq!(document.measurements, []);
    assert_eq!(again["measurements"], json!([]));
}

#[test]
fn a_kind_of_a_later_version_is_kept() {
    let mut written: Value = serde_json::from_str(JITTER).unwrap();
    let network = json!({"kind": "network", "record": {"nics": [1, 2]}});
    written["measurements"] = json!([network]);
    let document: ResultDocument = from_value(written).unwrap();
    let kinds: Vec<&str> = document.measurements.iter().map(Measurement::kind).collect();
    assert_eq!(kinds, ["network", "jitter"]);
    assert!(document.jitter().is_some());
    assert_eq!(to_value(&document).unwrap()["measurements"][0], network);
}

#[test]
fn network_measurements_read_back_under_the_word_of_their_subcommand() {
    let compare = Measurement::from(NetCompareMeasurement::default());
    let choice = Measurement::from(NetChoiceMeasurement::default());
    for (measurement, word) in [(compare, "compare"), (choice, "choose")] {
        let written = to_value(&measurement).unwrap();
        assert_eq!((&written["kind"], measurement.kind()), (&json!(word), word));
        assert_eq!(from_value::<Measurement>(written).unwrap(), measurement);
    }
}

#[test]
fn a_damaged_measurement_is_refused() {
    for damaged in [
        json!({"record": {}}),
        json!({"kind": "jitter"}),
        json!({"kind": "jitter", "record": {"counter": 1}}),
        json!("jitter"),
    ] {
        assert!(from_value::<Measurement>(damaged.clone()).is_err(), "{damaged}");
    }
}

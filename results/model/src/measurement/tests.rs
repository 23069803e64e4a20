//! Kinds of measurements.

use super::Measurement;
use crate::ResultDocument;
use lowlat_net::{choose::NetChoiceMeasurement, compare::NetCompareMeasurement};
use serde_json::{Value, from_value, json, to_value};

/// A run of `lowlat jitter` with a gate.
const JITTER: &str = include_str!("../../../../fixtures/results/jitter.json");

#[test]
fn a_kind_of_a_later_version_is_refused() {
    let mut written: Value = serde_json::from_str(JITTER).unwrap();
    let network = json!({"kind": "network", "record": {"nics": [1, 2]}});
    written["measurements"].as_array_mut().unwrap().insert(0, network);
    let error = from_value::<ResultDocument>(written).unwrap_err().to_string();
    assert!(error.starts_with("unknown variant `network`, expected one of `jitter`"), "{error}");
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

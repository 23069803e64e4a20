//! The measurements of a run: a list, each entry tagged with its kind.

use lowlat_jitter::JitterMeasurement;
use lowlat_net::pingpong::PingpongMeasurement;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error};
use serde_json::{Map, Value};

/// One measurement of a run: its record and results.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Measurement {
    /// Interruptions of user threads.
    Jitter(Box<JitterMeasurement>),
    /// Round trips between a client and a server.
    Pingpong(Box<PingpongMeasurement>),
    /// A kind that only later versions of lowlat know, unchanged.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl Measurement {
    /// Kind of the measurement: "jitter", "pingpong".
    pub fn kind(&self) -> &str {
        match self {
            Self::Jitter(_) => JitterMeasurement::KIND,
            Self::Pingpong(_) => PingpongMeasurement::KIND,
            Self::Unknown(fields) => kind_of(fields).unwrap_or_default(),
        }
    }

    /// What makes its figures doubtful. One sentence each.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Jitter(jitter) => &jitter.record.warnings,
            Self::Pingpong(pingpong) => &pingpong.record.warnings,
            Self::Unknown(_) => &[],
        }
    }
}

/// One pair for each kind.
impl Measurement {
    /// The jitter measurement, if it is one.
    pub fn jitter(&self) -> Option<&JitterMeasurement> {
        if let Self::Jitter(jitter) = self { Some(jitter) } else { None }
    }

    /// The jitter measurement, mutable, to study it again or to judge it.
    pub fn jitter_mut(&mut self) -> Option<&mut JitterMeasurement> {
        if let Self::Jitter(jitter) = self { Some(jitter) } else { None }
    }

    /// The ping-pong measurement, if it is one.
    pub fn pingpong(&self) -> Option<&PingpongMeasurement> {
        if let Self::Pingpong(pingpong) = self { Some(pingpong) } else { None }
    }
}

impl From<PingpongMeasurement> for Measurement {
    fn from(pingpong: PingpongMeasurement) -> Self {
        Self::Pingpong(Box::new(pingpong))
    }
}

impl From<JitterMeasurement> for Measurement {
    fn from(jitter: JitterMeasurement) -> Self {
        Self::Jitter(Box::new(jitter))
    }
}

impl<'de> Deserialize<'de> for Measurement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        match kind_of(&fields) {
            Some(JitterMeasurement::KIND) => known(fields).map(Self::Jitter),
            Some(PingpongMeasurement::KIND) => known(fields).map(Self::Pingpong),
            Some(_) => Ok(Self::Unknown(fields)),
            None => Err(Error::missing_field("kind")),
        }
    }
}

fn kind_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("kind").and_then(Value::as_str)
}

fn known<T: DeserializeOwned, E: Error>(fields: Map<String, Value>) -> Result<T, E> {
    serde_json::from_value(Value::Object(fields)).map_err(E::custom)
}

/// The field `measurements`, and the fields of the one measurement in documents of version 1.
pub(crate) mod stored {
    use super::{JitterMeasurement, Measurement};
    use lowlat_jitter::{JitterRecord, JitterStudy, gate::GateOutcome};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize)]
    struct Written<'a> {
        measurements: &'a [Measurement],
    }

    #[derive(Deserialize)]
    struct Read {
        #[serde(default)]
        measurements: Vec<Measurement>,
        jitter: Option<JitterRecord>,
        jitter_study: Option<JitterStudy>,
        gate: Option<GateOutcome>,
    }

    pub fn serialize<S: Serializer>(measurements: &[Measurement], serializer: S) -> Result<S::Ok, S::Error> {
        Written { measurements }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Measurement>, D::Error> {
        let Read { mut measurements, jitter, jitter_study: study, gate } = Read::deserialize(deserializer)?;
        measurements.extend(jitter.map(|record| JitterMeasurement { record, study, gate }.into()));
        Ok(measurements)
    }
}

#[cfg(test)]
mod tests;

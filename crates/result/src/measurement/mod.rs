//! The measurements of a run: a list, each entry tagged with its kind.

use lowlat_cache::{c2c::C2cMeasurement, clusters::ClustersMeasurement};
use lowlat_jitter::JitterMeasurement;
use lowlat_net::{
    choose::NetChoiceMeasurement, compare::NetCompareMeasurement, pingpong::PingpongMeasurement,
    stream::StreamMeasurement,
};
use lowlat_workload::WorkloadMeasurement;
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
    /// Latencies between cores.
    C2c(Box<C2cMeasurement>),
    /// Copies of jobs packed into clusters and spread over them.
    Clusters(Box<ClustersMeasurement>),
    /// Programs or settings that measured round trips in turn.
    #[serde(rename = "compare")]
    NetCompare(Box<NetCompareMeasurement>),
    /// Waiting modes tried for a goal.
    #[serde(rename = "choose")]
    NetChoice(Box<NetChoiceMeasurement>),
    /// Messages in one direction, at rising rates.
    Stream(Box<StreamMeasurement>),
    /// Workloads under different settings.
    Workload(Box<WorkloadMeasurement>),
    /// A kind that only later versions of lowlat know, unchanged.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl Measurement {
    /// Kind of the measurement, the word of its subcommand: "jitter", "pingpong", "c2c".
    pub fn kind(&self) -> &str {
        match self {
            Self::Jitter(_) => JitterMeasurement::KIND,
            Self::Pingpong(_) => PingpongMeasurement::KIND,
            Self::C2c(_) => C2cMeasurement::KIND,
            Self::Clusters(_) => ClustersMeasurement::KIND,
            Self::NetCompare(_) => NetCompareMeasurement::KIND,
            Self::NetChoice(_) => NetChoiceMeasurement::KIND,
            Self::Stream(_) => StreamMeasurement::KIND,
            Self::Workload(_) => WorkloadMeasurement::KIND,
            Self::Unknown(fields) => kind_of(fields).unwrap_or_default(),
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

    /// The latencies between cores, if it is one.
    pub fn c2c(&self) -> Option<&C2cMeasurement> {
        if let Self::C2c(c2c) = self { Some(c2c) } else { None }
    }

    /// The comparison of packed and spread copies, if it is one.
    pub fn clusters(&self) -> Option<&ClustersMeasurement> {
        if let Self::Clusters(clusters) = self { Some(clusters) } else { None }
    }

    /// The comparison, if it is one.
    pub fn net_compare(&self) -> Option<&NetCompareMeasurement> {
        if let Self::NetCompare(compare) = self { Some(compare) } else { None }
    }

    /// The search for a waiting mode, if it is one.
    pub fn net_choice(&self) -> Option<&NetChoiceMeasurement> {
        if let Self::NetChoice(choice) = self { Some(choice) } else { None }
    }

    /// The stream measurement, if it is one.
    pub fn stream(&self) -> Option<&StreamMeasurement> {
        if let Self::Stream(stream) = self { Some(stream) } else { None }
    }

    /// The measurement of workloads, if it is one.
    pub fn workload(&self) -> Option<&WorkloadMeasurement> {
        if let Self::Workload(workload) = self { Some(workload) } else { None }
    }
}

impl From<NetCompareMeasurement> for Measurement {
    fn from(compare: NetCompareMeasurement) -> Self {
        Self::NetCompare(Box::new(compare))
    }
}

impl From<NetChoiceMeasurement> for Measurement {
    fn from(choice: NetChoiceMeasurement) -> Self {
        Self::NetChoice(Box::new(choice))
    }
}

impl From<StreamMeasurement> for Measurement {
    fn from(stream: StreamMeasurement) -> Self {
        Self::Stream(Box::new(stream))
    }
}

impl From<WorkloadMeasurement> for Measurement {
    fn from(workload: WorkloadMeasurement) -> Self {
        Self::Workload(Box::new(workload))
    }
}

impl From<PingpongMeasurement> for Measurement {
    fn from(pingpong: PingpongMeasurement) -> Self {
        Self::Pingpong(Box::new(pingpong))
    }
}

impl From<C2cMeasurement> for Measurement {
    fn from(c2c: C2cMeasurement) -> Self {
        Self::C2c(Box::new(c2c))
    }
}

impl From<ClustersMeasurement> for Measurement {
    fn from(clusters: ClustersMeasurement) -> Self {
        Self::Clusters(Box::new(clusters))
    }
}

impl From<JitterMeasurement> for Measurement {
    fn from(jitter: JitterMeasurement) -> Self {
        Self::Jitter(Box::new(jitter))
    }
}

/// One of the kinds, each with its own word; any other word is a kind of a later version.
#[cfg(test)]
impl schemars::JsonSchema for Measurement {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Measurement".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let kinds = [
            (JitterMeasurement::KIND, generator.subschema_for::<JitterMeasurement>()),
            (PingpongMeasurement::KIND, generator.subschema_for::<PingpongMeasurement>()),
            (C2cMeasurement::KIND, generator.subschema_for::<C2cMeasurement>()),
            (ClustersMeasurement::KIND, generator.subschema_for::<ClustersMeasurement>()),
            (NetCompareMeasurement::KIND, generator.subschema_for::<NetCompareMeasurement>()),
            (NetChoiceMeasurement::KIND, generator.subschema_for::<NetChoiceMeasurement>()),
            (StreamMeasurement::KIND, generator.subschema_for::<StreamMeasurement>()),
            (WorkloadMeasurement::KIND, generator.subschema_for::<WorkloadMeasurement>()),
        ];
        let is_kind = |kind: &str| serde_json::json!({ "properties": { "kind": { "const": kind } } });
        let rules =
            kinds.iter().map(|(kind, schema)| serde_json::json!({ "if": is_kind(kind), "then": schema }));
        schemars::json_schema!({
            "description": "One measurement of a run: its record and results. Kinds of later versions are kept unchanged.",
            "type": "object",
            "required": ["kind"],
            "properties": { "kind": { "type": "string" } },
            "allOf": rules.collect::<Vec<_>>(),
        })
    }
}

impl<'de> Deserialize<'de> for Measurement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        match kind_of(&fields) {
            Some(JitterMeasurement::KIND) => known(fields).map(Self::Jitter),
            Some(PingpongMeasurement::KIND) => known(fields).map(Self::Pingpong),
            Some(C2cMeasurement::KIND) => known(fields).map(Self::C2c),
            Some(ClustersMeasurement::KIND) => known(fields).map(Self::Clusters),
            Some(NetCompareMeasurement::KIND) => known(fields).map(Self::NetCompare),
            Some(NetChoiceMeasurement::KIND) => known(fields).map(Self::NetChoice),
            Some(StreamMeasurement::KIND) => known(fields).map(Self::Stream),
            Some(WorkloadMeasurement::KIND) => known(fields).map(Self::Workload),
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
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    pub(crate) struct Read {
        /// The measurements.
        #[serde(default)]
        measurements: Vec<Measurement>,
        /// In documents of version 1, the one measurement; likewise the two fields below.
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

//! One interval as a line of JSON.

use crate::watch::{
    cpu_row::CpuRow,
    event::Event,
    watcher::{Settings, Watch},
};
use lowlat_host::Reading;
use lowlat_jitter::watch::{Place, RanThread};
use lowlat_plan::verify::{Counts, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// The last interval of a watch. Its names are permanent.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    document: &'static str,
    schema_version: u32,
    lowlat_version: &'a str,
    host: &'a str,
    /// The end of the interval, milliseconds since 1970.
    at_unix_ms: u64,
    elapsed_ns: u64,
    own_cpu_ns: u64,
    is_sampled: bool,
    cpus: &'a [CpuRow],
    /// Threads on quiet CPUs, intruders first.
    threads: Vec<Thread<'a>>,
    settings: SettingsLine<'a>,
    /// Packets lost in the interval.
    drops: &'a BTreeMap<String, BTreeMap<String, u64>>,
    pipelines: &'a Reading<Vec<String>>,
    events: Vec<&'a Event>,
    doubts: &'a [String],
}

#[derive(Debug, Serialize)]
struct Thread<'a> {
    place: Place,
    #[serde(flatten)]
    thread: &'a RanThread,
}

#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum SettingsLine<'a> {
    Unchecked,
    NoPlan,
    Unreadable { why: &'a str },
    Compared { plan_id: &'a str, at_unix_ms: u64, counts: &'a Counts, faults: Vec<&'a Row> },
}

impl<'a> Line<'a> {
    /// Returns the line of the last interval.
    pub fn of(watch: &'a Watch) -> Self {
        let last = &watch.last;
        Self {
            document: "lowlat-watch",
            schema_version: 1,
            lowlat_version: &watch.subject.version,
            host: &watch.subject.host,
            at_unix_ms: last.at_unix_ms,
            elapsed_ns: last.interval.elapsed_ns,
            own_cpu_ns: last.interval.own_cpu_ns,
            is_sampled: watch.subject.is_sampling,
            cpus: &watch.rows,
            threads: watch.threads.iter().map(|(place, thread)| Thread { place: *place, thread }).collect(),
            settings: match &watch.settings {
                Settings::Unchecked => SettingsLine::Unchecked,
                Settings::NoPlan => SettingsLine::NoPlan,
                Settings::Unreadable(why) => SettingsLine::Unreadable { why },
                Settings::Compared(verification) => SettingsLine::Compared {
                    plan_id: &verification.plan_id,
                    at_unix_ms: watch.settings_unix_ms,
                    counts: &verification.counts,
                    faults: verification.rows.iter().filter(|row| row.standing.is_fault()).collect(),
                },
            },
            drops: &watch.drops,
            pipelines: &last.pipelines,
            events: watch.events.iter().take_while(|event| event.at_unix_ms == last.at_unix_ms).collect(),
            doubts: &last.interval.doubts,
        }
    }
}

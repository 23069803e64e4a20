//! A record as sfnt-pingpong's output, for scripts that read that.

use super::{HeaderLine, SfntLog, SfntRow};
use crate::pingpong::PingpongRecord;

/// Version of sfnt-pingpong's output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1_5,
    /// 1.6.0, which says in the header whether figures are half round trips.
    V1_6,
}

/// Facts about the client's host that the header shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderFacts {
    pub lowlat_version: String,
    pub date: String,
    /// Kernel, as `uname -a` prints it.
    pub uname: String,
    /// Model name of the processor.
    pub cpu: String,
    pub interfaces: Vec<InterfaceFacts>,
    pub memory_kib: Option<u64>,
}

/// A network interface as the header shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterfaceFacts {
    pub name: String,
    pub driver: String,
    /// Version of the driver.
    pub version: String,
    /// Address on its bus, such as `0000:01:00.1`.
    pub bus: String,
}

/// Returns the log of a record.
pub fn log_of(record: &PingpongRecord, facts: &HeaderFacts, version: Version) -> SfntLog {
    let rows = record
        .sizes
        .iter()
        .map(|size| SfntRow { size_bytes: size.size_bytes, figures: size.figures.clone() })
        .collect();
    SfntLog { header: header(record, facts, version), rows, ..SfntLog::default() }
}

/// The lines of the header.
pub(super) fn header(record: &PingpongRecord, facts: &HeaderFacts, version: Version) -> Vec<HeaderLine> {
    let colon = |key: &str, value: String| HeaderLine { key: key.to_owned(), value, is_assigned: false };
    let equals = |key: &str, value: String| HeaderLine { key: key.to_owned(), value, is_assigned: true };
    let number = match version {
        Version::V1_5 => "1.5.0",
        Version::V1_6 => "1.6.0",
    };
    let mut lines = vec![
        colon("cmdline", record.command_line.clone()),
        colon("version", number.to_owned()),
        colon("src", format!("lowlat {}", facts.lowlat_version)),
        colon("date", facts.date.clone()),
        colon("uname", facts.uname.clone()),
        colon("cpu", format!("model name\t: {}", facts.cpu)),
    ];
    for interface in &facts.interfaces {
        for (key, value) in
            [("driver", &interface.driver), ("version", &interface.version), ("bus-info", &interface.bus)]
        {
            lines.push(colon(&interface.name, format!("{key}: {value}").trim_end().to_owned()));
        }
    }
    lines.extend(facts.memory_kib.map(|kib| colon("ram", format!("MemTotal:{kib:>15} kB"))));
    lines.push(colon("tsc_hz", record.counter_hz.to_string()));
    if let Some(preload) = &record.client.preload {
        lines.push(equals("LD_PRELOAD", preload.library.clone()));
        lines.extend(preload.variables.iter().filter_map(|variable| {
            let (name, value) = variable.split_once('=')?;
            Some(equals(name, value.to_owned()))
        }));
    }
    if let Some(preload) = &record.server.preload {
        lines.push(equals("server LD_PRELOAD", preload.library.clone()));
    }
    lines.push(equals("percentile", record.percentile.to_string()));
    if version == Version::V1_6 {
        lines.push(colon("reporting", "1/2 RTT".to_owned()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pingpong::{EndFacts, Preload, SizeRecord},
        sfnt::parse,
    };

    fn record() -> PingpongRecord {
        let mut samples: Vec<u64> = (1..=400).map(|n| 5_000 + n).collect();
        let preload = Preload {
            library: "libonload.so".into(),
            variables: vec!["EF_POLL_USEC=1".into()],
            ..Preload::default()
        };
        PingpongRecord {
            command_line: "lowlat net pingpong client tcp 10.0.0.2".into(),
            counter_hz: 2_999_998_960,
            percentile: 99.0,
            sizes: SizeRecord::of(32, &mut samples, 99.0, 1).into_iter().collect(),
            client: EndFacts { preload: Some(preload), ..EndFacts::default() },
            ..PingpongRecord::default()
        }
    }

    #[test]
    fn a_record_is_written_in_both_versions_and_reads_back() {
        let facts = HeaderFacts {
            lowlat_version: "0.1.0".into(),
            cpu: "X".into(),
            interfaces: vec![InterfaceFacts {
                name: "eth0".into(),
                driver: "sfc".into(),
                ..InterfaceFacts::default()
            }],
            memory_kib: Some(7_872_940),
            ..HeaderFacts::default()
        };
        for (version, number, reporting) in
            [(Version::V1_5, "1.5.0", None), (Version::V1_6, "1.6.0", Some("1/2 RTT"))]
        {
            let log = log_of(&record(), &facts, version);
            let text = log.to_string();
            assert_eq!(parse(&text).unwrap(), [log]);
            let log = &parse(&text).unwrap()[0];
            assert_eq!((log.value("version"), log.value("reporting")), (Some(number), reporting));
            assert_eq!((log.percentile(), log.value("EF_POLL_USEC")), (Some(99.0), Some("1")));
            assert!(text.contains("\n# eth0: driver: sfc\n# eth0: version:\n"), "{text}");
            assert!(text.contains("\n# ram: MemTotal:        7872940 kB\n"), "{text}");
            assert!(text.ends_with("\t32\t5200\t5001\t5201\t5400\t5397\t116\t400\n"), "{text}");
        }
    }
}

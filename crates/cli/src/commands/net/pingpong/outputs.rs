//! What comes out of a run: text, files, or lines for scripts.

use super::arguments::{Format, OutputArgs};
use crate::{
    output,
    results::{self, OutputFile},
};
use anyhow::Context;
use jiff::Timestamp;
use lowlat_host::{HostSnapshot, Reading, snapshot::Nic};
use lowlat_net::{
    pingpong::PingpongRecord,
    sfnt::{self, HeaderFacts, InterfaceFacts, Version},
};
use lowlat_result::{ResultDocument, hlog};

/// The outputs that are wanted, their files checked.
pub struct Outputs<'a> {
    arguments: &'a OutputArgs,
    hlog: Option<OutputFile>,
    report: Option<OutputFile>,
    result: Option<OutputFile>,
}

impl<'a> Outputs<'a> {
    /// Checks the files before the run.
    pub fn prepare(arguments: &'a OutputArgs) -> anyhow::Result<Self> {
        let file = |path: &Option<std::path::PathBuf>, option: &str| {
            path.as_deref().map(|path| OutputFile::prepare(path, option)).transpose()
        };
        Ok(Self {
            arguments,
            hlog: file(&arguments.hlog, "--hlog")?,
            report: file(&arguments.report, "--report")?,
            result: file(&arguments.result, "--result")?,
        })
    }

    /// Prints, then writes the files.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let record = &document
            .pingpong()
            .context("the document holds no round trips; take one that `lowlat net pingpong client` wrote")?
            .record;
        let printed = self.print(document, record);
        let mut files = Vec::new();
        files.extend(self.result.iter().map(|file| (file, output::json_line(document))));
        files.extend(self.report.iter().map(|file| (file, Ok(lowlat_report::html(document)))));
        let log = || Ok(hlog::of_pingpong(record, started_ns(document))?.to_string());
        files.extend(self.hlog.iter().map(|file| (file, log())));
        printed.and(results::write_all(files))
    }

    fn print(&self, document: &ResultDocument, record: &PingpongRecord) -> anyhow::Result<()> {
        let version = match self.arguments.form() {
            Format::Text => return output::print(&lowlat_report::pingpong_text(record, output::width())),
            Format::Json => return output::print_json(document),
            Format::Sfnt => Version::V1_6,
            Format::SfntV15 => Version::V1_5,
        };
        let marks = record.unsound.iter().map(ToString::to_string).chain(record.warnings.iter().cloned());
        marks.for_each(|mark| output::talk(&format!("lowlat net: {mark}")));
        output::print_plain(&sfnt::log_of(record, &header(document), version).to_string())
    }
}

/// Facts about this host for sfnt-pingpong's header.
fn header(document: &ResultDocument) -> HeaderFacts {
    let HostSnapshot { kernel, cpu, nics, memory, .. } = &document.snapshot;
    let text = |reading: &Reading<String>| reading.known().cloned().unwrap_or_default();
    let interface = |nic: &Nic| InterfaceFacts {
        name: nic.name.clone(),
        driver: text(&nic.driver),
        version: text(&nic.driver_version),
        bus: text(&nic.bus),
    };
    HeaderFacts {
        lowlat_version: document.lowlat_version.clone(),
        date: document.started_at.clone(),
        uname: format!("Linux {} {} {}", text(&kernel.release), text(&kernel.build), text(&kernel.machine)),
        cpu: text(&cpu.model_name),
        interfaces: nics.iter().filter(|nic| nic.driver.is_known()).map(interface).collect(),
        memory_kib: memory.total_bytes.known().map(|bytes| bytes / 1_024),
    }
}

/// Start of the run, in nanoseconds since 1970; 0 if the document does not say.
fn started_ns(document: &ResultDocument) -> u64 {
    let started: Option<Timestamp> = document.started_at.parse().ok();
    started.and_then(|started| u64::try_from(started.as_nanosecond()).ok()).unwrap_or(0)
}

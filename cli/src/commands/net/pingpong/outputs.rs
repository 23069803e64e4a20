//! Outputs of a run: text, files, or lines for scripts.

use super::arguments::{Format, OutputArgs};
use crate::{
    commands::{net::sfnt_header, outputs::RunFiles},
    output,
};
use anyhow::Context;
use lowlat_net::{
    pingpong::PingpongRecord,
    sfnt::{self, Version},
};
use lowlat_results::{ResultDocument, hlog};

/// Requested outputs, with their files checked.
pub struct Outputs<'a> {
    arguments: &'a OutputArgs,
    files: RunFiles,
}

impl<'a> Outputs<'a> {
    /// Checks the files before the run.
    pub fn prepare(arguments: &'a OutputArgs) -> anyhow::Result<Self> {
        Ok(Self { arguments, files: arguments.files.prepare(arguments.hlog.as_deref())? })
    }

    /// Prints, then writes the files.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let record = &document
            .pingpong()
            .context("cannot show the document: it contains no round trips\nhint: name one that `lowlat net pingpong client --result` wrote")?
            .record;
        let printed = self.print(document, record);
        printed.and(
            self.files.write(document, |started_ns| Ok(hlog::of_pingpong(record, started_ns)?.to_string())),
        )
    }

    fn print(&self, document: &ResultDocument, record: &PingpongRecord) -> anyhow::Result<()> {
        let version = match self.arguments.form() {
            Format::Text => return output::print(&lowlat_net_report::pingpong_text(record, output::width())),
            Format::Json => return output::print_json(document),
            Format::Sfnt => Version::V1_6,
            Format::SfntV15 => Version::V1_5,
        };
        let marks = record.unsound.iter().map(ToString::to_string).chain(record.warnings.iter().cloned());
        marks.for_each(|mark| output::talk(&format!("lowlat net: {mark}")));
        output::print_plain(&sfnt::log_of(record, &sfnt_header(document), version).to_string())
    }
}

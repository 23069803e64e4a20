//! `lowlat bios sheet`: the settings of a profile to set by hand.

use super::source::read_files;
use crate::{
    arguments::PageArgs,
    commands::outputs::RunFiles,
    exit::Exit,
    host::HostArgs,
    labels::{WithLabels, host_name},
    output,
};
use clap::Args;
use lowlat_bios::BiosSheet;
use lowlat_host::Labels;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Sheet {
    #[command(flatten)]
    host: HostArgs,
    /// List what this server has, by its saved Redfish JSON, with its menus and present values; repeatable
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Read the saved attribute registry of that server: menus, names, values
    #[arg(long, value_name = "FILE", requires = "file")]
    registry: Option<PathBuf>,
    /// Write a page to print to this file, with room for the present values
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
    /// Print the settings as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(sheet: &Sheet) -> anyhow::Result<Exit> {
    let page = RunFiles::prepare_page(sheet.report.as_deref(), &sheet.language)?;
    let host = sheet.host.read()?;
    let (settings, server) = if sheet.file.is_empty() {
        let server = lowlat_host_report::host_line(&host.snapshot).0;
        (BiosSheet::of_host(host.role.profile, &host.snapshot), server)
    } else {
        let facts = read_files(&sheet.file, sheet.registry.as_deref())?;
        (BiosSheet::of_server(&facts, host.role.profile), facts.server.name().unwrap_or_default())
    };
    // Saved settings are of another server.
    let is_here = sheet.file.is_empty();
    let host_name = host_name(&host.root, host.snapshot.origin.is_redacted).filter(|_| is_here);
    let labels = sheet.language.labels.of_all([Labels { host_name, ..Labels::default() }].iter());
    output::print_as(sheet.json, &WithLabels { labels: &labels, result: &settings }, |width| {
        lowlat_tune_report::bios_sheet_text(&settings, &server, width)
    })?;
    page.write_page(&labels, || lowlat_tune_report::bios_sheet_html(&settings, &server))?;
    Ok(Exit::Clean)
}

//! The client: from the arguments to the document.

use super::{
    arguments::{ClientArgs, Format},
    raw,
};
use crate::{
    commands::net::{command_line, sfnt_header},
    documents::Run,
    output::{self, Exit},
    results::write_all,
    signals,
};
use anyhow::Context;
use lowlat_net::{
    pingpong::PingpongMeasurement,
    sfnt::{self, Version},
};
use lowlat_net_run::{self as net, ClientOptions};
use lowlat_results::ResultDocument;

/// The options of a run, checked.
pub fn options(arguments: &ClientArgs, command_line: String) -> anyhow::Result<ClientOptions> {
    let scenario = arguments.scenario()?;
    scenario.check().map_err(net::PingpongError::from)?;
    Ok(ClientOptions {
        server: arguments.server(&scenario)?,
        command_line,
        percentile: arguments.percentile,
        is_forced: arguments.force,
        keeps_samples: arguments.raw.is_some(),
        scenario,
    })
}

/// Measures, prints, writes the files.
pub fn run(arguments: &ClientArgs) -> anyhow::Result<Exit> {
    let options = options(arguments, command_line())?;
    let files = arguments.outputs.files.prepare(arguments.outputs.hlog.as_deref())?;
    let raw = raw::prepare(arguments.raw.as_deref(), &options.scenario.sizes)?;
    let (command, labels) = (PingpongMeasurement::COMMAND, &arguments.outputs.files.language.labels);
    let mut run = Run::begin(command, labels, || arguments.host_args.read_live("round trips"))?;
    let stop = signals::stop_flag()?;
    let all = options.scenario.sizes.len();
    run.progress.say(format!("measuring {all} sizes"));
    run.progress.stand_still();
    run.start();
    let record = net::run_client(&run.host.root, &options, &stop, &|size| {
        run.progress.say(format!("measured {} bytes", size.size_bytes));
    })?;
    let (texts, is_whole) = (raw::texts(&raw, &record), !record.has_ended_early);
    let document = run.document(vec![PingpongMeasurement::from(record).into()], &stop);
    print(&document, arguments.outputs.form()).and(files.write(&document))?;
    write_all(texts)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_whole))
}

/// Prints round trips.
pub fn print(document: &ResultDocument, format: Format) -> anyhow::Result<()> {
    let record = &document.pingpong().context("the document contains no round trips")?.record;
    let version = match format {
        Format::Text => return output::print(&lowlat_net_report::pingpong_text(record, output::width())),
        Format::Json => return output::print_json(document),
        Format::Sfnt => Version::V1_6,
        Format::SfntV15 => Version::V1_5,
    };
    let marks = record.unsound.iter().map(ToString::to_string).chain(record.warnings.iter().cloned());
    marks.for_each(|mark| output::talk(&format!("lowlat net: {mark}")));
    output::print_plain(&sfnt::log_of(record, &sfnt_header(document), version).to_string())
}

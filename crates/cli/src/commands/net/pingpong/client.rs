//! The client: from the arguments to the document.

use super::{arguments::ClientArgs, outputs::Outputs, raw};
use crate::{
    commands::net::command_line, documents::Run, output::Exit, progress::Progress, results::write_all,
    signals,
};
use jiff::Timestamp;
use lowlat_measure::net::{self, ClientOptions};
use lowlat_net::pingpong::PingpongMeasurement;
use lowlat_settings::audit::Audit;

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
    let mut run = Run::begin(PingpongMeasurement::COMMAND, &arguments.outputs.files.language.labels);
    let options = options(arguments, command_line())?;
    let outputs = Outputs::prepare(&arguments.outputs)?;
    let raw = raw::prepare(arguments.raw.as_deref(), &options.scenario.sizes)?;
    let progress = Progress::new();
    progress.say("reading the host");
    let host = arguments.host_args.read_live("round trips")?;
    let audit = Audit::of(&host.context());
    let stop = signals::stop_flag()?;
    let all = options.scenario.sizes.len();
    progress.say(format!("measuring {all} sizes"));
    progress.stand_still();
    run.started_at = Timestamp::now();
    let record = net::run_client(&host.root, &options, &stop, &|size| {
        progress.say(format!("measured {} bytes", size.size_bytes));
    });
    progress.finish();
    let record = record?;
    let (texts, is_whole) = (raw::texts(&raw, &record), !record.has_ended_early);
    let document = run.document(host, audit, vec![PingpongMeasurement::from(record).into()], &stop);
    outputs.write(&document)?;
    write_all(texts)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_whole))
}

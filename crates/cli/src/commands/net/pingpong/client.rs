//! The client: from the arguments to the document.

use super::{arguments::ClientArgs, outputs::Outputs};
use crate::{documents::Run, output::Exit, progress::Progress, signals};
use jiff::Timestamp;
use lowlat_measure::net::{self, ClientOptions};
use lowlat_net::pingpong::PingpongMeasurement;
use lowlat_settings::audit::Audit;

/// Measures, prints, writes the files.
pub fn run(arguments: &ClientArgs) -> anyhow::Result<Exit> {
    let mut run = Run::begin(PingpongMeasurement::COMMAND);
    let scenario = arguments.scenario()?;
    scenario.check().map_err(net::PingpongError::from)?;
    let options = ClientOptions {
        server: arguments.server(&scenario)?,
        command_line: ["lowlat".to_owned()]
            .into_iter()
            .chain(std::env::args().skip(1))
            .collect::<Vec<_>>()
            .join(" "),
        percentile: arguments.percentile,
        is_forced: arguments.force,
        scenario,
    };
    let outputs = Outputs::prepare(&arguments.outputs)?;
    let progress = Progress::new();
    progress.say("reading the host");
    let host = arguments.host_args.read()?;
    anyhow::ensure!(
        host.root.is_live(),
        "cannot measure {}: round trips can only be measured on the running host\nhint: leave out --root",
        host.root.label()
    );
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
    let document = run.document(host, audit, vec![PingpongMeasurement::from(record?).into()], &stop);
    outputs.write(&document)?;
    Ok(if document.is_interrupted { Exit::Interrupted } else { Exit::Clean })
}

//! The client: from the arguments to the document and its outputs.

use super::arguments::{ClientArgs, Format, OutputArgs};
use crate::{
    commands::{
        net::{command_line, pingpong::server_with_port, sfnt_header},
        outputs::RunFiles,
    },
    documents::Run,
    output::{self, Exit},
    signals,
};
use anyhow::Context;
use lowlat_net::{
    sfnt,
    stream::{StreamMeasurement, StreamRecord},
};
use lowlat_net_run::{self as net, ClientOptions, StreamClientOptions};
use lowlat_results::ResultDocument;

/// Measures, prints, writes the files.
pub fn run(arguments: &ClientArgs) -> anyhow::Result<Exit> {
    let stream = arguments.stream()?;
    let scenario = arguments.scenario(&stream)?;
    scenario.check().map_err(net::PingpongError::from)?;
    let client = ClientOptions {
        server: server_with_port(&arguments.host),
        command_line: command_line(),
        percentile: arguments.percentile,
        is_forced: arguments.force,
        keeps_samples: false,
        scenario,
    };
    let outputs = Outputs::prepare(&arguments.outputs)?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(StreamMeasurement::COMMAND, labels, || arguments.host_args.read())?;
    anyhow::ensure!(
        run.host.root.is_live(),
        "cannot measure {}: messages can only be sent from the running host\nhint: leave out --root",
        run.host.root.label()
    );
    let stop = signals::stop_flag()?;
    run.progress.say("measuring rates");
    run.progress.stand_still();
    run.start();
    let options = StreamClientOptions { client, stream };
    let record = net::run_stream(&run.host.root, &options, &stop, &|round| {
        let lost = round.lost();
        run.progress.say(format!("measured {:.0} messages/s, {lost} lost", round.target_per_s));
    })?;
    let is_whole = !record.set_up.has_ended_early;
    let document = run.document(vec![StreamMeasurement::from(record).into()], &stop);
    outputs.write(&document)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_whole))
}

/// Requested outputs, with their files checked.
pub struct Outputs<'a> {
    arguments: &'a OutputArgs,
    files: RunFiles,
}

impl<'a> Outputs<'a> {
    /// Checks the files before the run.
    pub fn prepare(arguments: &'a OutputArgs) -> anyhow::Result<Self> {
        Ok(Self { arguments, files: arguments.files.prepare(None)? })
    }

    /// Prints, then writes the files.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let record = &document
            .stream()
            .context("cannot show the document: it contains no stream\nhint: name one that `lowlat net stream client --result` wrote")?
            .record;
        let printed = self.print(document, record);
        printed.and(self.files.write(document, |_| Ok(String::new())))
    }

    fn print(&self, document: &ResultDocument, record: &StreamRecord) -> anyhow::Result<()> {
        match if self.arguments.json { Format::Json } else { self.arguments.format } {
            Format::Text => output::print(&lowlat_net_report::stream_text(record, output::width())),
            Format::Json => output::print_json(document),
            Format::Sfnt => {
                let run = &record.set_up;
                let marks = run.unsound.iter().map(ToString::to_string).chain(run.warnings.iter().cloned());
                marks.for_each(|mark| output::talk(&format!("lowlat net: {mark}")));
                output::print_plain(&sfnt::stream_text(record, &sfnt_header(document)))
            }
        }
    }
}

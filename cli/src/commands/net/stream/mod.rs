//! `lowlat net stream`: messages in one direction at rising rates.

mod arguments;

use crate::{
    commands::{
        net::{command_line, pingpong::server_with_port, sfnt_header},
        outputs::Form,
    },
    documents::Run,
    exit::Exit,
    output, signals,
};
use anyhow::Context;
pub use arguments::Action;
use arguments::StreamClientArgs;
use lowlat_net::{sfnt, stream::StreamMeasurement};
use lowlat_net_run::{self as net, ClientOptions, StreamClientOptions};
use lowlat_results::ResultDocument;

/// Measures, prints, writes the files.
pub fn run(arguments: &StreamClientArgs) -> anyhow::Result<Exit> {
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
    let files = arguments.outputs.files.prepare(None)?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(StreamMeasurement::COMMAND, labels, || arguments.role.read())?;
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
    let form = arguments.outputs.format.or_json(arguments.outputs.json);
    print(&document, form).and(files.write(&document))?;
    Ok(Exit::of_measurement(document.is_interrupted, is_whole))
}

/// Prints a stream.
pub fn print(document: &ResultDocument, form: Form) -> anyhow::Result<()> {
    let record = &document.stream().context("the document contains no stream")?.record;
    match form {
        Form::Json => output::print_json(document),
        Form::Sfnt => {
            let run = &record.set_up;
            let marks = run.unsound.iter().map(ToString::to_string).chain(run.warnings.iter().cloned());
            marks.for_each(|mark| output::talk(&format!("lowlat net: {mark}")));
            output::print_plain(&sfnt::stream_text(record, &sfnt_header(document)))
        }
        _ => output::print(&lowlat_net_report::stream_text(record, output::width())),
    }
}

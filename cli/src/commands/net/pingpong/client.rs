//! The client: from the arguments to the document.

use super::arguments::ClientArgs;
use crate::{
    commands::{
        net::{command_line, sfnt_header},
        outputs::Form,
    },
    documents::Run,
    exit::Exit,
    output,
    results::{PreparedFile, write_all},
    signals,
};
use anyhow::Context;
use lowlat_net::{
    pingpong::{PingpongMeasurement, PingpongRecord},
    sfnt::{self, Version},
};
use lowlat_net_run::{self as net, ClientOptions};
use lowlat_results::ResultDocument;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

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
    let raw = prepare_raw(arguments.raw.as_deref(), &options.scenario.sizes)?;
    let (command, labels) = (PingpongMeasurement::COMMAND, &arguments.outputs.files.language.labels);
    let mut run = Run::begin(command, labels, || arguments.role.read())?;
    let stop = signals::stop_flag()?;
    let all = options.scenario.sizes.len();
    run.progress.say(format!("measuring {all} sizes"));
    run.progress.stand_still();
    run.start();
    let record = net::run_client(&run.host.root, &options, &stop, &|size| {
        run.progress.say(format!("measured {} bytes", size.size_bytes));
    })?;
    let (texts, is_whole) = (raw_texts(&raw, &record), !record.has_ended_early);
    let document = run.document(vec![PingpongMeasurement::from(record).into()], &stop);
    let form = arguments.outputs.format.or_json(arguments.outputs.json);
    print(&document, form).and(files.write(&document))?;
    write_all(texts)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_whole))
}

/// Prints round trips.
pub fn print(document: &ResultDocument, form: Form) -> anyhow::Result<()> {
    let record = &document.pingpong().context("the document contains no round trips")?.record;
    let version = match form {
        Form::Sfnt => Version::V1_6,
        Form::SfntV15 => Version::V1_5,
        Form::Json => return output::print_json(document),
        _ => return output::print(&lowlat_net_report::pingpong_text(record, output::width())),
    };
    let marks = record.unsound.iter().map(ToString::to_string).chain(record.warnings.iter().cloned());
    marks.for_each(|mark| output::talk(&format!("lowlat net: {mark}")));
    output::print_plain(&sfnt::log_of(record, &sfnt_header(document), version).to_string())
}

/// The files of a run by size.
type RawFiles = BTreeMap<u32, PreparedFile>;

/// Checks the files of --raw before the run: every sample, a file for each size, as sfnt-pingpong writes them.
fn prepare_raw(prefix: Option<&Path>, sizes: &[u32]) -> anyhow::Result<RawFiles> {
    let Some(prefix) = prefix else { return Ok(RawFiles::new()) };
    let file = |size: u32| {
        let mut path = OsString::from(prefix);
        path.push(format!("-{size}.dat"));
        Ok((size, PreparedFile::prepare(&PathBuf::from(path), "--raw")?))
    };
    sizes.iter().copied().map(file).collect()
}

/// The files with their texts: a line for each sample. A size that was not measured has no file.
fn raw_texts<'a>(
    files: &'a RawFiles,
    record: &PingpongRecord,
) -> Vec<(&'a PreparedFile, anyhow::Result<String>)> {
    let lines = |samples_ns: &[u64]| samples_ns.iter().map(|ns| format!("{ns}\n")).collect::<String>();
    let measured = record.sizes.iter().filter_map(|size| Some((files.get(&size.size_bytes)?, size)));
    measured.map(|(file, size)| (file, Ok(lines(&size.samples_ns)))).collect()
}

//! `lowlat report render`: shows any document as the command that wrote it.

use super::{named, names};
use crate::{
    arguments::word,
    commands::{
        help,
        jitter::{self, gates, parse_gate, parse_rank},
        net::{pingpong, stream},
        outputs::{FileArgs, Form, RunFiles},
    },
    documents::{self, Kind},
    exit::Exit,
    labels::Labelled,
    output,
};
use anyhow::{Context, bail, ensure};
use clap::Args;
use lowlat_jitter::gate::Gate;
use lowlat_pipeline::{ExchangeDocument, MatrixDocument, PipelineDocument, size::SizeDocument};
use lowlat_pipeline_report::{
    exchange_html, exchange_text, matrix_html, matrix_text, pipeline_text, run_html, size_html, size_text,
};
use lowlat_plan::proof::PlanProof;
use lowlat_results::ResultDocument;
use lowlat_tune_report::{proof_html, proof_text};
use std::path::{Path, PathBuf};

/// Show documents as the commands that wrote them, as Markdown or as one HTML page
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 done, 1 a limit of --gate is exceeded, 2 error, 4 none is, but the run cannot show that all are \
    kept.", &[
    ("lowlat report render desk7.json", "Print a document as the command that measured it did."),
    ("lowlat report render desk7.json --longest 3", "Show what happened in the third longest interruption."),
    ("lowlat report render runs/*.json --gate guide-57037", "Show how many runs keep the limits of the guide."),
    ("lowlat report render desk7.json desk8.json --report desks.html", "Write one page of two documents."),
    ("lowlat report render desk7.json --format markdown", "Print Markdown for a ticket."),
]))]
pub struct ReportRenderArgs {
    /// Render these documents; several make one text or one page
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print text as the command did, Markdown, the document, or the rows of another program: sysjitter 1.4, sfnt-pingpong
    /// 1.6.0 and 1.5.0, sfnt-stream 1.6.0
    #[arg(long, default_value = "text", value_parser = word(FORMS))]
    format: Form,
    /// Print the document, as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Judge interruptions by these limits, such as 'max<10us,rate<0.01/s'; of several documents, show how many keep them
    #[arg(long, value_name = "LIMITS", value_parser = parse_gate)]
    gate: Option<Gate>,
    /// Print the timeline of the longest interruption, or of the N-th longest
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", allow_negative_numbers = true, value_parser = parse_rank, conflicts_with = "json")]
    longest: Option<usize>,
    /// Show every CPU and every cause of interruptions
    #[arg(long, short)]
    verbose: bool,
    /// Write the histograms to this file as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    #[command(flatten)]
    outputs: FileArgs,
}

const FORMS: [(&str, Form); 6] =
    [Form::TEXT, Form::MARKDOWN, Form::JSON, Form::SYSJITTER, Form::SFNT, Form::SFNT_V15];

pub fn run(mut arguments: ReportRenderArgs) -> anyhow::Result<Exit> {
    arguments.format = arguments.format.or_json(arguments.json);
    ensure!(
        arguments.longest.is_none() || arguments.format == Form::Text,
        "--longest prints a timeline as text only\nhint: leave out --format"
    );
    match arguments.files.as_slice() {
        [file] => one(file, &arguments),
        files => several(files, &arguments),
    }
}

/// Shows one document of any kind.
fn one(file: &Path, arguments: &ReportRenderArgs) -> anyhow::Result<Exit> {
    let bytes = documents::RESULT.bytes(file)?;
    match documents::kind_of(&bytes).unwrap_or_default().as_str() {
        PipelineDocument::DOCUMENT => return stored(file, &bytes, arguments, pipeline_text, run_html),
        MatrixDocument::DOCUMENT => return stored(file, &bytes, arguments, matrix_text, matrix_html),
        SizeDocument::DOCUMENT => return stored(file, &bytes, arguments, size_text, size_html),
        PlanProof::DOCUMENT => return stored(file, &bytes, arguments, proof_text, proof_html),
        ExchangeDocument::DOCUMENT => return stored(file, &bytes, arguments, exchange_text, exchange_html),
        _ => {}
    }
    let document = documents::RESULT.parse(file, &bytes)?;
    let mut document: ResultDocument = arguments.outputs.language.labels.label(document);
    let files = arguments.outputs.prepare(arguments.hlog.as_deref())?;
    let shown = file.display();
    let verdict = if is_about_jitter(&document, arguments) {
        jitter::judge(&mut document, arguments.gate.as_ref())?
    } else {
        documents::study_again(&mut document).with_context(|| format!("cannot render {shown}"))?;
        None
    };
    print(&document, file, arguments).and(files.write(&document))?;
    Ok(verdict.map_or(Exit::Clean, jitter::exit_of))
}

/// True if the document is that of `lowlat jitter`, or if something is asked that only its measurement can answer.
fn is_about_jitter(document: &ResultDocument, arguments: &ReportRenderArgs) -> bool {
    is_jitter_asked_for(arguments) || (document.command == "jitter" && arguments.format != Form::Markdown)
}

fn is_jitter_asked_for(arguments: &ReportRenderArgs) -> bool {
    let is_judged = arguments.gate.is_some() || arguments.longest.is_some();
    is_judged || arguments.verbose || arguments.format == Form::Sysjitter
}

fn print(document: &ResultDocument, file: &Path, arguments: &ReportRenderArgs) -> anyhow::Result<()> {
    let shown = file.display();
    let of_jitter = |format| jitter::outputs::print(document, format, arguments.longest, arguments.verbose);
    let of_net = |form| match (document.pingpong(), document.stream()) {
        (Some(_), _) => pingpong::print(document, form),
        (None, Some(_)) if form == Form::Sfnt => stream::print(document, form),
        _ => bail!("cannot print {shown} in the format of sfnettest: it has no such measurement"),
    };
    let name = names(&arguments.files, &arguments.outputs.language.labels, "document").concat();
    let one = [(name, document)];
    match arguments.format {
        form @ (Form::Sfnt | Form::SfntV15) => of_net(form),
        Form::Markdown => output::print_plain(&lowlat_results_report::documents_markdown(&one)),
        form if is_about_jitter(document, arguments) => of_jitter(form),
        Form::Json => output::print_json(document),
        _ => output::print(&lowlat_results_report::documents_text(&one, output::width())),
    }
}

/// Shows several documents of runs together.
fn several(files: &[PathBuf], arguments: &ReportRenderArgs) -> anyhow::Result<Exit> {
    let ReportRenderArgs { outputs, format, .. } = arguments;
    let is_of_one = arguments.longest.is_some() || arguments.hlog.is_some() || outputs.result.is_some();
    if let Some(gate) = &arguments.gate {
        ensure!(
            !is_of_one && outputs.report.is_none() && matches!(format, Form::Text | Form::Json),
            "cannot write several documents into one file or table\nhint: with several documents, --gate takes only --json"
        );
        return gates::run(files, gate, *format == Form::Json);
    }
    ensure!(
        !is_of_one && matches!(format, Form::Text | Form::Markdown),
        "cannot show several documents at once in this way\nhint: name one, or judge them with --gate, or compare them with \
         `lowlat report compare`"
    );
    let language = &outputs.language;
    let page = RunFiles::prepare_page(outputs.report.as_deref(), language)?;
    let mut documents = super::read(files, &language.labels)?;
    for (name, document) in &mut documents {
        documents::study_again(document).with_context(|| format!("cannot render {name}"))?;
    }
    let documents = named(&documents);
    let printed = match format {
        Form::Markdown => output::print_plain(&lowlat_results_report::documents_markdown(&documents)),
        _ => output::print(&lowlat_results_report::documents_text(&documents, output::width())),
    };
    let labels = language.labels.of_all(documents.iter().map(|(_, document)| &document.labels));
    printed.and(page.write_page(&labels, || lowlat_results_report::documents_html(&documents)))?;
    Ok(Exit::Clean)
}

/// Shows a document that is no result of measurements, by the functions that its command uses for text and page.
fn stored<D: Labelled>(
    file: &Path,
    bytes: &[u8],
    arguments: &ReportRenderArgs,
    text: fn(&D, usize) -> String,
    page: fn(&D) -> String,
) -> anyhow::Result<Exit> {
    let (document, version) = D::KIND;
    let (ReportRenderArgs { outputs, format, .. }, shown) = (arguments, file.display());
    ensure!(
        !is_jitter_asked_for(arguments)
            && arguments.hlog.is_none()
            && matches!(format, Form::Text | Form::Json),
        "cannot show {shown} so: it is a \"{document}\"\nhint: print it as text or JSON"
    );
    let files = outputs.prepare(None)?;
    let kind = Kind { document, version, is: "a document of lowlat", hint: documents::RESULT.hint };
    let mut document: D = outputs.language.labels.label(kind.parse(file, bytes)?);
    let labels = document.labels().clone();
    let printed = output::print_as(*format == Form::Json, &document, |width| text(&document, width));
    printed.and(files.write_as(&document, &labels, || page(&document), || Ok(String::new())))?;
    Ok(Exit::Clean)
}

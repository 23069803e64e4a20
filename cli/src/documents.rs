//! Result documents: creation for the current run, and reading of earlier ones.

use crate::host::Host;
use crate::labels::{self, LabelArgs};
use crate::progress::Progress;
use anyhow::{Context, bail};
use jiff::Timestamp;
use lowlat_host::Labels;
use lowlat_jitter::RemedyContext;
use lowlat_results::{Measurement, ResultDocument};
use lowlat_settings::audit::Audit;
use std::{
    io::{self, Read as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// Studies a jitter record again, so that an old document benefits from this version.
pub fn study_again(document: &mut ResultDocument) -> anyhow::Result<()> {
    // Changing one part of the document needs the others.
    let mut measurements = std::mem::take(&mut document.measurements);
    let context =
        RemedyContext { host: &document.snapshot, allocation: &document.allocation, role: &document.role };
    if let Some(jitter) = measurements.iter_mut().find_map(Measurement::jitter_mut) {
        jitter.study_again(&context)?;
    }
    document.measurements = measurements;
    Ok(())
}

/// Formats a time as documents have it: "2026-11-21T18:02:11Z".
pub fn in_rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Run that ends with a document.
pub struct Run {
    labels: LabelArgs,
    command: &'static str,
    clock: Instant,
    started_at: Timestamp,
    /// The host and how it is set, as read before the measurement.
    pub host: Host,
    pub audit: Audit,
    /// Progress line, which the end of the run clears.
    pub progress: Progress,
    /// Warnings about the run itself.
    pub warnings: Vec<String>,
}

impl Run {
    /// Starts the run of a subcommand: reads the host and judges it. `labels` name its document.
    pub fn begin(
        command: &'static str,
        labels: &LabelArgs,
        read: impl FnOnce() -> anyhow::Result<Host>,
    ) -> anyhow::Result<Self> {
        let (clock, started_at) = (Instant::now(), Timestamp::now());
        let progress = Progress::new();
        progress.say("reading the host");
        let host = read()?;
        progress.say("judging settings");
        let audit = Audit::of(&host.context());
        Ok(Self {
            labels: labels.clone(),
            command,
            clock,
            started_at,
            host,
            audit,
            progress,
            warnings: Vec::new(),
        })
    }

    /// Sets the document's start time to now, as the measurement starts.
    pub fn start(&mut self) {
        self.started_at = Timestamp::now();
    }

    /// Ends the run and returns its document. `stop` is the flag that interrupts the run.
    pub fn document(self, measurements: Vec<Measurement>, stop: &AtomicBool) -> ResultDocument {
        let Host { root, snapshot, role, allocation, .. } = self.host;
        let host_name = labels::host_name(&root, snapshot.origin.is_redacted);
        let mut document = ResultDocument {
            document: ResultDocument::DOCUMENT.into(),
            schema_version: ResultDocument::SCHEMA_VERSION,
            lowlat_version: env!("CARGO_PKG_VERSION").into(),
            command: self.command.into(),
            started_at: in_rfc3339(self.started_at),
            elapsed_s: self.clock.elapsed().as_secs_f64(),
            // Relaxed: set by the signal handler, read once all samplers have been joined.
            is_interrupted: stop.load(Ordering::Relaxed),
            labels: Labels::default(),
            role,
            snapshot,
            allocation,
            audit: self.audit,
            measurements,
            readiness: Vec::new(),
            warnings: self.warnings,
        };
        document.warnings = lowlat_results_report::all_warnings(&document);
        self.labels.label_new(document, host_name)
    }
}

/// Largest document that is read, in bytes. That of a host with a thousand CPUs measured for hours is below.
const BYTES_MAX: u64 = 1 << 30;

/// Reads a result document and checks that this version understands it.
pub fn read(path: &Path) -> anyhow::Result<ResultDocument> {
    RESULT.parse(path, &RESULT.bytes(path)?)
}

/// The document of a run.
pub const RESULT: Kind = Kind {
    document: ResultDocument::DOCUMENT,
    version: ResultDocument::SCHEMA_VERSION,
    is: "a result document of lowlat",
    hint: "name a document that --result or --json wrote",
};

/// Returns the kind that a document names.
pub fn kind_of(bytes: &[u8]) -> Option<String> {
    serde_json::from_slice::<DocumentHead>(bytes).ok().map(|head| head.document)
}

/// Returns the content of a file that the user named. Fails above 1 GiB, also for endless devices and pipes.
pub fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 GiB"));
    }
    Ok(bytes)
}

/// Returns the content of a file that the user named, which must be UTF-8.
pub fn text_of(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes_of(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// As [`bytes_of`], with the path and a hint in the error.
pub fn named(path: &Path, hint: &str) -> anyhow::Result<Vec<u8>> {
    bytes_of(path).with_context(|| format!("cannot read {}\nhint: {hint}", path.display()))
}

/// Kind of document, and its words in errors.
pub struct Kind {
    /// Value of the field `document`.
    pub document: &'static str,
    /// Value of the field `schema_version`.
    pub version: u32,
    /// Name of the kind, as in "a result document of lowlat".
    pub is: &'static str,
    /// Hint for users who named a wrong file.
    pub hint: &'static str,
}

impl Kind {
    /// Reads a file that may hold a document of this kind.
    pub fn bytes(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        named(path, self.hint)
    }

    /// Parses the content of a file as a document of this kind.
    pub fn parse<T: serde::de::DeserializeOwned>(&self, path: &Path, bytes: &[u8]) -> anyhow::Result<T> {
        let Self { document, version, is, hint } = self;
        let shown = path.display();
        let head: DocumentHead =
            serde_json::from_slice(bytes).with_context(|| format!("{shown} is not {is}\nhint: {hint}"))?;
        if head.document != *document {
            bail!("{shown} is not {is}: found a \"{}\"\nhint: {hint}", head.document);
        }
        if head.schema_version != *version {
            bail!(
                "cannot read {shown}: it has document version {}, and this lowlat reads version {version}\nhint: use the lowlat that \
                 wrote it, {}",
                head.schema_version,
                head.lowlat_version
            );
        }
        serde_json::from_slice(bytes)
            .with_context(|| format!("{shown} is damaged\nhint: copy it again, or measure again"))
    }
}

#[derive(serde::Deserialize)]
struct DocumentHead {
    document: String,
    schema_version: u32,
    #[serde(default)]
    lowlat_version: String,
}

//! Configuration files of other tools: the values that they request, and their effect on a host's audit.
//!
//! A file becomes [`Request`]s, each for targets that lowlat knows, and [`Unread`] parts. Each request is put into a
//! snapshot alone, and the judges judge the result.

mod judge;
mod lltune;
mod rt_conf;
pub mod tuned;
mod yaml;

#[cfg(test)]
mod tests;

use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    cmdline::{Repeat, same_name},
};
use lowlat_settings::change::{BootToken, Target};
use serde::{Deserialize, Serialize};

pub use judge::judge;
pub use tuned::Tree;

/// A tool whose files can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuningTool {
    /// A TuneD profile: tuned.conf.
    Tuned,
    Lltune,
    RtConf,
}

impl TuningTool {
    pub const ALL: [Self; 3] = [Self::Tuned, Self::Lltune, Self::RtConf];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tuned => "tuned",
            Self::Lltune => "lltune",
            Self::RtConf => "rt-conf",
        }
    }

    /// Description of the tool's file format, for messages.
    pub fn format(self) -> &'static str {
        match self {
            Self::Tuned => "a TuneD profile, with sections such as [sysctl] and lines NAME=VALUE below them",
            Self::Lltune => "LLTune's YAML, with the keys kernel, cpu, memory, network and irq",
            Self::RtConf => "rt-conf's YAML, with the keys kernel_cmdline, irq_tuning and cpu_governance",
        }
    }

    /// Reads a file, after the files that it includes. Errors: the text is not of the tool's format.
    pub fn read(self, path: &str, tree: &dyn Tree, host: &HostSnapshot) -> Result<Wishes, String> {
        let mut wishes = match self {
            Self::Tuned => tuned::read(path, tree, host),
            Self::Lltune => yaml::parse(tree.read(path).text()).map(|value| lltune::read(&value, host)),
            Self::RtConf => {
                yaml::parse(tree.read(path).text()).map(|value| rt_conf::read(&value, tree, host))
            }
        }?;
        wishes.refuse_misfits(host);
        Ok(wishes)
    }
}

/// Requests and other parts of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wishes {
    /// Values that lowlat understands.
    pub requests: Vec<Request>,
    pub unread: Vec<Unread>,
    /// The file has the tool's format, even if no part of it can be judged.
    pub is_certain: bool,
}

/// One value that a file requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Place in the file: `[sysctl] vm.swappiness`.
    pub place: String,
    /// Targets that it sets, for example one file of each CPU.
    pub targets: Vec<Target>,
    pub value: String,
}

/// A part of a file without counterpart in lowlat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    pub place: String,
    /// Reason why it is left out.
    pub why: String,
    /// The value cannot be parsed, although lowlat knows its target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_invalid: bool,
}

/// A file's requests, judged on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Name of the document: [`Import::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`Import::SCHEMA_VERSION`].
    pub schema_version: u32,
    pub tool: TuningTool,
    /// The requests, in the order of a TuneD profile; those of YAML by name.
    pub requests: Vec<Judged>,
    /// The parts that were left out.
    pub unread: Vec<Unread>,
    /// Settings of the host that differ from the profile now.
    pub faults_now: usize,
    /// The same, if the file were in force.
    pub faults_then: usize,
}

impl Import {
    pub const DOCUMENT: &str = "lowlat-import";
    pub const SCHEMA_VERSION: u32 = 1;

    /// Returns the requests that make a setting wrong.
    pub fn harmful(&self) -> impl Iterator<Item = &Judged> {
        self.requests.iter().filter(|request| matches!(request.effect, Effect::Differs { .. }))
    }

    /// Returns the requests that a setting of the catalogue depends on.
    pub fn judged(&self) -> impl Iterator<Item = &Judged> {
        self.requests.iter().filter(|request| request.effect != Effect::Unjudged)
    }

    /// Returns the parts whose values cannot be parsed.
    pub fn invalid(&self) -> impl Iterator<Item = &Unread> {
        self.unread.iter().filter(|part| part.is_invalid)
    }
}

/// A request with the judges' verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    pub place: String,
    /// Name of the targets, as text.
    pub target: String,
    pub value: String,
    pub present: Reading<String>,
    /// The host already has the value.
    pub is_present: bool,
    pub effect: Effect,
}

/// Effect of a request on the settings that depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Effect {
    /// All settings have their wanted values.
    Agrees { settings: Vec<String> },
    /// At least one setting differs from its wanted value.
    /// - `settings`: the settings with other values than wanted.
    Differs { settings: Vec<Wrong> },
    /// No setting of the catalogue depends on it.
    Unjudged,
}

/// A setting that a request makes wrong, or leaves wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    pub id: String,
    /// Value that the profile wants.
    pub wanted: String,
}

impl Wishes {
    fn ask(&mut self, place: impl Into<String>, target: Target, value: impl Into<String>) {
        self.requests.push(Request { place: place.into(), targets: vec![target], value: value.into() });
    }

    fn leave(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.unread.push(Unread { place: place.into(), why: why.into(), is_invalid: false });
    }

    fn refuse(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.unread.push(Unread { place: place.into(), why: why.into(), is_invalid: true });
    }

    /// Adds the present values of requested targets to a snapshot if its readers did not read them.
    pub fn read_present(&self, host: &mut HostSnapshot, tree: &dyn Tree) {
        for target in self.requests.iter().flat_map(|request| &request.targets) {
            if let Some(path) = path_of(target).filter(|_| target.kind().present(host).is_absent()) {
                let reading = tree.read(&path);
                if !reading.is_absent() {
                    host.files.insert(path, reading);
                }
            }
        }
    }

    /// Returns the reason why the file may have another format; `None` if it has this one, even if no part of it can be
    /// judged.
    pub fn why_empty(&self) -> Option<String> {
        if self.is_certain || !self.requests.is_empty() || self.unread.iter().any(|part| part.is_invalid) {
            return None;
        }
        let Some(first) = self.unread.first() else { return Some("it sets nothing".to_owned()) };
        let more = match self.unread.len() - 1 {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!("no part of it can be judged ({}: {}{more})", first.place, first.why))
    }

    fn sysctl(&mut self, place: impl Into<String>, key: &str, value: impl Into<String>) {
        self.ask(place, Target::Sysctl { key: key.replace('/', ".") }, value);
    }

    fn file(&mut self, place: impl Into<String>, path: &str, value: impl Into<String>) {
        self.ask(place, Target::File { path: path.to_owned() }, value);
    }

    /// Adds one parameter of the command line; none as a value removes it, an empty value is a bare word.
    fn boot(&mut self, place: impl Into<String>, name: &str, value: Option<&str>) {
        let token = BootToken {
            setting: String::new(),
            name: name.to_owned(),
            value: value.map(str::to_owned),
            before: None,
        };
        let shown = crate::spell(&token).unwrap_or_default();
        let is_earlier = |request: &&Request| {
            let mut tokens = request.targets.iter().flat_map(Target::boot_tokens);
            tokens.any(|token| token.value.is_some() && same_name(&token.name, name))
        };
        if Repeat::of(name) == Repeat::First
            && let Some(earlier) = self.requests.iter().find(is_earlier)
            && earlier.value != shown
        {
            let why = format!("{shown} occurs after {}: {}", earlier.value, Repeat::First.rule());
            return self.leave(place, why);
        }
        self.ask(place, Target::CommandLine { tokens: vec![token] }, shown);
    }

    /// Requests a frequency governor for some CPUs.
    fn governor(&mut self, place: &str, governor: &str, cpus: &CpuSet) {
        let targets = cpus
            .iter()
            .map(|cpu| Target::File {
                path: format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
            })
            .collect();
        self.requests.push(Request { place: place.to_owned(), targets, value: governor.to_owned() });
    }

    /// Requests the CPUs of the interrupts that match.
    fn interrupts(
        &mut self,
        place: &str,
        cpus: &str,
        host: &HostSnapshot,
        matches: impl Fn(&lowlat_host::snapshot::Irq) -> bool,
    ) {
        let Ok(list) = CpuSet::parse_list_within(cpus, host.topology.cpu_count()) else {
            return self.refuse(place, format!("\"{cpus}\" is not a CPU list"));
        };
        let targets: Vec<Target> = host
            .interrupts
            .irqs
            .iter()
            .filter(|irq| matches(irq))
            .map(|irq| Target::IrqAffinity { irq: irq.number, actions: irq.actions.clone() })
            .collect();
        if targets.is_empty() {
            return self.leave(place, "no interrupt of this host matches");
        }
        self.requests.push(Request { place: place.to_owned(), targets, value: list.to_string() });
    }

    /// Moves requests whose values do not fit their targets to the unread parts. They are invalid only if the host's
    /// present value fits: of sysctls, lowlat knows only numbers.
    fn refuse_misfits(&mut self, host: &HostSnapshot) {
        let (fitting, misfits): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.requests).into_iter().partition(|request| misfit(request).is_none());
        self.requests = fitting;
        for request in misfits {
            let why = misfit(&request).unwrap_or_default();
            let is_known = |target: &Target| {
                let kind = target.kind();
                kind.present(host).known().is_some_and(|now| kind.misfit(now).is_none())
            };
            if request.targets.iter().any(is_known) {
                self.refuse(request.place, why);
            } else {
                self.leave(request.place, why);
            }
        }
    }
}

/// The file that contains a target's value.
fn path_of(target: &Target) -> Option<String> {
    match target {
        Target::File { path } => Some(path.clone()),
        Target::Sysctl { key } => Some(lowlat_host::snapshot::sysctl_path(key)),
        _ => None,
    }
}

fn misfit(request: &Request) -> Option<String> {
    request.targets.iter().find_map(|target| match target {
        // The full line has another form than one parameter.
        Target::CommandLine { .. } => None,
        target => target.kind().misfit(&request.value),
    })
}

/// The words for a switch of other tools as a number of the kernel.
fn number_of(word: &str) -> &str {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => "1",
        "false" | "no" | "off" => "0",
        _ => word,
    }
}

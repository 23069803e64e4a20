//! sysctl.d: the guide's `100-lowlatency.conf` under a name that sorts last.

use super::brief::Brief;
use super::text::{item, note, one_line};
use super::{ExportedFile, Format};
use crate::planner;
use lowlat_settings::{
    Layer, Setting, Verdict, Want,
    change::{Target, files::value, grammar::numbers, sysctl::name_that_wins},
    judge_one,
};

pub(super) const FORMAT: Format = Format {
    name: "sysctl",
    about: "one file for /etc/sysctl.d, under a name that sorts last",
    files: |brief| vec![file(brief)],
};

/// A key with the profile's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SysctlKey {
    /// In the form of sysctl.d(5): with dots, or with slashes if a name contains dots.
    pub(super) name: String,
    pub(super) value: String,
    pub(super) path: String,
}

/// The sysctls of a profile on a host.
#[derive(Debug, Default)]
pub(super) struct SysctlKeys {
    /// Keys to set, in ascending order.
    pub(super) set: Vec<SysctlKey>,
    /// Keys whose risk is not accepted, each with the reason.
    pub(super) risky: Vec<(SysctlKey, String)>,
    /// Keys that this kernel does not have, each with the reason.
    pub(super) gone: Vec<(String, String)>,
}

impl SysctlKeys {
    pub(super) fn of(brief: &Brief<'_>) -> Self {
        let mut keys = Self::default();
        let is_key = |setting: &&Setting| setting.layer == Layer::Sysctl && !setting.name.starts_with('/');
        for setting in brief.context.catalogue.settings().filter(is_key) {
            keys.add(brief, setting);
        }
        keys.set.sort_by(|one, other| one.name.cmp(&other.name));
        keys.set.dedup_by(|one, other| one.name == other.name);
        keys
    }

    fn add(&mut self, brief: &Brief<'_>, setting: &Setting) {
        let context = brief.context;
        if matches!(setting.want(context.profile), Want::Nothing) {
            return;
        }
        let finding = judge_one(context, setting);
        if finding.verdict == Verdict::NotApplicable {
            self.gone.push((setting.name.to_owned(), finding.because));
            return;
        }
        let proposed = keys_of(brief, setting, finding.verdict);
        if proposed.is_empty()
            && let Some(left) = brief.why_left_out(setting.id)
        {
            self.gone.push((setting.name.to_owned(), left.text.clone()));
        }
        for key in proposed {
            if planner::is_asked_for(context, setting) && !context.role.accepts(setting.id) {
                let why = if setting.cost.is_empty() { setting.hazard } else { setting.cost };
                self.risky.push((key, format!("{} ({}): {why}", setting.id, setting.risk.word())));
            } else {
                self.set.push(key);
            }
        }
    }
}

/// The keys of a row. A correct row may have another value than the planner would write; it is kept.
fn keys_of(brief: &Brief<'_>, setting: &Setting, verdict: Verdict) -> Vec<SysctlKey> {
    let context = brief.context;
    let mut keys: Vec<SysctlKey> = Vec::new();
    if verdict.is_fault() || verdict == Verdict::Unknown {
        for step in setting.proposal(context).steps {
            match step.target {
                Target::Sysctl { key } => keys.push(SysctlKey::new(key, step.after)),
                Target::File { path } => keys.extend(SysctlKey::of_path(&path, step.after)),
                _ => {}
            }
        }
    }
    let own = || keys.iter().any(|key| key.name == setting.name);
    let present = context.host.sysctl(setting.name);
    if verdict == Verdict::Good && !own() && present.is_known() {
        let fixed = match setting.want(context.profile) {
            Want::Value(_) | Want::Derived(_) => value(context, setting),
            _ => numbers(present.text()),
        };
        keys.extend(fixed.map(|value| SysctlKey::new(setting.name.to_owned(), value)));
    }
    keys
}

impl SysctlKey {
    fn new(name: String, value: String) -> Self {
        let path = lowlat_host::snapshot::sysctl_path(&name);
        Self { name, value, path }
    }

    /// The key of a path whose components contain dots, with slashes (sysctl.d(5)).
    fn of_path(path: &str, value: String) -> Option<Self> {
        let name = path.strip_prefix("/proc/sys/")?.to_owned();
        Some(Self { name, value, path: path.to_owned() })
    }
}

pub(super) fn file(brief: &Brief<'_>) -> ExportedFile {
    let keys = SysctlKeys::of(brief);
    let names: Vec<&str> = keys.set.iter().map(|key| key.name.as_str()).collect();
    let (name, loser) = name_that_wins(brief.context, &names);
    let mut text = text(brief, &keys, name);
    if let Some((key, path)) = loser {
        text += &note(&format!(
            "ATTENTION: {path} sets {key} and sorts after this file, so it wins. Change the key there."
        ));
    }
    ExportedFile { path: name.to_owned(), is_program: false, text }
}

fn text(brief: &Brief<'_>, keys: &SysctlKeys, name: &str) -> String {
    let mut text = brief.header("Sysctls for low latency.");
    text += "#\n";
    text += &note(&format!("Install as /etc/sysctl.d/{name}, then: sysctl -p /etc/sysctl.d/{name}"));
    text += &note(
        "If several files set a key, the file whose name sorts last wins. Names are compared as text, so \
         50-default.conf and 99-sysctl.conf override the guide's 100-lowlatency.conf.",
    );
    text.push('\n');
    for key in &keys.set {
        text += &format!("{} = {}\n", one_line(&key.name), one_line(&key.value));
    }
    if !keys.risky.is_empty() {
        text +=
            "\n# Left out because the risk is not accepted; export with --accept-risk ID to include one:\n";
        for (key, why) in &keys.risky {
            text += &format!("#   {} = {}\n", one_line(&key.name), one_line(&key.value));
            text += &item("#   ", why);
        }
    }
    if !keys.gone.is_empty() {
        text += "\n# Keys that this host does not have, or that are set another way:\n";
        for (key, why) in &keys.gone {
            text += &item("# ", &format!("{key}: {why}"));
        }
        text += &note(
            "Keys that moved to /sys/kernel/debug are no sysctls any more; the formats tuned, systemd and shell set \
             them there.",
        );
    }
    text.push('\n');
    text += &note("The whole profile also needs this command line, which sysctls cannot set:");
    text += &format!("#   {}\n", brief.planned_line());
    text
}

//! What every format tells: which host and profile it was made for, what is left out and why, and the line to expect.

use super::text::{comment, item, one_line};
use super::{super::LeftOut, super::Plan};
use lowlat_host::{CpuSet, snapshot::KernelFacts};
use lowlat_settings::{
    Context,
    change::{Target, WhyLeftOut, grammar::boot_line},
};

/// A host, its plan, and who made it.
#[derive(Debug)]
pub(super) struct Brief<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) plan: Plan,
}

impl<'a> Brief<'a> {
    pub(super) fn of(context: &'a Context<'a>, lowlat_version: &str) -> Self {
        let mut plan = Plan::of(context, lowlat_version);
        without_tuned_profile(&mut plan);
        plan.warnings.extend(missing_words(context));
        Self { context, plan }
    }

    pub(super) fn housekeeping(&self) -> &CpuSet {
        &self.context.allocation.housekeeping
    }

    pub(super) fn isolated(&self) -> &CpuSet {
        &self.context.allocation.isolated
    }

    pub(super) fn is_guide(&self) -> bool {
        self.context.profile == lowlat_host::Profile::Guide57037
    }

    fn kernel(&self) -> &KernelFacts {
        &self.context.host.kernel
    }

    /// Who made it, for which host, by which profile.
    fn made_for(&self) -> [String; 3] {
        let system = match self.plan.host.system.text() {
            "" => "a host without a firmware name",
            name => name,
        };
        let kernel = match self.kernel().release.text() {
            "" => String::new(),
            release => format!(", kernel {}", one_line(release)),
        };
        [
            format!("Made by lowlat {} for {}{kernel}.", self.plan.lowlat_version, one_line(system)),
            format!(
                "Profile {}. Housekeeping CPUs {}, isolated CPUs {}.",
                self.context.profile,
                or_none(self.housekeeping()),
                or_none(self.isolated())
            ),
            format!("Plan {}. Fits no other host: export it there.", self.plan.id()),
        ]
    }

    /// The head of a file whose comments begin with `mark`.
    pub(super) fn header(&self, mark: &str, what: &str) -> String {
        let mut text = comment(mark, what);
        text.extend(self.made_for().iter().map(|line| comment(mark, line)));
        text
    }

    /// The head of a README.
    pub(super) fn readme_head(&self, title: &str) -> String {
        format!("{title}\n{}\n\n{}\n", "=".repeat(title.chars().count()), self.made_for().join("\n"))
    }

    /// Why something is left out of the plan, where it is left out for a fault.
    pub(super) fn why_left_out(&self, setting: &str) -> Option<&LeftOut> {
        self.plan.left_out.iter().find(|left| left.setting == setting && left.why.is_of_fault())
    }

    /// What is left out and why, those whose risk is not accepted first; as far as it is about this format.
    pub(super) fn left_out(&self, mark: &str, is_about: fn(&LeftOut) -> bool) -> String {
        let is_told = |left: &&LeftOut| {
            left.why.is_of_fault()
                && !matches!(left.layer.as_str(), "readiness" | "firmware")
                && is_about(left)
        };
        let (mut risks, mut others) = (String::new(), String::new());
        for left in self.plan.left_out.iter().filter(is_told) {
            match left.why {
                WhyLeftOut::NotAccepted(risk) => {
                    risks
                        .push_str(&item(mark, &format!("{} ({}): {}", left.setting, risk.word(), left.text)));
                }
                _ => others.push_str(&item(mark, &format!("{}: {}", left.setting, left.text))),
            }
        }
        let head = |text: &str, items: &str| {
            if items.is_empty() { String::new() } else { comment(mark, text) + items }
        };
        [
            head(
                "Left out, since the risk is not accepted; --accept-risk ID at the export takes one in:",
                &risks,
            ),
            head("Left out for other reasons:", &others),
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(&format!("{}\n", mark.trim_end()))
    }

    /// What to know before it is used, as far as it is about this format.
    pub(super) fn warnings(&self, mark: &str, is_shown: fn(&str) -> bool) -> String {
        let shown = self.plan.warnings.iter().filter(|warning| is_shown(warning));
        let items: String = shown.map(|warning| item(mark, &format!("- {warning}"))).collect();
        if items.is_empty() { items } else { comment(mark, "Know before you use it:") + &items }
    }

    /// The command line that the plan writes, or the present one.
    pub(super) fn planned_line(&self) -> String {
        let planned = self.plan.changes.iter().find_map(|change| match change.target {
            Target::CommandLine { .. } => Some(change.after.clone()),
            _ => None,
        });
        boot_line(&planned.unwrap_or_else(|| self.kernel().tokens().raw().to_owned())).0
    }
}

/// A plan switches TuneD to a profile of lowlat's own so that both want the same. Without lowlat on the host nobody would
/// take that back with the rest, so the files here leave TuneD's profile alone.
fn without_tuned_profile(plan: &mut Plan) {
    const SETTING: &str = "service.tuned.profile";
    let count = plan.changes.len();
    plan.changes.retain(|change| change.settings != [SETTING]);
    if plan.changes.len() < count {
        plan.left_out.push(LeftOut {
            setting: SETTING.to_owned(),
            layer: lowlat_settings::Layer::Service.word().to_owned(),
            why: WhyLeftOut::YourChoice,
            text: "TuneD sets its profile's values whenever it starts: choose a profile for latency, or none with \
                   `tuned-adm off`, before this is applied"
                .to_owned(),
        });
    }
}

/// Words of the present line can hold anything; those that a shell or a boot loader might expand are not repeated.
fn missing_words(context: &Context<'_>) -> Option<String> {
    let (_, dropped) = boot_line(context.host.kernel.tokens().raw());
    (dropped > 0).then(|| {
        format!(
            "The expected command line lacks {dropped} {} of the present one, whose characters a shell or a boot \
             loader could expand. The host keeps them.",
            if dropped == 1 { "parameter" } else { "parameters" }
        )
    })
}

fn or_none(cpus: &CpuSet) -> String {
    if cpus.is_empty() { "none".to_owned() } else { cpus.to_list() }
}

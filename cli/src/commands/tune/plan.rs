//! `lowlat tune plan`: shows a profile's changes to a host as one diff. Writes nothing to the host.

use crate::{
    commands::{completions, help},
    exit::Exit,
    host::HostArgs,
    output,
    results::PreparedFile,
};
use clap::Args;
use lowlat_host::IsolateBy;
use lowlat_plan::Plan;
use lowlat_tune_run::flow::{container, hindrances};
use std::path::{Path, PathBuf};

/// Show every change that a profile plans as one diff; write nothing to the host
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 nothing to change, 1 changes planned, 2 error, 4 nothing to change, but less \
    than half of the settings could be checked.", &[
    ("lowlat tune plan", "Show what would change, and what would not and why."),
    ("lowlat tune plan --list", "List the profiles."),
    ("sudo lowlat tune plan --role desk.toml --out plan.json", "Save a plan to review and apply later."),
    ("lowlat tune plan --root desk7.tar.gz --profile guide-57037", "Plan the AMD/HPE guide's settings for a captured host."),
    ("lowlat tune plan --isolate-by cpuset", "Plan isolation without a reboot, and show what it lacks."),
    ("lowlat tune plan --profile guide-57037 --accept-risk boot.selinux", "Accept the risk of one setting."),
]))]
pub struct TunePlanArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Accept the risk of this setting; repeatable
    #[arg(long, value_name = "ID", add = completions::settings())]
    accept_risk: Vec<String>,
    /// Isolate CPUs by boot parameters, or by a cpuset partition without a reboot [default: boot]
    #[arg(long, value_name = "boot|cpuset", value_parser = super::isolate_by)]
    isolate_by: Option<IsolateBy>,
    /// List the profiles, the one in force, and whether each is made for this processor
    #[arg(long, conflicts_with_all = ["accept_risk", "isolate_by", "out"])]
    list: bool,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
    /// Also save the plan as JSON in this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &TunePlanArgs) -> anyhow::Result<Exit> {
    if arguments.list {
        return super::profiles::list(&arguments.host, arguments.json);
    }
    super::check_ids(&arguments.accept_risk)?;
    let mut host = arguments.host.read_silently()?;
    host.role.accepted_risks.extend(arguments.accept_risk.iter().cloned());
    host.role.isolate_by = arguments.isolate_by.unwrap_or(host.role.isolate_by);
    let mut plan = Plan::of(&host.context(), env!("CARGO_PKG_VERSION"));
    plan.warnings.append(&mut host.role_warnings);
    if host.root.is_live() {
        let site = super::open(Path::new("/"), None)?;
        plan.hindrances = hindrances(&site, &plan);
        if let Some(why) = container(&site) {
            plan.leave_all_out(&why);
        }
    }
    let file = PreparedFile::prepare_if(arguments.out.as_deref(), "--out")?;
    if arguments.json {
        output::print_json(&plan)?;
    } else {
        host.print(&lowlat_tune_report::plan_text(&plan, output::width()))?;
    }
    if let Some(file) = &file {
        let note = file.note();
        file.write_json_lines(&plan)?;
        output::talk(&note);
    }
    Ok(plan.claim().into())
}

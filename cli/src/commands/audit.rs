//! `lowlat audit`: a verdict on every setting of the catalogue.

use super::{Subcommand, examples};
use crate::{
    host::HostArgs,
    output::{self, Exit},
};
use anyhow::bail;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use lowlat_catalogue::CATALOGUE;
use lowlat_settings::{Setting, Verdict, audit::Audit};
use lowlat_tune_report::AuditTableOptions;
use serde_json::json;

pub const COMMAND: Subcommand = Subcommand { name: "audit", declare, run };

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag that users type")]
struct AuditArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Also show rows that are good or do not apply
    #[arg(long)]
    all: bool,
    /// Explain one setting in full
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    explain: Option<String>,
    /// List the catalogue instead: id, layer, name, sources
    #[arg(long)]
    list: bool,
    /// Exit with code 1 on these verdicts
    #[arg(
        long,
        value_name = "VERDICTS",
        value_delimiter = ',',
        default_value = "wrong,conflicting,ineffective,shadowed"
    )]
    fail_on: Vec<FailOn>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Wrong,
    Conflicting,
    Ineffective,
    Shadowed,
    Unknown,
    None,
}

impl FailOn {
    fn meets(self, verdict: Verdict) -> bool {
        match self {
            Self::Wrong => verdict == Verdict::Wrong,
            Self::Conflicting => verdict == Verdict::Conflicting,
            Self::Ineffective => verdict == Verdict::Ineffective,
            Self::Shadowed => verdict == Verdict::Shadowed,
            Self::Unknown => verdict == Verdict::Unknown,
            Self::None => false,
        }
    }
}

fn declare(command: Command) -> Command {
    AuditArgs::augment_args(command)
        .about("Judge every setting of this host and list faults first, by impact")
        .after_help(format!(
            "Exit codes: 0 no verdict of --fail-on, 1 at least one, 2 error, 4 none, but less than half \
             of the settings could be checked (0 with --fail-on none).\n\n{}",
            examples(&[
                ("lowlat audit", "Show what keeps this host from being quiet."),
                ("lowlat audit --explain boot.nohz_full", "Explain one setting in full."),
                (
                    "lowlat audit --root desk7.tar.gz --profile guide-57037",
                    "Judge a captured host by the AMD/HPE guide.",
                ),
                (
                    "lowlat audit --fail-on wrong,unknown --json",
                    "Fail a CI job when a setting is wrong or cannot be checked.",
                ),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = AuditArgs::from_arg_matches(matches)?;
    if arguments.list {
        return list(&arguments);
    }
    if let Some(id) = &arguments.explain {
        return explain(&arguments, id);
    }
    let host = arguments.host.read_silently()?;
    let audit = Audit::of(&host.context());
    let options = AuditTableOptions { show_all: arguments.all, width: output::width() };
    if arguments.json {
        host.print_json(&output::Document::of("lowlat-audit", &audit))?;
    } else {
        host.print(&lowlat_tune_report::audit_table(&audit, options))?;
    }
    let fails = |verdict: Verdict| arguments.fail_on.iter().any(|fail_on| fail_on.meets(verdict));
    if arguments.fail_on == [FailOn::None] {
        return Ok(Exit::Clean);
    }
    let has_findings = audit.findings.iter().any(|finding| fails(finding.verdict));
    Ok(audit.score.checked().claim(has_findings).into())
}

fn list(arguments: &AuditArgs) -> anyhow::Result<Exit> {
    if arguments.json {
        let row =
            |s: &'static Setting| json!({"id": s.id, "layer": s.layer, "name": s.name, "sources": s.sources});
        let settings: Vec<_> = CATALOGUE.settings().map(row).collect();
        output::print_json(&output::Document::of("lowlat-settings", json!({ "settings": settings })))?;
    } else {
        output::print(&lowlat_tune_report::catalogue_table(CATALOGUE.settings(), output::width()))?;
    }
    Ok(Exit::Clean)
}

fn explain(arguments: &AuditArgs, id: &str) -> anyhow::Result<Exit> {
    let Some(setting) = CATALOGUE.find(id) else {
        match CATALOGUE.nearest(id) {
            Some(near) => bail!(
                "no setting has the id \"{id}\"; did you mean \"{near}\"?\nhint: `lowlat audit --list` shows every id"
            ),
            None => bail!("no setting has the id \"{id}\"\nhint: `lowlat audit --list` shows every id"),
        }
    };
    let host = arguments.host.read_silently()?;
    let finding = lowlat_settings::judge_one(&host.context(), setting);
    if arguments.json {
        host.print_json(&output::Document::of("lowlat-finding", &finding))?;
    } else {
        host.print(&lowlat_tune_report::explain(&finding, output::width()))?;
    }
    Ok(Exit::Clean)
}

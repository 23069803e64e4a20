//! `lowlat audit`: a verdict on every setting of the catalogue.

use super::{Subcommand, completions, help};
use crate::{arguments::word, exit::Exit, host::HostArgs, output};
use anyhow::bail;
use clap::{ArgMatches, Args, FromArgMatches};
use lowlat_catalogue::CATALOGUE;
use lowlat_settings::{Setting, Verdict, audit::Audit};
use lowlat_tune_report::AuditTableOptions;
use serde_json::json;

pub const COMMAND: Subcommand = Subcommand { name: "audit", declare: AuditArgs::augment_args, run };

/// Judge every setting of this host and list faults first, by impact
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 no verdict of --fail-on, 1 at least one, 2 error, 4 none, but less than half \
    of the settings could be checked (0 with --fail-on none).", &[
    ("lowlat audit", "Show what keeps this host from being quiet."),
    ("lowlat audit --explain boot.nohz_full", "Explain one setting in full."),
    ("lowlat audit --root desk7.tar.gz --profile guide-57037", "Judge a captured host by the AMD/HPE guide."),
    ("lowlat audit --fail-on wrong,unknown --json", "Fail a CI job when a setting is wrong or cannot be checked."),
]))]
struct AuditArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Also show rows that are good or do not apply
    #[arg(long)]
    all: bool,
    /// Explain one setting in full
    #[arg(long, value_name = "ID", conflicts_with = "list", add = completions::settings())]
    explain: Option<String>,
    /// List the catalogue instead: id, layer, name, sources
    #[arg(long)]
    list: bool,
    /// Exit with code 1 on these verdicts
    #[arg(
        long,
        value_name = "VERDICTS",
        value_delimiter = ',',
        default_value = "wrong,conflicting,ineffective,shadowed",
        value_parser = word(FAIL_ON)
    )]
    fail_on: Vec<Option<Verdict>>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The words of --fail-on; the last is that of no verdict.
const FAIL_ON: [(&str, Option<Verdict>); 6] = [
    ("wrong", Some(Verdict::Wrong)),
    ("conflicting", Some(Verdict::Conflicting)),
    ("ineffective", Some(Verdict::Ineffective)),
    ("shadowed", Some(Verdict::Shadowed)),
    ("unknown", Some(Verdict::Unknown)),
    ("none", None),
];

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
    host.print_as(arguments.json, &output::Document::of("lowlat-audit", &audit), |width| {
        lowlat_tune_report::audit_table(&audit, AuditTableOptions { show_all: arguments.all, width })
    })?;
    if arguments.fail_on == [None] {
        return Ok(Exit::Clean);
    }
    let has_findings = audit.findings.iter().any(|of| arguments.fail_on.contains(&Some(of.verdict)));
    Ok(audit.score.checked().claim(has_findings).into())
}

fn list(arguments: &AuditArgs) -> anyhow::Result<Exit> {
    let row =
        |s: &'static Setting| json!({"id": s.id, "layer": s.layer, "name": s.name, "sources": s.sources});
    let settings = json!({ "settings": CATALOGUE.settings().map(row).collect::<Vec<_>>() });
    output::print_as(arguments.json, &output::Document::of("lowlat-settings", settings), |width| {
        lowlat_tune_report::catalogue_table(CATALOGUE.settings(), width)
    })?;
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
    host.print_as(arguments.json, &output::Document::of("lowlat-finding", &finding), |width| {
        lowlat_tune_report::explain(&finding, width)
    })?;
    Ok(Exit::Clean)
}

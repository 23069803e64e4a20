//! Parts that only the handbook has, which `cargo xtask handbook` makes: pages of settings, generated from the
//! catalogue and from what it does on captured hosts, links to them, and the schema of result documents.

use crate::{common, truth};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::Plan;
use lowlat_settings::{Context, Layer, Needs, Risk, Setting, Verdict, Want, change::Target, judge_one};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// The host that examples of wanted values come from.
const SERVER: &str = "epyc-7f32-stock";

/// A captured host in one profile, with every risk accepted, so that each setting at fault has its change.
struct Server {
    name: String,
    host: HostSnapshot,
    role: Role,
    allocation: Allocation,
    plan: Plan,
}

impl Server {
    fn new(name: &str, path: &Path, profile: Profile) -> Self {
        let host =
            snapshot::read(&Root::open(path).unwrap_or_else(|error| panic!("{name}: {error}")), CATALOGUE);
        let accepted_risks = CATALOGUE.ids().map(str::to_owned).collect();
        let role = Role { profile, accepted_risks, ..Role::default() };
        let allocation = Allocation::choose(&host, &role);
        let context =
            Context { host: &host, role: &role, allocation: &allocation, profile, catalogue: CATALOGUE };
        let plan = Plan::of(&context, "0.0.0");
        Self { name: name.to_owned(), host, role, allocation, plan }
    }

    fn context(&self) -> Context<'_> {
        let Self { host, role, allocation, .. } = self;
        Context { host, role, allocation, profile: role.profile, catalogue: CATALOGUE }
    }

    /// The first change for the setting, as a plan shows it.
    fn change(&self, id: &str) -> Option<String> {
        let change = self.plan.changes.iter().find(|change| change.settings.iter().any(|it| it == id))?;
        if let Target::CommandLine { tokens } = &change.target {
            let token = tokens.iter().find(|token| token.setting == id)?;
            return Some(match token.value.as_deref() {
                None => format!("removes `{}` from the kernel command line", token.name),
                Some("") => format!("adds `{}` to the kernel command line", token.name),
                Some(value) => format!("adds `{}={value}` to the kernel command line", token.name),
            });
        }
        let kind = change.target.kind();
        if change.after.contains('\n') {
            return Some(format!("writes {}", code(&kind.facts().name)));
        }
        let before = change.before.known().filter(|before| !before.is_empty() && !before.contains('\n'));
        let before = before.map_or_else(String::new, |before| format!(" from {}", code(before)));
        Some(format!("sets {}{before} to {}", code(&kind.facts().name), code(&change.after)))
    }

    /// Reason why the plan does not contain the setting at fault.
    fn left_out(&self, id: &str) -> Option<&str> {
        let left = self.plan.left_out.iter().find(|left| left.setting == id && left.why.is_of_fault())?;
        Some(&left.text)
    }
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn hosts() -> Vec<Server> {
    let truth = ["6.12", "7.3"].map(|kernel| {
        (
            format!("a virtual server with kernel {kernel}"),
            top().join(format!("fixtures/truth/{kernel}.tar.gz")),
        )
    });
    let mut captures = common::fixtures();
    captures.sort_by_key(|(name, _)| name != SERVER);
    captures.extend(truth);
    let in_profile =
        |(name, path): &(String, PathBuf)| Profile::ALL.map(|profile| Server::new(name, path, profile));
    captures.iter().flat_map(in_profile).collect()
}

/// Inline code, which may be part of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// Text in a cell of a table; words with underscores or asterisks must not become markup.
fn cell(text: &str) -> String {
    let escape = |c: char| if "|<>*_".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect::<String>().replace('\n', " ")
}

/// The value that a profile wants, with an example where it depends on the host.
fn wanted(setting: &Setting, profile: Profile, server: &Server) -> String {
    match setting.want(profile) {
        Want::Nothing => "no preference".to_owned(),
        Want::Value("") => "present".to_owned(),
        Want::Value(value) => code(value),
        Want::OneOf(values) => values.iter().map(|value| code(value)).collect::<Vec<_>>().join(" or "),
        Want::State(state) => cell(state),
        Want::Derived(derive) => derive(&server.context()).map_or_else(
            || "derived from the host".to_owned(),
            |value| format!("derived from the host; on the example server {}", code(&value)),
        ),
    }
}

fn needs(needs: &Needs) -> String {
    let mut parts = Vec::new();
    match (needs.since, needs.until) {
        (Some(since), Some(until)) => parts.push(format!("from {since} on, before {until}")),
        (Some(since), None) => parts.push(format!("from {since} on")),
        (None, Some(until)) => parts.push(format!("before {until}")),
        (None, None) => {}
    }
    if !needs.moved_to.is_empty() {
        parts.push(format!("later in {}", code(needs.moved_to)));
    }
    parts.extend(needs.config.iter().map(|option| code(&format!("CONFIG_{option}"))));
    parts.extend(needs.x86.then(|| "x86 only".to_owned()));
    parts.join("; ")
}

/// Change that the row proposes for a host, even if the setting is not at fault there.
fn proposed(setting: &Setting, host: &Server) -> Option<String> {
    let proposal = setting.proposal(&host.context());
    if let Some(token) = proposal.tokens.first() {
        let word = match token.value.as_deref() {
            None => {
                return Some(format!(
                    "removes `{}` from the kernel command line where it is there",
                    token.name
                ));
            }
            Some("") => token.name.clone(),
            Some(value) => format!("{}={value}", token.name),
        };
        return Some(format!("adds {} to the kernel command line where it is missing", code(&word)));
    }
    if let Some(step) = proposal.steps.first() {
        return Some(format!("sets {} to {}", code(&step.target.kind().facts().name), code(&step.after)));
    }
    let (_, why) = proposal.left_out.first()?;
    Some(format!("not by lowlat: {}", cell(why)))
}

/// Way in which lowlat changes the setting: an example of a plan, or the reason why it changes nothing.
fn change(setting: &Setting, hosts: &[Server]) -> String {
    let of_profile = |host: &&Server| !matches!(setting.want(host.role.profile), Want::Nothing);
    let named = |host: &Server| {
        let profile = if host.role.profile == Profile::Trading { "" } else { " for `guide-57037`" };
        let host = if host.name == SERVER { "the example server" } else { host.name.as_str() };
        format!("{host}{profile}")
    };
    let changed = hosts.iter().filter(of_profile).find_map(|host| Some((host, host.change(setting.id)?)));
    if let Some((host, change)) = changed {
        return format!("`lowlat tune plan` {change} (on {})", named(host));
    }
    if setting.layer == Layer::Firmware {
        return "in the firmware setup: [lowlat bios](../commands/bios.md)".to_owned();
    }
    let left_out = hosts.iter().filter(of_profile).find_map(|host| Some((host, host.left_out(setting.id)?)));
    if let Some((host, why)) = left_out {
        return format!("not by lowlat; on {}: {}", named(host), cell(why));
    }
    // Not at fault anywhere: what the row would propose.
    let proposed = hosts.iter().filter(of_profile).find_map(|host| proposed(setting, host));
    proposed.unwrap_or_else(|| {
        "no captured host has it at fault; a plan shows the change, or why there is none".to_owned()
    })
}

/// Answers of Debian's kernels to the setting; `None` if it was not tried.
fn kernels(id: &str) -> Option<String> {
    let answers = truth::answers(id);
    let first = answers.first()?.1;
    if answers.iter().all(|(_, answer)| *answer == first) {
        return Some(format!("{first} on all [tried kernels](../truth.md)"));
    }
    let answers: Vec<_> = answers.iter().map(|(kernel, answer)| format!("{kernel} {answer}")).collect();
    Some(format!("[tried](../truth.md): {}", answers.join(", ")))
}

fn section(setting: &Setting, hosts: &[Server]) -> String {
    let server = |profile| {
        let found = hosts.iter().find(|host| host.name == SERVER && host.role.profile == profile);
        found.expect("the example server")
    };
    let mut out = format!("## `{}`\n\n", setting.id);
    let when = if setting.needs_reboot { "after a reboot" } else { "at once" };
    let _ = writeln!(out, "**{}**. {}\n", cell(setting.name), cell(setting.reason));
    let mut row = |label: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(out, "| {label} | {text} |");
        }
    };
    row("Impact", format!("{:?}, takes effect {when}", setting.impact).to_lowercase());
    row("---", "---".to_owned());
    row("Wanted by `trading`", wanted(setting, Profile::Trading, server(Profile::Trading)));
    row("Wanted by `guide-57037`", wanted(setting, Profile::Guide57037, server(Profile::Guide57037)));
    row("Cost", if setting.cost.is_empty() { "none".to_owned() } else { cell(setting.cost) });
    let must_be_accepted = if setting.risk == Risk::None { "none known" } else { setting.risk.word() };
    row("Risk", must_be_accepted.to_owned());
    row("How it is changed", change(setting, hosts));
    row("In force when", cell(setting.effective));
    row("Hazard", cell(setting.hazard));
    row(
        "Kernels",
        [needs(&setting.needs), kernels(setting.id).unwrap_or_default()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
    );
    row("Example", example(setting, server(Profile::Trading)));
    row("Sources", setting.sources.iter().map(|source| cell(source)).collect::<Vec<_>>().join("; "));
    out.push('\n');
    out
}

/// Verdict on the example server; empty if the setting does not apply to it.
fn example(setting: &Setting, server: &Server) -> String {
    let finding = judge_one(&server.context(), setting);
    let seen =
        if finding.observed.is_empty() { String::new() } else { format!(": {}", cell(&finding.observed)) };
    match finding.verdict {
        Verdict::NotApplicable => String::new(),
        verdict => format!("{}{seen}", verdict.word()),
    }
}

/// Title and first sentences of a layer's page.
fn preface(layer: Layer) -> (&'static str, &'static str) {
    match layer {
        Layer::Firmware => (
            "Firmware",
            "Settings of the BIOS or UEFI setup. lowlat judges them by what the operating system sees, or by the answers of a management controller, and [changes them over Redfish](../tasks/bios.md).",
        ),
        Layer::Kernel => (
            "Kernel configuration",
            "Options that the kernel was built with. They change with another kernel only.",
        ),
        Layer::Boot => (
            "Kernel command line",
            "Parameters that the kernel reads at boot. `lowlat tune apply` changes them through the host's own boot loader.",
        ),
        Layer::Sysctl => (
            "Sysctls",
            "Values below `/proc/sys`. A plan sets them at once and keeps them in one file of `/etc/sysctl.d`.",
        ),
        Layer::Debugfs => (
            "Scheduler and debug settings",
            "Values below `/sys/kernel/debug`, which lockdown hides. `lowlat.service` sets them again at each boot.",
        ),
        Layer::Sysfs => {
            ("Devices and CPU controls", "Values below `/sys`, and facts about processors and devices.")
        }
        Layer::Memory => ("Memory", "Huge pages, memory modules, swap."),
        Layer::Irq => ("Interrupts", "Which CPUs handle the interrupts of devices."),
        Layer::Kthread => {
            ("Kernel threads and workqueues", "Which CPUs kernel threads and workqueues may use.")
        }
        Layer::Nic => (
            "Network interfaces",
            "Queues, rings, coalescing and links. [Prepare a NIC for trading](../tasks/network.md) uses them.",
        ),
        Layer::Service => ("Services", "Services that interrupt, and services that must run."),
        Layer::Readiness => ("Readiness", "The state of the host at the moment, to check before measuring."),
    }
}

fn of(layer: Layer) -> Vec<&'static Setting> {
    let mut settings: Vec<_> = CATALOGUE.settings().filter(|setting| setting.layer == layer).collect();
    settings.sort_by_key(|setting| setting.id);
    settings
}

fn page(layer: Layer, hosts: &[Server]) -> String {
    let (title, preface) = preface(layer);
    let settings = of(layer);
    let mut page = format!(
        "# {title}\n\n{preface} This page is generated from the catalogue, {} settings. On your host, \
         `lowlat audit --explain ID` shows one of them with what was found.\n\n",
        settings.len()
    );
    for setting in settings {
        page += &section(setting, hosts);
    }
    format!("{}\n", page.trim_end())
}

fn index() -> String {
    let mut page = format!(
        "# Settings\n\nlowlat knows {} settings. Each has a reason, a cost, a class of risk, its sources, the value that each \
         profile wants, and a check that it is in force and not merely written. These pages are generated from the catalogue.\n\n\
         The *example server* is the captured server of the [guide's chapters](../guide-57037.md) as delivered: 2 x EPYC 7F32, \
         Debian 12. *How it is changed* is taken from a plan for a captured host, with all risks accepted; without that, a plan \
         leaves out settings that cost protection until you name each.\n\n\
         | layer | settings | what is there |\n|---|---|---|\n",
        CATALOGUE.settings().count()
    );
    for layer in Layer::ALL {
        let (title, preface) = preface(layer);
        let first = preface.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let _ = writeln!(page, "| [{title}]({}.md) | {} | {first} |", layer.word(), of(layer).len());
    }
    page += "\n## All settings\n";
    for layer in Layer::ALL {
        let _ = write!(
            page,
            "\n### {}\n\n| setting | name | impact | risk |\n|---|---|---|---|\n",
            preface(layer).0
        );
        for setting in of(layer) {
            let impact = format!("{:?}", setting.impact).to_lowercase();
            let _ = writeln!(
                page,
                "| [{}]({}.md#{}) | {} | {impact} | {} |",
                code(setting.id),
                layer.word(),
                anchor(setting),
                cell(setting.name),
                setting.risk.word()
            );
        }
    }
    page
}

/// The anchor of a setting's heading.
fn anchor(setting: &Setting) -> String {
    let kept = setting.id.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c));
    kept.collect::<String>().to_lowercase()
}

/// A page of the handbook, whose quoted ids of settings lead to their pages. `up` leads to the top of the handbook.
fn linked(text: &str, up: &str) -> String {
    let (mut page, mut is_block) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        is_block ^= line.starts_with("```");
        if is_block || line.starts_with(['#', '`']) {
            page += line;
            continue;
        }
        let parts: Vec<&str> = line.split('`').collect();
        for (at, part) in parts.iter().enumerate() {
            let is_code = at % 2 == 1 && at + 1 < parts.len();
            let _ = match CATALOGUE.find(part).filter(|_| is_code && !page.ends_with('[')) {
                Some(of) => write!(page, "[`{part}`]({up}settings/{}.md#{})", of.layer.word(), anchor(of)),
                None if is_code => write!(page, "`{part}`"),
                None if at % 2 == 1 => write!(page, "`{part}"),
                None => write!(page, "{part}"),
            };
        }
    }
    page
}

/// The files that only the handbook has.
fn made() -> Vec<(String, String)> {
    let hosts = hosts();
    let mut made = vec![
        ("settings/README.md".to_owned(), index()),
        (
            "result.schema.json".to_owned(),
            serde_json::to_string_pretty(&lowlat_results::schema::schema()).expect("JSON"),
        ),
    ];
    made.extend(Layer::ALL.map(|layer| (format!("settings/{}.md", layer.word()), page(layer, &hosts))));
    made
}

/// Writes them if `HANDBOOK` names the folder of the handbook's sources.
#[test]
fn the_handbook_has_each_setting_and_links_to_it() {
    let made = made();
    for setting in CATALOGUE.settings() {
        let name = format!("settings/{}.md", setting.layer.word());
        let (_, text) = made.iter().find(|(made, _)| *made == name).expect("its page");
        assert!(text.contains(&format!("\n## `{}`\n", setting.id)), "{}", setting.id);
    }
    let is_there = |link: &str| match link.strip_prefix("../") {
        Some(page) => top().join("docs").join(page.split('#').next().unwrap_or_default()).is_file(),
        None => made
            .iter()
            .any(|(name, _)| name == &format!("settings/{}", link.split('#').next().unwrap_or_default())),
    };
    for (name, text) in made.iter().filter(|(name, _)| name.starts_with("settings/")) {
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            assert!(is_there(link), "{name}: {link}");
        }
    }
    let text = "See `boot.nohz_full`, [`irq.affinity`](x.md) and `other`.\n```text\n`boot.nohz_full`\n```\n";
    let expected =
        text.replacen("`boot.nohz_full`", "[`boot.nohz_full`](../settings/boot.md#bootnohz_full)", 1);
    assert_eq!(linked(text, "../"), expected);
    let Some(handbook) = std::env::var_os("HANDBOOK").map(PathBuf::from) else { return };
    std::fs::create_dir_all(handbook.join("settings")).expect("a folder");
    for (name, text) in made {
        std::fs::write(handbook.join(name), text).expect("a file");
    }
    for (folder, up) in
        [("", ""), ("tasks", "../"), ("commands", "../"), ("decisions", "../"), ("tutorial", "../")]
    {
        for entry in std::fs::read_dir(handbook.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let text = std::fs::read_to_string(&path).expect("a page");
                std::fs::write(&path, linked(&text, up)).expect("a page");
            }
        }
    }
}

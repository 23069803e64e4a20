//! Audit of BIOS settings as text.

use anstyle::Style;
use lowlat_bios::{BiosAudit, BiosFinding, BiosVerdict, shown};
use lowlat_text::text::{
    BLUE, BOLD, DIM, GREEN, RED, YELLOW, add_numbered, add_painted, add_wrapped, paint, usable, wrap,
};
use lowlat_text::units::{clean, count, plural};

/// Width of the verdict column: the longest word and two spaces.
const VERDICT_WIDTH: usize = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BiosTextOptions {
    /// True to show also rows that are as wanted or that the profile leaves open.
    pub show_all: bool,
    pub width: usize,
}

/// Formats every difference, worst first, with its reason; then the order of changes and a line of counts.
pub fn bios_text(audit: &BiosAudit, options: BiosTextOptions) -> String {
    let width = usable(options.width);
    let title = clean(&title(audit));
    let mut out: String = wrap(&title, width).iter().map(|line| format!("{}\n", paint(BOLD, line))).collect();
    let is_shown = |finding: &&BiosFinding| options.show_all || !finding.verdict.is_quiet();
    let mut shown_rows = 0;
    for verdict in BiosVerdict::WORST_FIRST {
        for finding in audit.findings.iter().filter(|f| f.verdict == verdict).filter(is_shown) {
            if shown_rows == 0 {
                out.push('\n');
            }
            shown_rows += 1;
            add_finding(&mut out, finding, width);
        }
    }
    if !audit.order.is_empty() {
        out.push_str(&format!("\n{}\n", paint(BOLD, "Order")));
        add_numbered(&mut out, &audit.order, width);
    }
    out.push('\n');
    add_wrapped(&mut out, &counts(audit), 0, width);
    for warning in &audit.warnings {
        add_wrapped(&mut out, &clean(&format!("! {warning}")), 0, width);
    }
    let hidden = audit.findings.len() - shown_rows;
    if hidden > 0 {
        let text = format!(
            "{} as wanted or left open {} hidden; --all shows them.",
            plural(hidden, "row"),
            if hidden == 1 { "is" } else { "are" }
        );
        add_painted(&mut out, DIM, &text, 0, width);
    }
    out
}

/// Returns "BIOS settings of HPE ProLiant DL385 Gen10 Plus, A42 v1.24, compared with guide-57037".
fn title(audit: &BiosAudit) -> String {
    let server = &audit.server;
    let mut title = match (server.name(), audit.vendor) {
        (None, None) => "BIOS settings".to_owned(),
        // Attribute names identify a vendor's naming scheme, not the server's vendor.
        (None, Some(vendor)) => format!("BIOS settings with names of {}", vendor.word()),
        (Some(name), _) => format!("BIOS settings of {name}"),
    };
    for part in [&server.bios_version, &audit.registry].into_iter().flatten() {
        title.push_str(", ");
        title.push_str(part);
    }
    format!("{title}, compared with profile {}", audit.profile)
}

fn add_finding(out: &mut String, finding: &BiosFinding, width: usize) {
    let word = format!("{:VERDICT_WIDTH$}", finding.verdict.word());
    out.push_str(&format!("  {}{}\n", paint(style(finding.verdict), &word), clean(&finding.id)));
    let mut lines = vec![values(finding), finding.because.clone()];
    if let (Some(risk), true) = (&finding.risk, finding.verdict.is_difference()) {
        lines.push(format!("Risk: {risk}. {}", finding.cost));
    }
    if (finding.verdict.is_difference() || finding.verdict == BiosVerdict::NotOffered)
        && !finding.hazard.is_empty()
    {
        lines.push(format!("Hazard: {}", finding.hazard));
    }
    for line in lines.iter().filter(|line| !line.is_empty()) {
        add_wrapped(out, &clean(line), VERDICT_WIDTH + 2, width);
    }
}

/// Returns "ProcSMT = Enabled, after the restart Disabled; wanted Disabled".
fn values(finding: &BiosFinding) -> String {
    let here = if finding.wanted_here.is_empty() { &finding.wanted } else { &finding.wanted_here };
    let wanted = here.join(" or ");
    let (Some(attribute), Some(active)) = (&finding.attribute, &finding.active) else {
        return if wanted.is_empty() { String::new() } else { format!("wanted {wanted}") };
    };
    let mut text = format!("{attribute} = {}", shown(active));
    if let Some(pending) = &finding.pending {
        text.push_str(&format!(", after the restart {}", shown(pending)));
    }
    if finding.verdict != BiosVerdict::Good && !wanted.is_empty() {
        text.push_str(&format!("; wanted {wanted}"));
    }
    text
}

fn counts(audit: &BiosAudit) -> String {
    let not_here = match audit.not_here.len() {
        0 => return checked(audit),
        1 => "1 row is left out, because only other makers or processors are known to have it.".to_owned(),
        rows => {
            format!(
                "{rows} rows are left out, because only other makers or processors are known to have them."
            )
        }
    };
    format!("{} {not_here}", checked(audit))
}

fn checked(audit: &BiosAudit) -> String {
    let counts = audit.counts;
    let judged = plural(counts.judged, "row");
    if let Some(why) = counts.checked().not_judged(counts.differences > 0, "rows") {
        return why;
    }
    let first = if counts.differences == 0 {
        format!("{judged} checked, all match profile {}.", audit.profile)
    } else {
        let verb = if counts.differences == 1 { "differs" } else { "differ" };
        format!("{} of {judged} {verb} from profile {}.", count(counts.differences as u64), audit.profile)
    };
    if counts.unknown == 0 {
        return first;
    }
    format!("{first} {} could not be checked on this server.", plural(counts.unknown, "row"))
}

fn style(verdict: BiosVerdict) -> Style {
    match verdict {
        BiosVerdict::Differs | BiosVerdict::Lost => RED,
        BiosVerdict::Overridden => YELLOW.bold(),
        BiosVerdict::Pending => BLUE,
        BiosVerdict::NotOffered | BiosVerdict::UnknownHere | BiosVerdict::NotJudged => YELLOW,
        BiosVerdict::Good | BiosVerdict::NoEffect => GREEN,
        BiosVerdict::NoOpinion => DIM,
    }
}

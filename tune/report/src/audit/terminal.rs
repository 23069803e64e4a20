//! Audit and catalogue as terminal tables.

use crate::audit::grouping::{Tally, layer_title, listed};
use crate::audit::verdict_style;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use lowlat_settings::{Finding, Setting, Verdict, audit::Audit};
use lowlat_text::text::{BOLD, DIM, add_painted, add_wrapped, paint, usable};
use lowlat_text::units::{clean, plural};
use std::borrow::Cow;

/// Width from which a finding is one row of six columns; below it takes two lines.
const WIDE: usize = 120;
/// Width of the verdict column: the longest word and a space.
const VERDICT_WIDTH: usize = 15;
/// Width of the impact column: the longest word and two spaces.
const IMPACT_WIDTH: usize = 8;

/// Options of an audit table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditTableOptions {
    /// True to show good and inapplicable rows too.
    pub show_all: bool,
    pub width: usize,
}

/// Formats the verdicts, worst first: faults by impact, then unknown rows, between two lines of counts. Unknown rows with
/// the same reason are one row.
pub fn audit_table(audit: &Audit, options: AuditTableOptions) -> String {
    let width = usable(options.width);
    let is_shown = |finding: &&Finding| {
        options.show_all || finding.verdict.is_fault() || finding.verdict == Verdict::Unknown
    };
    let mut shown: Vec<&Finding> = audit.findings.iter().filter(is_shown).collect();
    shown.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let mut out = String::new();
    for warning in &audit.warnings {
        add_wrapped(&mut out, warning, 0, width);
    }
    if !shown.is_empty() {
        add_wrapped(&mut out, &count_line(audit), 0, width);
        out.push('\n');
    }
    for group in shown.chunk_by(|a, b| title(a) == title(b)) {
        let heading = group.first().map_or("", |finding| title(finding));
        out.push_str(&format!("{}\n", paint(BOLD, heading)));
        let rows =
            if options.show_all { group.iter().copied().map(Cow::Borrowed).collect() } else { folded(group) };
        let rows: Vec<&Finding> = rows.iter().map(AsRef::as_ref).collect();
        out.push_str(&if width >= WIDE { wide(&rows, width) } else { narrow(&rows, width) });
        out.push('\n');
    }
    add_wrapped(&mut out, &count_line(audit), 0, width);
    let hidden = audit.findings.len() - shown.len();
    if hidden > 0 {
        let text = format!("{hidden} good or inapplicable rows are hidden; --all shows them.");
        add_painted(&mut out, DIM, &text, 0, width);
    }
    out
}

/// Returns the rows with unknown ones of the same reason as one, at the place of the first.
fn folded<'a>(group: &[&'a Finding]) -> Vec<Cow<'a, Finding>> {
    let is_like = |a: &Finding, b: &Finding| {
        a.verdict == Verdict::Unknown && (&a.observed, &a.because) == (&b.observed, &b.because)
    };
    let mut rows: Vec<Cow<'_, Finding>> = Vec::new();
    for finding in group {
        let like = group.iter().filter(|other| is_like(finding, other));
        let ids: Vec<&str> = like.map(|other| other.id.as_str()).collect();
        if ids.len() < 2 {
            rows.push(Cow::Borrowed(finding));
        } else if ids[0] == finding.id {
            let because = format!("{} {}", finding.observed, finding.because).trim().to_owned();
            let (id, observed) = (plural(ids.len(), "setting"), ids.join(", "));
            rows.push(Cow::Owned(Finding {
                id,
                observed,
                wanted: String::new(),
                because,
                ..(*finding).clone()
            }));
        }
    }
    rows
}

/// Returns the heading above a finding.
fn title(finding: &Finding) -> &'static str {
    match finding.verdict {
        verdict if verdict.is_fault() => "To change, highest impact first",
        Verdict::Unknown => "Could not be checked",
        Verdict::Good => "Good",
        _ => "Not applicable",
    }
}

/// Returns "Score 61 of 100. 9 of 24 settings differ from …. Rows: 5 wrong, 3 unknown."
fn count_line(audit: &Audit) -> String {
    let score = audit.score.percent.map_or_else(|| "No score.".to_owned(), |p| format!("Score {p} of 100."));
    let counts = listed(Verdict::WORST_FIRST.map(|verdict| (audit.score.count(verdict), verdict.word())));
    let counts = if counts.is_empty() { counts } else { format!(" Rows: {counts}.") };
    format!("{score} {}{counts}", Tally::of(audit).sentence(audit))
}

/// Formats six columns. The verdict is coloured after the layout, because escape sequences have no width.
fn wide(group: &[&Finding], width: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.set_header(["verdict", "impact", "id", "observed", "wanted", "why"]);
    for finding in group {
        let (verdict, impact) = (finding.verdict.word(), finding.impact.word());
        let cells = [verdict, impact, &finding.id, &finding.observed, &finding.wanted, &finding.because];
        table.add_row(cells.map(clean));
    }
    let longest_id = group.iter().map(|finding| finding.id.chars().count()).max().unwrap_or(0);
    let fixed = [VERDICT_WIDTH + 1, IMPACT_WIDTH, (longest_id + 2).min(width / 3)];
    for (column, cells) in table.column_iter_mut().zip(fixed) {
        let cells = u16::try_from(cells).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(cells)));
    }
    let mut out = String::new();
    for (at, line) in table.lines().enumerate() {
        let line = format!(" {}", line.trim_end());
        out.push_str(&if at == 0 { paint(DIM, &line) } else { coloured(&line, group) });
        out.push('\n');
    }
    out
}

/// Colours the verdict in a line of the table. Lines that continue a row start with spaces and stay plain.
fn coloured(line: &str, group: &[&Finding]) -> String {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let is_first = indent.len() <= 2;
    let verdict = group.iter().map(|finding| finding.verdict).find(|v| text.starts_with(v.word()));
    match verdict {
        Some(verdict) if is_first => {
            let (word, rest) = text.split_at(verdict.word().len());
            format!("{indent}{}{rest}", paint(verdict_style(verdict), word))
        }
        _ => line.to_owned(),
    }
}

/// Formats verdict, impact and id on one line, with the observed value, the wanted value and the reason below.
fn narrow(group: &[&Finding], width: usize) -> String {
    let mut out = String::new();
    for finding in group {
        let word =
            paint(verdict_style(finding.verdict), &format!("{:VERDICT_WIDTH$}", finding.verdict.word()));
        let impact = paint(DIM, &format!("{:IMPACT_WIDTH$}", finding.impact.word()));
        let id = clean(&finding.id);
        let is_beside = 2 + VERDICT_WIDTH + IMPACT_WIDTH + id.chars().count() <= width;
        if is_beside {
            out.push_str(&format!("  {word}{impact}{id}\n"));
        } else {
            out.push_str(&format!("  {word}{}\n", paint(DIM, finding.impact.word())));
            add_wrapped(&mut out, &id, 2, width);
        }
        let values = match (finding.observed.as_str(), finding.wanted.as_str()) {
            ("", "") => String::new(),
            ("", wanted) => format!("wanted {wanted}"),
            (observed, "") => observed.to_owned(),
            (observed, _) if finding.verdict == Verdict::Good => observed.to_owned(),
            (observed, wanted) => format!("{observed}; wanted {wanted}"),
        };
        for text in [&values, &finding.because] {
            if !text.is_empty() {
                add_wrapped(&mut out, &clean(text), VERDICT_WIDTH + 2, width);
            }
        }
    }
    out
}

/// Formats every setting of the catalogue: id, layer, name and sources.
pub fn catalogue_table<'a>(settings: impl Iterator<Item = &'a Setting>, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let mut all: Vec<&Setting> = settings.collect();
    all.sort_by_key(|setting| (setting.layer, setting.id));
    let mut layer = None;
    for setting in &all {
        if layer != Some(setting.layer) {
            layer = Some(setting.layer);
            lowlat_text::text::add_heading(&mut out, layer_title(setting.layer.word()));
        }
        if setting.id.len() + setting.name.chars().count() + 4 <= width {
            out.push_str(&format!("  {}  {}\n", setting.id, paint(DIM, setting.name)));
        } else {
            out.push_str(&format!("  {}\n", setting.id));
            add_painted(&mut out, DIM, setting.name, 6, width);
        }
        add_wrapped(&mut out, &setting.sources.join("; "), 6, width);
    }
    out.push_str(&format!("\n{}\n", plural(all.len(), "setting")));
    out
}

//! Many servers' audits, and the differences between two servers, as text.

use super::change::add_rows;
use lowlat_bios::{BiosAudit, BiosCounts, BiosDiff, BiosDifference, BiosFleet, FleetServer, Server, shown};
use lowlat_text::columns::{Column, Table, table};
use lowlat_text::text::{BOLD, add_wrapped, column_lines, cut, paint, usable};
use lowlat_text::units::{clean, plural};

/// Highest number of characters shown of a name and of a value.
const NAME_CHARS_MAX: usize = 40;
const VALUE_CHARS_MAX: usize = 24;
/// Width of the table of servers without addresses and names: the figures, the space between columns, the indent.
const FIGURES_WIDTH: usize = 32;

/// Formats a row for each server, then the settings that differ on most, then the servers that could not be read.
pub fn bios_fleet_text(fleet: &BiosFleet, width: usize) -> String {
    let width = usable(width);
    let title = format!(
        "BIOS settings of {}, compared with profile {}",
        plural(fleet.servers.len(), "server"),
        fleet.profile
    );
    let mut out = format!("{}\n\n", paint(BOLD, &title));
    out.push_str(&table(servers(fleet, width.saturating_sub(FIGURES_WIDTH)), width));
    out.push('\n');
    add_wrapped(&mut out, &found(fleet), 0, width);
    if !fleet.differences.is_empty() {
        out.push_str(&format!("\n{}\n", paint(BOLD, "Settings that differ, and on how many servers")));
        let rows: Vec<Vec<String>> =
            fleet.differences.iter().map(|(id, count)| vec![count.to_string(), id.clone()]).collect();
        out.extend(column_lines(&rows, &[0], 2).into_iter().map(|line| line + "\n"));
    }
    for server in &fleet.servers {
        if let Some(error) = &server.error {
            out.push('\n');
            let text = format!("{}: {error}", server.address);
            text.lines().for_each(|line| add_wrapped(&mut out, &clean(line), 0, width));
        }
    }
    out
}

/// The columns of the servers; addresses and names share `room` characters.
pub(super) fn servers(fleet: &BiosFleet, room: usize) -> Vec<Column> {
    let longest = fleet.servers.iter().map(|server| clean(&server.address).chars().count()).max();
    let address_chars = longest.unwrap_or(0).min(room / 3 * 2);
    let name_chars = room.saturating_sub(address_chars);
    let figure = |count: fn(&BiosCounts) -> usize| {
        move |server: &FleetServer| Some(count(&server.audit.as_ref()?.counts).to_string())
    };
    Table::of(&fleet.servers)
        .words("address", 0, |server| cut(&clean(&server.address), address_chars))
        .words("server", 2, |server| match &server.audit {
            None => "not read".to_owned(),
            Some(audit) => cut(&fitting(&audit.server, name_chars), name_chars),
        })
        .figures("checked", 1, figure(|counts| counts.judged))
        .figures("differ", 0, figure(|counts| counts.differences))
        .figures("unknown", 3, figure(|counts| counts.unknown))
        .into_columns()
}

/// What was found: "3 servers: 1 with differences, 0 not judged, 1 not read."
pub(super) fn found(fleet: &BiosFleet) -> String {
    let audits = || fleet.servers.iter().filter_map(|server| server.audit.as_ref());
    let differing = audits().filter(|audit| audit.counts.differences > 0).count();
    let is_unsure = |audit: &&BiosAudit| {
        let counts = audit.counts;
        counts.checked().not_judged(counts.differences > 0, "rows").is_some()
    };
    let (unsure, unread) = (audits().filter(is_unsure).count(), fleet.servers.len() - audits().count());
    let all = plural(fleet.servers.len(), "server");
    format!("{all}: {differing} with differences, {unsure} not judged, {unread} not read.")
}

/// The name of a server, or its model alone where that fits and the name does not.
fn fitting(server: &Server, chars_max: usize) -> String {
    let name = short(server);
    let model = server.model.as_deref().map(clean).filter(|_| name.chars().count() > chars_max);
    model.unwrap_or(name)
}

/// The name of a server, on one line.
pub(super) fn short(server: &Server) -> String {
    clean(&name(server))
}

fn name(server: &Server) -> String {
    server.name().unwrap_or_else(|| "unknown server".to_owned())
}

/// Formats each difference with both values.
pub fn bios_diff_text(diff: &BiosDiff, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let [left, right] = diff.servers.each_ref().map(name);
    let title = clean(&format!("BIOS settings of {left} and {right}"));
    out.push_str(&format!("{}\n", paint(BOLD, &title)));
    if !diff.differences.is_empty() {
        let rows: Vec<Vec<String>> = diff.differences.iter().map(diff_row).collect();
        out.push('\n');
        add_rows(&mut out, &rows, width);
    }
    out.push('\n');
    let count = diff.differences.len();
    let compared = plural(diff.compared, "setting");
    let verb = if count == 1 { "differs" } else { "differ" };
    let said = match count {
        0 if diff.compared == 0 => "Could not compare: the servers have no setting in common.".to_owned(),
        0 => format!("{compared} compared, all are equal."),
        _ => format!("{count} of {compared} {verb}."),
    };
    let only = match diff.only {
        [0, 0] => String::new(),
        [left, right] => format!(" Only the first server has {left} more, and only the second {right}."),
    };
    add_wrapped(&mut out, &format!("{said}{only}"), 0, width);
    out
}

fn diff_row(difference: &BiosDifference) -> Vec<String> {
    let value = |value: Option<String>| {
        value.map_or_else(|| "missing".to_owned(), |value| cut(&clean(&value), VALUE_CHARS_MAX))
    };
    let [left, right] =
        difference.values.each_ref().map(|side| value(side.as_ref().map(|(_, value)| shown(value))));
    let mut names: Vec<&str> = difference.values.iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let name = difference.id.map_or_else(|| names.join(", "), str::to_owned);
    vec![cut(&clean(&name), NAME_CHARS_MAX), left, format!("| {right}")]
}

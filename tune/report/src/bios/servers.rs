//! Many servers' audits, and the differences between two servers, as text.

use super::change::add_rows;
use lowlat_bios::{BiosDiff, BiosDifference, BiosFleet, FleetServer, Server, shown};
use lowlat_text::text::{BOLD, add_wrapped, column_lines, cut, paint, usable, with_dim_head};
use lowlat_text::units::{clean, plural};

/// Highest number of characters shown of a name and of a value.
const NAME_CHARS_MAX: usize = 40;
const VALUE_CHARS_MAX: usize = 24;

/// Formats a row for each server, then the settings that differ on most, then the servers that could not be read.
pub fn bios_fleet_text(fleet: &BiosFleet, width: usize) -> String {
    let width = usable(width);
    let title = format!(
        "BIOS settings of {}, compared with profile {}",
        plural(fleet.servers.len(), "server"),
        fleet.profile
    );
    let mut out = format!("{}\n\n", paint(BOLD, &title));
    let head = ["address", "server", "checked", "differ", "unknown"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(fleet.servers.iter().map(server_row)).collect();
    out.push_str(&with_dim_head(column_lines(&rows, &[2, 3, 4], 2)));
    if !fleet.differences.is_empty() {
        out.push_str(&format!("\n{}\n", paint(BOLD, "Settings that differ, and on how many servers")));
        let rows: Vec<Vec<String>> =
            fleet.differences.iter().map(|(id, count)| vec![count.to_string(), id.clone()]).collect();
        out.extend(column_lines(&rows, &[0], 2).into_iter().map(|line| line + "\n"));
    }
    for server in &fleet.servers {
        if let Some(error) = &server.error {
            out.push('\n');
            add_wrapped(&mut out, &clean(&format!("{}: {error}", server.address)), 0, width);
        }
    }
    out
}

fn server_row(server: &FleetServer) -> Vec<String> {
    let address = cut(&clean(&server.address), NAME_CHARS_MAX);
    let Some(audit) = &server.audit else { return vec![address, "not read".to_owned()] };
    let counts = audit.counts;
    let figures = [counts.judged, counts.differences, counts.unknown].map(|figure| figure.to_string());
    [address, cut(&clean(&name(&audit.server)), NAME_CHARS_MAX)].into_iter().chain(figures).collect()
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

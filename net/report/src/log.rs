//! Output of sfnt-pingpong, with its doubts.

use lowlat_net::{
    pingpong::Figures,
    sfnt::{SfntLog, SfntRow, doubts, reference::MISTAKES},
};
use lowlat_text::columns::Table;
use lowlat_text::text::{BOLD, DIM, YELLOW, add_heading, add_painted, add_wrapped, paint, usable};
use lowlat_text::units::{clean, count, duration, plural};

/// Formats the runs of a file: what was measured, the table with units, the doubts.
pub fn sfnt_log_text(logs: &[SfntLog], width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    for log in logs {
        if !out.is_empty() {
            out.push('\n');
        }
        add_log(&mut out, log, width);
    }
    out
}

/// Formats the published tables, marked doubtful, with the mistakes of the text around them.
pub fn sfnt_reference_text(logs: &[SfntLog], width: usize) -> String {
    let mut out = sfnt_log_text(logs, width);
    add_heading(&mut out, "Mistakes in the text that these tables were published with");
    for mistake in MISTAKES {
        add_wrapped(&mut out, mistake, 2, usable(width));
    }
    out
}

fn add_log(out: &mut String, log: &SfntLog, width: usize) {
    add_painted(out, BOLD, &clean(&headline(log)), 0, width);
    for key in ["cmdline", "cpu", "uname", "date"] {
        if let Some(value) = log.value(key) {
            let value = value
                .strip_prefix("model name")
                .map_or(value, |model| model.trim_start_matches(['\t', ' ', ':']));
            add_painted(out, DIM, &clean(value), 2, width);
        }
    }
    let percentile =
        log.percentile().map_or_else(|| "%ile".to_owned(), |percentile| format!("p{percentile}"));
    out.push_str(&table(&log.rows, &percentile, width));
    let doubts = doubts(log);
    if !doubts.is_empty() {
        out.push_str(&format!("{}\n", paint(YELLOW, "Caveats")));
        for doubt in doubts {
            add_wrapped(out, &clean(&doubt), 2, width);
        }
    }
}

/// Sentence such as "tcp over 127.0.0.1, 17 sizes: half round trip of 32 bytes 6.83 us at the median, 7.88 us at p99".
fn headline(log: &SfntLog) -> String {
    let line = log.command_line().unwrap_or_default();
    let transport = line.transport.as_deref().unwrap_or("sfnt-pingpong");
    let host = line.host.as_deref().map(|host| format!(" over {host}")).unwrap_or_default();
    let sizes = plural(log.rows.len(), "size");
    // 32 bytes is the size that people quote.
    let Some(row) = log.rows.iter().find(|row| row.size_bytes == 32).or(log.rows.first()) else {
        return format!("{transport}{host}: nothing was measured");
    };
    let what = if log.is_round_trip() { "round trip" } else { "half round trip" };
    let percentile = log.percentile().map_or(String::new(), |percentile| {
        format!(", {} at p{percentile}", duration(row.figures.percentile_ns))
    });
    format!(
        "{transport}{host}, {sizes}: {what} of {} bytes {} at the median{percentile}",
        row.size_bytes,
        duration(row.figures.median_ns)
    )
}

/// The columns of sfnt-pingpong, with units.
fn table(rows: &[SfntRow], percentile: &str, width: usize) -> String {
    let figure = |of: fn(&Figures) -> u64| move |row: &SfntRow| duration(of(&row.figures));
    Table::of(rows)
        .figures("bytes", 0, |row| count(u64::from(row.size_bytes)))
        .figures("mean", 1, figure(|one| one.mean_ns))
        .figures("min", 2, figure(|one| one.min_ns))
        .figures("median", 0, figure(|one| one.median_ns))
        .figures(percentile, 0, figure(|one| one.percentile_ns))
        .figures("max", 0, figure(|one| one.max_ns))
        .figures("stddev", 3, figure(|one| one.stddev_ns))
        .figures("iterations", 4, |row| count(row.figures.iterations))
        .text(width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_net::sfnt::reference;

    #[test]
    fn the_published_tables_show_their_figures_and_doubts() {
        let logs = reference::published().unwrap();
        let text = anstream::adapter::strip_str(&sfnt_reference_text(&logs, 80)).to_string();
        // Column widths follow the widest cell.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "tcp over 127.0.0.1, 17 sizes: half round trip of 32 bytes 6.83 us at the",
            "bytes mean min median p99 max stddev iterations",
            "32 6.89 us 6.12 us 6.83 us 7.88 us 15.8 us 384 ns 723,000",
            "Caveats",
            "The longest is 15.773 us.",
        ] {
            assert!(words.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

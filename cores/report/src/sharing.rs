//! Cost of false sharing as text.

use lowlat_cache::sharing::{Layout, SharingFigures, SharingRecord};
use lowlat_text::columns::Table;
use lowlat_text::text::{add_detail, add_result, add_wrapped, usable};
use lowlat_text::units::{clean, duration_fine};

pub fn sharing_text(record: &SharingRecord, width: usize) -> String {
    let width = usable(width);
    let figures = record.figures();
    let mut out = String::new();
    add_result(&mut out, &headline(&figures), width);
    let cpus: Vec<String> = record.cpus.iter().map(ToString::to_string).collect();
    let set_up = format!(
        "{} threads on CPUs {} add as fast as they can: medians of {} interleaved rounds. Factor: against values 128 bytes apart. Speed-up: against one value.",
        cpus.len(),
        cpus.join(","),
        record.rounds.len()
    );
    add_detail(&mut out, &set_up, width);
    if let Some(why) = &record.cut_short {
        add_wrapped(&mut out, &format!("The run ended early: {}", clean(why)), 2, width);
    }
    if figures.is_empty() {
        return out;
    }
    out.push('\n');
    let table = Table::of(&figures)
        .words("layout", 0, |row| row.layout.words().to_owned())
        .figures("an addition", 0, |row| duration_fine(row.addition_ns))
        .figures("factor", 0, |row| format!("{:.2}", row.factor))
        .figures("quartiles", 1, |row| format!("{:.2}-{:.2}", row.factor_quartiles.0, row.factor_quartiles.1))
        .figures("speed-up", 1, |row| format!("x {:.1}", row.gain));
    out.push_str(&table.text(width));
    if !record.is_restartable {
        let text =
            "The per-CPU counter had no restartable sequences (rseq) here, so its additions were atomic.";
        add_wrapped(&mut out, text, 2, width);
    }
    out
}

/// "False sharing makes an addition 2.9 times as slow here".
fn headline(figures: &[SharingFigures]) -> String {
    let of = |layout: Layout| figures.iter().find(|row| row.layout == layout);
    match of(Layout::Neighbours) {
        // The quartiles of interleaved rounds on one side of 1.
        Some(row) if row.factor_quartiles.0 > 1.0 => {
            format!("False sharing makes an addition {:.1} times as slow here", row.factor)
        }
        Some(_) => "No difference shown: own values in one line are as fast as 128 bytes apart".to_owned(),
        None => "Nothing was measured".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::sharing::{SharingRound, SharingTime};

    fn record(neighbours: &[f64]) -> SharingRecord {
        let times = |ns: f64| {
            let of = |layout| match layout {
                Layout::OneValue => 14.0,
                Layout::Neighbours => ns,
                Layout::PerCpu => 1.0,
                _ => 5.0,
            };
            Layout::ALL.into_iter().map(|layout| SharingTime { layout, addition_ns: of(layout) }).collect()
        };
        let rounds = neighbours.iter().map(|ns| SharingRound { times: times(*ns) }).collect();
        SharingRecord { cpus: vec![0, 1], is_restartable: true, rounds, cut_short: None }
    }

    #[test]
    fn a_factor_needs_rounds_that_agree() {
        let clear = sharing_text(&record(&[14.0, 15.0, 16.0, 15.0]), 80);
        assert!(clear.contains("3.0 times as slow") && clear.contains("x 14.0"), "{clear}");
        let unclear = sharing_text(&record(&[4.0, 9.0, 4.5, 5.0]), 80);
        assert!(unclear.contains("No difference shown"), "{unclear}");
        assert!(sharing_text(&SharingRecord::default(), 80).contains("Nothing was measured"));
        let cut = SharingRecord { cut_short: Some("cannot run on CPU 1".into()), ..record(&[14.0]) };
        assert!(sharing_text(&cut, 80).contains("The run ended early: cannot run on CPU 1"));
    }
}

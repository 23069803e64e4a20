//! Cost of false sharing.

use crate::finder::finder_article;
use lowlat_cache::sharing::{Layout, SharingFigures, SharingRecord};
use lowlat_cache::{FalseSharing, FalseSharingMeasurement};
use lowlat_text::article::Article;
use lowlat_text::columns::Table;
use lowlat_text::units::duration_fine;

/// What was measured of false sharing.
pub fn false_sharing_article(measured: &FalseSharing) -> Article {
    match measured {
        FalseSharing::Cost(record) => sharing_article(record),
        FalseSharing::Program(record) => finder_article(record),
    }
}

fn sharing_article(record: &SharingRecord) -> Article {
    let figures = record.figures();
    let cpus: Vec<String> = record.cpus.iter().map(ToString::to_string).collect();
    let set_up = format!(
        "{} threads on CPUs {} add as fast as they can: medians of {} interleaved rounds. Factor: against values 128 bytes apart. Speed-up: against one value.",
        cpus.len(),
        cpus.join(","),
        record.rounds.len()
    );
    let early = record.cut_short.iter().map(|why| format!("The run ended early: {why}."));
    let table = Table::of(&figures)
        .words("layout", 0, |row| row.layout.words().to_owned())
        .figures("an addition", 0, |row| duration_fine(row.addition_ns))
        .figures("factor", 0, |row| format!("{:.2}", row.factor))
        .figures("quartiles", 1, |row| format!("{:.2}-{:.2}", row.factor_quartiles.0, row.factor_quartiles.1))
        .figures("speed-up", 1, |row| format!("x {:.1}", row.gain));
    let atomic = (!figures.is_empty() && !record.is_restartable).then(|| {
        "The per-CPU counter had no restartable sequences (rseq) here, so its additions were atomic."
            .to_owned()
    });
    Article::new(FalseSharingMeasurement::KIND, "Cost of false sharing", headline(&figures))
        .detail(set_up)
        .table("Additions by layout", table)
        .doubts("Caveats", early.chain(atomic).collect())
}

/// "False sharing makes an addition 2.9 times as slow here."
fn headline(figures: &[SharingFigures]) -> String {
    let of = |layout: Layout| figures.iter().find(|row| row.layout == layout);
    match of(Layout::Neighbours) {
        // The quartiles of interleaved rounds on one side of 1.
        Some(row) if row.factor_quartiles.0 > 1.0 => {
            format!("False sharing makes an addition {:.1} times as slow here.", row.factor)
        }
        Some(_) => "No difference shown: own values in one line are as fast as 128 bytes apart.".to_owned(),
        None => "Nothing was measured.".to_owned(),
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
        let clear = sharing_article(&record(&[14.0, 15.0, 16.0, 15.0])).to_text(80);
        assert!(clear.contains("3.0 times as slow") && clear.contains("x 14.0"), "{clear}");
        let unclear = sharing_article(&record(&[4.0, 9.0, 4.5, 5.0])).to_text(80);
        assert!(unclear.contains("No difference shown"), "{unclear}");
        assert!(sharing_article(&SharingRecord::default()).to_text(80).contains("Nothing was measured"));
        let cut = SharingRecord { cut_short: Some("cannot run on CPU 1".into()), ..record(&[14.0]) };
        assert!(sharing_article(&cut).to_text(80).contains("The run ended early: cannot run on CPU 1"));
    }
}

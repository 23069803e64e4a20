//! Writes sample pages and terminal texts with their colours into a directory, to look at them in a browser and with
//! `cat`: `cargo run --example sample_pages -- DIR`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::Shape;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/sample-pages".into()));
    std::fs::create_dir_all(&directory)?;
    let mut no_jitter = common::epyc();
    no_jitter.measurements.clear();
    let mut no_findings = common::epyc();
    no_findings.audit = common::audit(Vec::new());
    let pages = vec![
        ("epyc", common::epyc()),
        ("wide", common::wide(&Shape::WIDE, "0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120", 60)),
        ("clusters", common::wide(&Shape::CLUSTERS, "0-3", 610)),
        ("traced", common::traced()),
        ("counted", common::counted()),
        ("quiet", common::quiet()),
        ("vast", common::vast(1_024)),
        ("bare", common::bare()),
        ("no-jitter", no_jitter),
        ("no-findings", no_findings),
        ("hostile", common::hostile()),
        ("cores-256", common::cores(&Shape::WIDE)),
        ("cores-64", common::cores(&Shape::CLUSTERS)),
        ("cores-16", common::cores(&Shape::EPYC_7F32)),
    ];
    let options = lowlat_jitter_report::JitterTextOptions { show_all: false, width: 80 };
    let texts = [
        ("jitter", lowlat_results_report::jitter_text(&common::traced(), options)),
        (
            "explain",
            lowlat_jitter_report::explain_text(&lowlat_results_report::jitter_run(&common::traced()), 1, 80)
                .unwrap_or_else(|error| error),
        ),
        ("comparison", lowlat_results_report::comparison_text(&common::comparison(), 80)),
        ("side-by-side", lowlat_results_report::side_by_side_text(&common::side_by_side(3), 80)),
        ("markdown", lowlat_results_report::documents_markdown(&common::named(&common::three()))),
    ];
    for (name, text) in texts {
        std::fs::write(directory.join(format!("{name}.txt")), text)?;
    }
    let several = [
        ("side-by-side", lowlat_results_report::side_by_side_html(&common::side_by_side(2))),
        ("three-side-by-side", lowlat_results_report::side_by_side_html(&common::side_by_side(3))),
        ("documents", lowlat_results_report::documents_html(&common::named(&common::three()))),
    ];
    for (name, page) in several {
        let path = directory.join(format!("{name}.html"));
        std::fs::write(&path, page)?;
        println!("{}", path.display());
    }
    for (name, document) in pages {
        let path = directory.join(format!("{name}.html"));
        std::fs::write(&path, lowlat_results_report::html(&document))?;
        println!("{}", path.display());
    }
    Ok(())
}

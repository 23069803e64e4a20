//! Latencies between cores as terminal text.

use crate::common::{self, Shape};

fn text(shape: &Shape, width: usize) -> String {
    let document = common::cores(shape);
    let record = &document.c2c().unwrap().record;
    let text = lowlat_cores_report::c2c_text(record, &document.snapshot.topology, width);
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn sixteen_cpus_at_80_columns() {
    insta::assert_snapshot!(text(&Shape::EPYC_7F32, 80));
}

#[test]
fn clusters_at_80_columns() {
    insta::assert_snapshot!(text(&Shape::CLUSTERS, 80));
}

#[test]
fn hundreds_of_cpus_at_80_columns() {
    insta::assert_snapshot!(text(&Shape::WIDE, 80));
}

#[test]
fn every_pair_is_on_the_page() {
    let document = common::cores(&Shape::EPYC_7F32);
    let page = lowlat_results_report::html(&document);
    assert_eq!(page.matches("<title>CPUs ").count(), 16 * 15);
    assert!(
        page.contains("across NUMA nodes") && page.contains("Darker is slower"),
        "the map and its levels"
    );
}

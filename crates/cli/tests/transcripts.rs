//! What the commands print, as golden transcripts.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("lowlat", crate::common::binary())
        .case("tests/transcripts/*.trycmd")
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1");
}

/// The commands that documents show, in the folder DOCUMENT.in beside each.
#[test]
fn transcripts_of_documents() {
    trycmd::TestCases::new()
        .register_bin("lowlat", crate::common::binary())
        .case("../../docs/guide-57037.md")
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1");
}

//! What the commands print, as golden transcripts.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("lowlat", crate::common::binary())
        .case("tests/transcripts/*.trycmd")
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1");
}

//! What the commands print, as golden transcripts.

use std::path::Path;

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("lowlat", crate::common::binary())
        .case("tests/transcripts/*.trycmd")
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1");
}

/// The commands that documents show. They run in the folder DOCUMENT.in, which holds the captures
/// under the names that the document uses.
#[test]
fn transcripts_of_documents() -> std::io::Result<()> {
    let folder = Path::new("../../docs/guide-57037.in");
    std::fs::create_dir_all(folder)?;
    for (name, capture) in
        [("before.tar.gz", "epyc-7f32-stock.tar.gz"), ("after.tar.gz", "epyc-7f32-2x8.tar.gz")]
    {
        let capture = Path::new("../../fixtures/hosts").join(capture);
        std::fs::copy(capture, folder.join(name))?;
    }
    trycmd::TestCases::new()
        .register_bin("lowlat", crate::common::binary())
        .case("../../docs/guide-57037.md")
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .run();
    Ok(())
}

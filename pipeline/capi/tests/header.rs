//! The committed header matches the sources.

use std::{env, fs, path::Path};

#[test]
fn the_committed_header_matches_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let made =
        cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs")).generate().unwrap();
    let mut bytes = Vec::new();
    made.write(&mut bytes);
    let made = String::from_utf8(bytes).unwrap();
    let path = folder.join("include/lowlat.h");
    if env::var_os("LOWLAT_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(committed.lines()).find(|(made, committed)| made != committed);
    assert!(
        made == committed,
        "{} differs from the sources; first difference (generated, committed): {differs:?}; write it with \
         LOWLAT_WRITE_HEADER=1 cargo test -p lowlat-capi header, and raise LOWLAT_ABI_VERSION when structs or statuses changed",
        path.display()
    );
}

#[test]
fn the_limits_of_numbers_in_the_header_and_the_stub_are_those_of_the_code() {
    for file in ["include/lowlat.h", "../python/lowlat.pyi"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let limit = format!("below {}", lowlat_node::STRATEGIES_MAX);
        assert!(text.contains(&limit), "{file} does not say {limit:?}");
    }
}

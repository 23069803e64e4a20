//! The kernel's configuration: the options that settings need.

use crate::{Root, root::FILE_BYTES_MAX};
use flate2::read::MultiGzDecoder;
use lowlat_host::Reading;
use std::{collections::BTreeMap, io::Read};

type Options = BTreeMap<String, String>;

/// Read from the running kernel itself (CONFIG_IKCONFIG_PROC), otherwise from the distribution's file for the
/// release: /boot (Debian, RHEL, SUSE), /usr/lib/modules (image-based systems), or the build tree of the
/// headers. Keeps the options with these names, which are sorted.
pub(super) fn read(root: &Root, release: Option<&str>, names: &[&str]) -> Reading<Options> {
    let from_kernel = compressed(root, "/proc/config.gz", names);
    // The release is text from the host; one that would lead to another directory is ignored.
    let Some(release) = release.filter(|release| !release.contains('/')) else { return from_kernel };
    let files = [
        format!("/boot/config-{release}"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/build/.config"),
    ];
    files.iter().fold(from_kernel, |reading, path| {
        reading.or(|| root.read_bytes(path).and_then(|bytes| wanted(path, &bytes, names)))
    })
}

/// Unpacks up to the limit of every file, so that a small file cannot fill the memory.
fn compressed(root: &Root, path: &str, names: &[&str]) -> Reading<Options> {
    root.read_bytes(path).and_then(|bytes| {
        let mut text = Vec::new();
        match MultiGzDecoder::new(&bytes[..]).take(FILE_BYTES_MAX).read_to_end(&mut text) {
            Ok(_) => wanted(path, &text, names),
            Err(error) => {
                Reading::unparsable(path, &error.to_string(), "a gzip-compressed kernel configuration")
            }
        }
    })
}

fn wanted(path: &str, bytes: &[u8], names: &[&str]) -> Reading<Options> {
    let text = String::from_utf8_lossy(bytes);
    let mut is_config = false;
    let mut options = Options::new();
    for line in text.lines() {
        let line = line.trim();
        is_config |= line.starts_with("CONFIG_") || line.starts_with("# CONFIG_");
        let Some((name, value)) = line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('=')) else {
            continue;
        };
        if names.binary_search(&name).is_ok() {
            options.insert(name.to_owned(), value.trim_matches('"').to_owned());
        }
    }
    Reading::understood(is_config.then_some(options), path, &text, "lines such as CONFIG_SMP=y")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;
    use std::io::Write;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    const OPTION: &str = "NO_HZ_FULL";

    fn read(root: &Root, release: Option<&str>) -> Reading<Options> {
        super::read(root, release, &[OPTION])
    }

    #[test]
    fn only_options_that_are_asked_for_are_kept() {
        let text = format!("CONFIG_{OPTION}=y\nCONFIG_NOBODY_ASKS=m\n# CONFIG_X is not set\n");
        let tree = TestTree::new().file("/proc/config.gz", gzip(&text));
        let options = read(&tree.root(), None).into_known().unwrap();
        assert_eq!(options, Options::from([(OPTION.to_owned(), "y".to_owned())]));
    }

    #[test]
    fn the_file_of_the_release_is_next_and_a_broken_first_one_is_reported() {
        let config = format!("CONFIG_{OPTION}=\"y\"\n");
        let tree =
            TestTree::new().file("/boot/config-6.1.0", &config).file("/proc/config.gz", b"\x1f\x8bcut");
        assert_eq!(read(&tree.root(), Some("6.1.0")).into_known().unwrap()[OPTION], "y");
        assert!(matches!(read(&tree.root(), Some("5.0")), Reading::Unparsable(_)));
        assert!(matches!(read(&tree.root(), Some("../boot/config-6.1.0")), Reading::Unparsable(_)));
        assert!(read(&TestTree::new().root(), Some("6.1.0")).is_absent());
    }

    #[test]
    fn a_file_that_is_not_a_configuration_is_not_an_empty_one() {
        let tree = TestTree::new().file("/boot/config-1", "hello\n");
        assert!(matches!(read(&tree.root(), Some("1")), Reading::Unparsable(_)));
        let tree = TestTree::new().file("/boot/config-1", "# CONFIG_X is not set\n");
        assert_eq!(read(&tree.root(), Some("1")), Reading::Known(Options::new()));
    }
}

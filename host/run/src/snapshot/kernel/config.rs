//! The kernel's configuration: the options that settings need.

use crate::{Root, root::FILE_BYTES_MAX};
use flate2::read::MultiGzDecoder;
use lowlat_host::Reading;
use std::{collections::BTreeMap, io::Read};

/// The running kernel's own configuration, if it has one.
const FROM_KERNEL: &str = "/proc/config.gz";

type Options = BTreeMap<String, String>;

/// Read from the running kernel itself (CONFIG_IKCONFIG_PROC), otherwise from the distribution's file for the
/// release: /boot (Debian, RHEL, SUSE), /usr/lib/modules (image-based systems), or the build tree of the
/// headers. Keeps the options with these names, which are sorted.
pub(super) fn read(root: &Root, release: Option<&str>, names: &[&str]) -> Reading<Options> {
    first(root, release, |path, bytes| wanted(path, bytes, names))
}

/// The first of the kernel's configurations that `parse` understands.
fn first<T>(root: &Root, release: Option<&str>, parse: impl Fn(&str, &[u8]) -> Reading<T>) -> Reading<T> {
    let from_kernel = compressed(root, FROM_KERNEL).and_then(|text| parse(FROM_KERNEL, &text));
    // The release is text from the host; one that would lead to another directory is ignored.
    let Some(release) = release.filter(|release| !release.contains('/')) else { return from_kernel };
    let files = [
        format!("/boot/config-{release}"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/build/.config"),
    ];
    files.iter().fold(from_kernel, |reading, path| {
        reading.or(|| root.read_bytes(path).and_then(|bytes| parse(path, &bytes)))
    })
}

/// Unpacks up to the limit of every file, so that a small file cannot fill the memory.
fn compressed(root: &Root, path: &str) -> Reading<Vec<u8>> {
    root.read_bytes(path).and_then(|bytes| {
        let mut text = Vec::new();
        match MultiGzDecoder::new(&bytes[..]).take(FILE_BYTES_MAX).read_to_end(&mut text) {
            Ok(_) => Reading::Known(text),
            Err(error) => {
                Reading::unparsable(path, &error.to_string(), "a gzip-compressed kernel configuration")
            }
        }
    })
}

/// The command line that a kernel was built with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltInLine {
    /// The configuration that contains it, and the number of the line, from 1.
    pub path: String,
    pub line: u32,
    pub parameters: String,
    /// True if the kernel ignores the boot loader's line. Otherwise that follows this one.
    pub is_only_line: bool,
}

/// The command line that the running kernel was built with, if it uses one; absent if it uses the boot loader's alone.
pub fn built_in_line(root: &Root) -> Reading<BuiltInLine> {
    let release = super::identity::release(root);
    first(root, release.known().map(String::as_str), |path, bytes| {
        let text = String::from_utf8_lossy(bytes);
        Reading::from_option(built_in(path, &text))
    })
}

fn built_in(path: &str, text: &str) -> Option<BuiltInLine> {
    let has = |option: &str| text.lines().any(|line| line.trim() == option);
    let set = (1..).zip(text.lines()).find_map(|(at, line)| {
        let quoted = line.trim().strip_prefix("CONFIG_CMDLINE=\"")?.strip_suffix('"')?;
        Some((at, quoted.replace("\\\"", "\"").replace("\\\\", "\\")))
    });
    let (line, parameters) = set.filter(|(_, parameters)| !parameters.trim().is_empty())?;
    // x86 and, on other processors, FORCE. There a kernel without it uses this line if the boot loader has none.
    let is_only_line = has("CONFIG_CMDLINE_OVERRIDE=y") || has("CONFIG_CMDLINE_FORCE=y");
    let is_used = is_only_line || has("CONFIG_CMDLINE_BOOL=y");
    is_used.then(|| BuiltInLine { path: path.to_owned(), line, parameters, is_only_line })
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
    fn a_line_that_the_kernel_was_built_with_comes_first_or_is_the_only_one() {
        let of = |text: &str| {
            let tree =
                TestTree::new().file("/proc/sys/kernel/osrelease", "6.1\n").file("/boot/config-6.1", text);
            built_in_line(&tree.root())
        };
        let line = "CONFIG_CMDLINE=\"nohz_full=1 dyndbg=\\\"x +p\\\"\"\n";
        let built_in = of(&format!("CONFIG_CMDLINE_BOOL=y\n{line}# CONFIG_CMDLINE_OVERRIDE is not set\n"));
        let expected = BuiltInLine {
            path: "/boot/config-6.1".to_owned(),
            line: 2,
            parameters: "nohz_full=1 dyndbg=\"x +p\"".to_owned(),
            is_only_line: false,
        };
        assert_eq!(built_in, Reading::Known(expected));
        for only in ["CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE_OVERRIDE=y", "CONFIG_CMDLINE_FORCE=y"] {
            assert!(of(&format!("{line}{only}\n")).into_known().unwrap().is_only_line, "{only}");
        }
        for unused in
            [line, "CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE=\"\"\n", "# CONFIG_CMDLINE_BOOL is not set\n"]
        {
            assert!(of(unused).is_absent(), "{unused}");
        }
    }

    #[test]
    fn a_file_that_is_not_a_configuration_is_not_an_empty_one() {
        let tree = TestTree::new().file("/boot/config-1", "hello\n");
        assert!(matches!(read(&tree.root(), Some("1")), Reading::Unparsable(_)));
        let tree = TestTree::new().file("/boot/config-1", "# CONFIG_X is not set\n");
        assert_eq!(read(&tree.root(), Some("1")), Reading::Known(Options::new()));
    }
}

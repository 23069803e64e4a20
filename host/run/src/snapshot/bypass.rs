//! Network stacks that bypass the kernel's, by their files. No program is run.

use crate::Root;
use lowlat_host::{Reading, snapshot::Bypass};

/// Directories of libraries, those of the distribution first.
const LIBRARY_DIRECTORIES: [&str; 7] = [
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib64",
    "/usr/local/lib",
    "/opt/exablaze/lib",
];

/// Signs that a network stack is installed.
struct BypassStack {
    name: &'static str,
    /// Its kernel module; empty if it has none.
    module: &'static str,
    /// Its library, without the version behind ".so".
    library: &'static str,
    program: &'static str,
}

const STACKS: [BypassStack; 5] = [
    BypassStack { name: "Onload", module: "onload", library: "libonload.so", program: "/usr/bin/onload" },
    BypassStack {
        name: "TCPDirect",
        module: "",
        library: "libonload_zf.so",
        program: "/usr/bin/zf_stackdump",
    },
    BypassStack { name: "VMA", module: "", library: "libvma.so", program: "/usr/bin/vma_stats" },
    BypassStack { name: "XLIO", module: "", library: "libxlio.so", program: "/usr/bin/xlio_stats" },
    BypassStack {
        name: "exasock",
        module: "exasock",
        library: "libexasock_preload.so",
        program: "/usr/bin/exasock",
    },
];

/// Empty if nothing is known: a capture of an earlier version has none of the directories.
pub(super) fn read(root: &Root) -> Vec<Bypass> {
    if !root.exists("/usr/lib") {
        return Vec::new();
    }
    STACKS.iter().map(|stack| one(root, stack)).collect()
}

fn one(root: &Root, stack: &BypassStack) -> Bypass {
    let module = format!("/sys/module/{}", stack.module);
    let is_loaded = !stack.module.is_empty() && root.exists(&module);
    let library = library(root, stack.library);
    let program = root.exists(stack.program).then(|| stack.program.to_owned());
    let found = library.as_ref().map(|(path, _)| path.clone()).or(program);
    let found = found.or_else(|| is_loaded.then(|| module.clone()));
    let of_module = if is_loaded { root.read(&format!("{module}/version")) } else { Reading::Absent };
    let of_library = library.and_then(|(_, version)| version);
    Bypass {
        name: stack.name.to_owned(),
        found: Reading::from_option(found),
        version: of_module.or(|| Reading::from_option(of_library)),
        is_loaded: if stack.module.is_empty() { Reading::Absent } else { Reading::Known(is_loaded) },
    }
}

/// The library's path, and the version in the name of the file that it is: "9.8.60" of libvma.so.9.8.60.
fn library(root: &Root, name: &str) -> Option<(String, Option<String>)> {
    let prefix = format!("{name}.");
    LIBRARY_DIRECTORIES.iter().find_map(|directory| {
        let names = root.list(directory).into_known()?;
        let version = |file: &String| {
            let version = file.strip_prefix(&prefix)?;
            version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
        };
        let versions = names.iter().filter_map(version);
        let longest = versions.max_by_key(|version| (version.len(), version.clone()));
        let has_plain = names.iter().any(|file| file == name);
        let file = if has_plain { name.to_owned() } else { format!("{prefix}{}", longest.as_deref()?) };
        Some((format!("{directory}/{file}"), longest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn stacks_are_found_by_their_files() {
        let tree = TestTree::new()
            .file("/usr/lib64/libonload.so", "")
            .file("/usr/bin/onload", "")
            .file("/sys/module/onload/version", "9.2.1\n")
            .file("/usr/lib/x86_64-linux-gnu/libvma.so.9", "")
            .file("/usr/lib/x86_64-linux-gnu/libvma.so.9.8.60", "")
            .file("/usr/bin/exasock", "");
        let found = read(&tree.root());
        let of = |name: &str| found.iter().find(|stack| stack.name == name).unwrap();
        assert_eq!(
            (of("Onload").found.text(), of("Onload").version.text()),
            ("/usr/lib64/libonload.so", "9.2.1")
        );
        assert_eq!(of("Onload").is_loaded, Reading::Known(true));
        assert_eq!(of("VMA").found.text(), "/usr/lib/x86_64-linux-gnu/libvma.so.9.8.60");
        assert_eq!(of("VMA").version.text(), "9.8.60");
        assert_eq!(
            (of("exasock").found.text(), &of("exasock").is_loaded),
            ("/usr/bin/exasock", &Reading::Known(false))
        );
        assert_eq!(read(&TestTree::of(&[("/proc/version", "x")]).root()), []);
        assert!(of("XLIO").found.is_absent() && of("TCPDirect").found.is_absent());
    }
}

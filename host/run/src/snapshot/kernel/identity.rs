//! The kernel and the distribution.

use crate::Root;
use lowlat_host::{Reading, kernel_version::KernelVersion};
use std::collections::BTreeMap;

/// The release; in trees without the sysctl, the third word of /proc/version.
pub(super) fn release(root: &Root) -> Reading<String> {
    let path = "/proc/version";
    let from_version = || {
        root.read(path).parse(path, "\"Linux version\" and the release", |text| {
            let rest = text.strip_prefix("Linux version ")?;
            rest.split_whitespace().next().map(str::to_owned)
        })
    };
    not_empty(root.read("/proc/sys/kernel/osrelease")).or(from_version)
}

/// The build line; in /proc/version it starts with the `#` after the compiler.
pub(super) fn build(root: &Root) -> Reading<String> {
    let path = "/proc/version";
    let from_version = || {
        root.read(path).parse(path, "a line with the build number behind #", |text| {
            text.rfind(" #").and_then(|at| text.get(at + 1..)).map(str::to_owned)
        })
    };
    not_empty(root.read("/proc/sys/kernel/version")).or(from_version)
}

fn not_empty(reading: Reading<String>) -> Reading<String> {
    reading.and_then(|text| if text.is_empty() { Reading::Absent } else { Reading::Known(text) })
}

pub(super) fn version(release: &Reading<String>) -> Reading<KernelVersion> {
    release.clone().parse(
        "/proc/sys/kernel/osrelease",
        "a kernel release such as 6.1.0",
        KernelVersion::parse,
    )
}

/// The machine: the running kernel's own name, /proc/sys/kernel/arch (since Linux 6.1), the suffix of the
/// release, or as found from /proc/cpuinfo.
pub(super) fn machine(root: &Root, release: &Reading<String>) -> Reading<String> {
    if root.is_live() {
        return Reading::Known(rustix::system::uname().machine().to_string_lossy().into_owned());
    }
    let path = "/proc/sys/kernel/arch";
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    not_empty(root.read(path))
        .parse(path, "the name of a machine such as x86_64", |text| is_name(text).then(|| text.to_owned()))
        .or(|| Reading::from_option(machine_of_release(release.text())))
        .or(|| machine_of_cpuinfo(root))
}

fn machine_of_release(release: &str) -> Option<String> {
    const SUFFIXES: [(&str, &str); 16] = [
        ("x86_64", "x86_64"),
        ("amd64", "x86_64"),
        ("aarch64", "aarch64"),
        ("arm64", "aarch64"),
        ("s390x", "s390x"),
        ("ppc64le", "ppc64le"),
        ("powerpc64le", "ppc64le"),
        ("ppc64", "ppc64"),
        ("powerpc64", "ppc64"),
        ("riscv64", "riscv64"),
        ("loongarch64", "loongarch64"),
        ("sparc64", "sparc64"),
        ("i686", "i686"),
        ("686", "i686"),
        ("armv7hl", "armv7l"),
        ("armmp", "armv7l"),
    ];
    // Debian puts flavours after or before the architecture: 6.1.0-25-rt-amd64, 6.1.0-25-cloud-amd64,
    // 6.1.0-arm64-16k.
    let words: Vec<&str> = release.split(['-', '.', '+']).collect();
    SUFFIXES.iter().find(|(suffix, _)| words.contains(suffix)).map(|(_, machine)| (*machine).to_owned())
}

/// Lines that /proc/cpuinfo has on one kind of machine only (arch/*/kernel of Linux): a key, a text that its value
/// contains, and the machine.
const CPUINFO: [(&str, &str, &str); 20] = [
    // Of kernels of 32 bits, whatever the processor can do.
    ("fdiv_bug", "", "i686"),
    ("Features", " thumb ", "armv7l"),
    ("flags", " lm ", "x86_64"),
    ("CPU architecture", "8", "aarch64"),
    ("CPU architecture", "AArch64", "aarch64"),
    ("CPU architecture", "7", "armv7l"),
    ("CPU architecture", "6", "armv6l"),
    ("vendor_id", "IBM/S390", "s390x"),
    ("isa", "rv64", "riscv64"),
    ("isa", "rv32", "riscv32"),
    ("ISA", "loongarch64", "loongarch64"),
    ("type", "sun4u", "sparc64"),
    ("type", "sun4v", "sparc64"),
    ("cpu model", "Loongson-3", "mips64"),
    ("cpu model", "MIPS", "mips"),
    ("arch", "IA-64", "ia64"),
    ("cpu family", "PA-RISC", "parisc"),
    // The byte order does not show.
    ("cpu", "POWER", "ppc64"),
    ("cpu", "PPC970", "ppc64"),
    ("timebase", "", "ppc"),
];

fn machine_of_cpuinfo(root: &Root) -> Reading<String> {
    let path = "/proc/cpuinfo";
    root.read_bytes(path).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let fields: BTreeMap<&str, String> = text
            .lines()
            .rev()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim(), format!(" {} ", value.trim())))
            .collect();
        let is_so = |key: &str, part: &str| fields.get(key).is_some_and(|value| value.contains(part));
        let found = CPUINFO.iter().find(|(key, part, _)| is_so(key, part));
        Reading::from_option(found.map(|(_, _, machine)| (*machine).to_owned()))
    })
}

/// PRETTY_NAME of os-release; os-release(5) names /usr/lib/os-release as the fallback.
pub(super) fn distribution(root: &Root) -> Reading<String> {
    let name_in = |path: &str| {
        root.read(path).parse(path, "a line PRETTY_NAME=", |text| {
            text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME=")).map(unquote)
        })
    };
    name_in("/etc/os-release").or(|| name_in("/usr/lib/os-release"))
}

/// The value without the shell's quotes and backslashes.
fn unquote(value: &str) -> String {
    let value = value.trim();
    let inside = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if let Some(single) = inside('\'') {
        return single.to_owned();
    }
    let mut text = String::new();
    let mut characters = inside('"').unwrap_or(value).chars();
    while let Some(c) = characters.next() {
        text.push(if c == '\\' { characters.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn machines_are_recognized_by_releases_and_cpuinfo() {
        let of = |text| machine_of_release(text).unwrap_or_default();
        assert_eq!(of("6.1.0-25-rt-amd64"), "x86_64");
        assert_eq!(of("4.18.0-147.5.1.el8_1.x86_64"), "x86_64");
        assert_eq!(of("5.14.0-503.el9.aarch64+64k"), "aarch64");
        assert_eq!(of("6.8.0-40-generic"), "");
        let machine_of =
            |cpuinfo: &str| machine(&TestTree::of(&[("/proc/cpuinfo", cpuinfo)]).root(), &Reading::Absent);
        assert_eq!(machine_of("processor\t: 0\nflags\t\t: fpu lm tsc\n").text(), "x86_64");
        assert_eq!(machine_of("processor\t: 0\nCPU architecture: 8\n").text(), "aarch64");
        assert!(machine_of("processor : 0\nbogomips : 48.00\n").is_absent(), "never guessed");
        let x86 = |lines: &str| format!("processor\t: 0\nvendor_id\t: GenuineIntel\n{lines}");
        let of_32_bits = x86("fdiv_bug\t: no\nflags\t\t: fpu vme lm\n");
        for (cpuinfo, machine) in [
            (of_32_bits.as_str(), "i686"),
            (&x86("flags\t\t: fpu vme de pse tsc\n"), ""),
            ("processor\t: 0\nFeatures\t: half thumb fastmult vfp\nCPU architecture: 8\n", "armv7l"),
            ("vendor_id       : IBM/S390\n# processors    : 2\nfeatures\t: esan3 zarch stfle\n", "s390x"),
            ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\ntimebase\t: 512000000\n", "ppc64"),
            ("processor\t: 0\ncpu\t\t: 7447A, altivec supported\n\ntimebase\t: 18432000\n", "ppc"),
            ("processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n", "riscv64"),
            ("system type : generic-loongson-machine\n\nISA : loongarch32r loongarch64\n", "loongarch64"),
            ("cpu\t\t: UltraSparc T5 (Niagara5)\nncpus probed\t: 128\ntype\t\t: sun4v\n", "sparc64"),
        ] {
            assert_eq!(machine_of(cpuinfo).text(), machine, "{cpuinfo}");
        }
    }

    #[test]
    fn names_are_unquoted_as_the_shell_does() {
        assert_eq!(unquote("\"Debian GNU/Linux 12 (bookworm)\""), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(unquote("'Single \\ quoted'"), "Single \\ quoted");
        assert_eq!(unquote("\"a \\\"b\\\" \\$c\""), "a \"b\" $c");
        assert_eq!(unquote("Plain"), "Plain");
        assert_eq!(unquote("\""), "\"");
        assert_eq!(unquote("\\"), "\\");
    }
}

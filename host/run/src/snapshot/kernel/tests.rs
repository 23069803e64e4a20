use super::*;
use crate::testing::TestTree;
use lowlat_host::kernel_version::KernelVersion;

fn read(root: &Root) -> KernelFacts {
    super::read(root, &[])
}

fn host() -> TestTree {
    TestTree::of(&[
        ("/proc/sys/kernel/osrelease", "6.1.0-25-amd64\n"),
        ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.106-3 (2024-08-26)\n"),
        ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda nohz_full=1-7\n"),
        ("/proc/sys/kernel/tainted", "4097\n"),
        ("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
        ("/proc/loadavg", "0.52 0.58 12.00 1/467 12345\n"),
        ("/proc/uptime", "350735.47 234388.90\n"),
        ("/etc/os-release", "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
    ])
}

#[test]
fn a_debian_host_is_read() {
    let facts = read(&host().root());
    assert_eq!(facts.release.text(), "6.1.0-25-amd64");
    assert_eq!(facts.version, Reading::Known(KernelVersion::new(6, 1)));
    assert_eq!(facts.machine.text(), "x86_64");
    assert_eq!(facts.tokens().last("nohz_full"), Some("1-7"));
    assert_eq!(facts.tainted, Reading::Known(4_097));
    assert_eq!(facts.lockdown.text(), "integrity");
    assert_eq!(facts.is_realtime, Reading::Known(false));
    assert_eq!(facts.load_average, Reading::Known([0.52, 0.58, 12.0]));
    assert_eq!(facts.uptime_s, Reading::Known(350_735.47));
    assert_eq!(facts.distribution.text(), "Debian GNU/Linux 12 (bookworm)");
    assert!(facts.config.is_absent());
}

#[test]
fn real_time_kernels_are_recognized_by_their_file_or_their_build_line() {
    let realtime_of = |files: &[(&str, &str)]| read(&TestTree::of(files).root()).is_realtime;
    assert_eq!(realtime_of(&[("/sys/kernel/realtime", "1\n")]), Reading::Known(true));
    assert_eq!(
        realtime_of(&[("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian")]),
        Reading::Known(true)
    );
    assert_eq!(realtime_of(&[("/proc/sys/kernel/version", "#1 SMP PREEMPT RT 2019")]), Reading::Known(true));
    assert!(realtime_of(&[]).is_absent());
}

#[test]
fn selinux_runs_in_the_mode_of_the_kernel() {
    let of = |files: &[(&str, &str)]| selinux_mode(&TestTree::of(files).root());
    assert_eq!(of(&[(SELINUX_ENFORCE, "1"), (SECURITY_MODULES, "capability,selinux\n")]).text(), "enforcing");
    assert_eq!(of(&[(SELINUX_ENFORCE, "0")]).text(), "permissive");
    assert!(matches!(of(&[(SELINUX_ENFORCE, "x")]), Reading::Unparsable(_)));
    assert_eq!(of(&[(SECURITY_MODULES, "lockdown,capability,apparmor\n")]).text(), "disabled");
    assert!(
        of(&[(SECURITY_MODULES, "capability,selinux\n")]).is_absent(),
        "it runs, in a mode that was not read"
    );
    assert!(of(&[]).is_absent());
}

#[test]
fn the_configuration_of_selinux_is_that_of_later_boots() {
    let of = |text: &str| selinux_configured(&TestTree::of(&[(SELINUX_CONFIG, text)]).root());
    assert_eq!(of("# SELINUX= can take\nSELINUX=disabled\nSELINUXTYPE=targeted\n").text(), "disabled");
    assert!(of("SELINUXTYPE=targeted\n").is_absent());
}

#[test]
fn proc_version_replaces_missing_sysctls() {
    let version = "Linux version 5.14.0-503.el9.x86_64 (mockbuild@x) (gcc (GCC) 11.5.0, ld #2) #1 SMP PREEMPT_DYNAMIC\n";
    let facts = read(&TestTree::of(&[("/proc/version", version)]).root());
    assert_eq!(facts.release.text(), "5.14.0-503.el9.x86_64");
    assert_eq!(facts.build.text(), "#1 SMP PREEMPT_DYNAMIC");
}

#[test]
fn junk_is_unparsable_and_nothing_is_absent() {
    let junk = ["/proc/loadavg", "/proc/uptime", "/proc/sys/kernel/tainted", "/sys/kernel/security/lockdown"];
    let facts = read(&junk.iter().fold(TestTree::new(), |tree, path| tree.file(path, "NaN inf 1")).root());
    assert!(matches!(facts.load_average, Reading::Unparsable(_)));
    assert!(matches!(facts.uptime_s, Reading::Unparsable(_)));
    assert!(matches!(facts.tainted, Reading::Unparsable(_)));
    assert!(matches!(facts.lockdown, Reading::Unparsable(_)));
    assert_eq!(read(&TestTree::new().root()), KernelFacts::default());
}

#[test]
fn the_live_host_tells_its_release() {
    let facts = read(&Root::live());
    assert_eq!(facts.release.text(), rustix::system::uname().release().to_string_lossy());
    assert!(facts.version.is_known() && facts.uptime_s.is_known());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120)) {
        let paths = [
            "/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/proc/version", "/proc/cmdline", "/proc/config.gz",
            "/proc/loadavg", "/proc/uptime", "/proc/cpuinfo", "/etc/os-release", "/sys/kernel/security/lockdown",
        ];
        let tree = paths.iter().fold(TestTree::new(), |tree, path| tree.file(path, &bytes));
        let _ = read(&tree.root());
    }
}

//! Unified kernel images that kernel-install builds, and those that lowlat leaves alone.

use super::{Host, NEW, plan};
use crate::{Outcome, Programs, boot_loader::pe};
use std::io;

const IMAGE: &str = "/boot/efi/EFI/Linux/m-6.12.1.efi";
const SOURCE: &str = "# as installed\nroot=UUID=1 ro nohz=off\n";
const BUILT: &str = "root=UUID=1 ro nohz=off systemd.machine_id=2";

fn image(line: &str, is_signed: bool) -> Vec<u8> {
    pe::example(&[(".osrel", "ID=debian\n"), (".cmdline", line), (".uname", "6.12.1")], is_signed)
}

/// Debian with systemd-boot and ukify.
fn host() -> Host {
    let host = Host::new(&[
        ("/etc/os-release", "ID=debian\n"),
        ("/etc/kernel/cmdline", SOURCE),
        ("/etc/kernel/install.conf", "layout = bls\nlayout=uki\n"),
        ("/usr/bin/kernel-install", ""),
        ("/boot/vmlinuz-6.12.1", ""),
    ]);
    host.put(IMAGE, image(BUILT, false));
    host.efi_variable("LoaderInfo", "systemd-boot 257");
    host
}

/// kernel-install, whose image has this line.
#[derive(Debug)]
struct Builds(&'static str, bool);

impl Programs for Builds {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome> {
        assert_eq!((program, arguments[0]), ("sh", "-c"));
        assert_eq!(arguments[2..], ["kernel-install", "6.12.1", "/boot/vmlinuz-6.12.1"]);
        Ok(Outcome { is_success: true, stdout: image(self.0, self.1), stderr: String::new() })
    }
}

/// kernel-install, which must not run.
#[derive(Debug)]
struct NotRun;

impl Programs for NotRun {
    fn run(&self, program: &str, _: &[&str]) -> io::Result<Outcome> {
        panic!("{program} runs");
    }
}

const PLANNED: &str = "ro isolcpus=managed_irq,domain,1-7,9-15 root=UUID=1 nohz_full=1-7,9-15 rcu_nocb_poll";

#[test]
fn the_source_is_edited_and_the_image_built_again() {
    let host = host();
    let loader = host.loader();
    assert_eq!(host.next(), BUILT);
    assert_eq!(loader.generator(&host.root()).unwrap(), "kernel-install add 6.12.1 /boot/vmlinuz-6.12.1");
    assert_eq!(host.apply_sources(&plan()), ["/etc/kernel/cmdline"]);
    assert_eq!(host.read("/etc/kernel/cmdline"), format!("# as installed\nroot=UUID=1 ro {NEW}\n"));
    let changes = loader.generated(&host.root(), &Builds(PLANNED, false)).unwrap();
    assert_eq!(host.apply(&changes), [IMAGE]);
    assert_eq!(host.next(), PLANNED);
    assert_eq!(host.apply_sources(&plan()), [""; 0]);
    // An image that has the line is not built again.
    let again = loader.generated(&host.root(), &NotRun).unwrap();
    assert_eq!(again, changes);
}

#[test]
fn an_image_that_the_tool_built_otherwise_is_not_installed() {
    let host = host();
    host.apply_sources(&plan());
    let refusal = |built| host.loader().generated(&host.root(), &built).unwrap_err().to_string();
    let text = refusal(Builds(BUILT, false));
    assert!(text.contains("does not contain the command line of /etc/kernel/cmdline"), "{text}");
    secure_boot(&host);
    let text = refusal(Builds(PLANNED, false));
    assert!(text.contains("not signed"), "{text}");
    host.loader().generated(&host.root(), &Builds(PLANNED, true)).unwrap();
}

fn secure_boot(host: &Host) {
    host.put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", [6, 0, 0, 0, 1]);
}

#[test]
fn an_image_that_cannot_be_built_again_is_refused_with_the_reason() {
    type Change = fn(&Host);
    let cases: [(Change, &str); 6] = [
        (|host| host.put("/etc/kernel/install.conf", "layout=bls\n"), "no tool builds it again"),
        (|host| host.put("/etc/kernel/install.conf.d/x.conf", "layout=bls\n"), "no tool builds it again"),
        (|host| host.put(IMAGE, image("root=UUID=1 ro other", false)), "differs from /etc/kernel/cmdline"),
        (|host| std::fs::remove_file(host.place("/etc/kernel/cmdline")).unwrap(), "cmdline is missing"),
        (
            |host| std::fs::remove_file(host.place("/boot/vmlinuz-6.12.1")).unwrap(),
            "\"6.12.1\", is not installed",
        ),
        (secure_boot, "Secure Boot is on, and no key"),
    ];
    for (change, reason) in cases {
        let host = host();
        change(&host);
        let text = host.refusal(&plan());
        assert!(
            text.starts_with(&format!("this host boots the unified kernel image {IMAGE}, which")),
            "{text}"
        );
        assert!(text.contains(reason) && text.contains(NEW), "{reason}: {text}");
    }
}

#[test]
fn with_a_key_for_secure_boot_the_image_is_built_again() {
    let host = host();
    secure_boot(&host);
    host.put("/etc/kernel/uki.conf", "[UKI]\nSecureBootPrivateKey=/etc/kernel/key.pem\n");
    assert_eq!(host.apply_sources(&plan()), ["/etc/kernel/cmdline"]);
}

#[test]
fn without_the_firmware_s_variables_the_image_is_found_by_its_place() {
    let host = host();
    std::fs::remove_dir_all(host.place("/sys/firmware/efi/efivars")).unwrap();
    assert_eq!(host.next(), BUILT);
    assert_eq!(host.apply_sources(&plan()), ["/etc/kernel/cmdline"]);
}

#[test]
fn an_image_that_the_firmware_starts_is_found_on_its_partition() {
    let host = host();
    std::fs::remove_dir_all(host.place("/sys/firmware/efi/efivars")).unwrap();
    host.efi_variable("StubInfo", "systemd-stub 257");
    host.efi_variable("StubImageIdentifier", "\\EFI\\Linux\\m-6.12.1.efi");
    assert_eq!(host.next(), BUILT);
    assert_eq!(host.apply_sources(&plan()), ["/etc/kernel/cmdline"]);
}

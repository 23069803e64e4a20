//! Arch and Debian with systemd-boot, and images that contain their line.

use super::{Host, NEW, assert_has_plan, plan};
use lowlat_host::Reading;

const ARCH: &str = "title   Arch Linux\nlinux   /vmlinuz-linux\ninitrd  /amd-ucode.img\ninitrd  /initramfs-linux.img\n\
    options root=PARTUUID=14420948-2cea rw  quiet\n";

pub(super) fn arch() -> Host {
    let host = Host::new(&[
        ("/boot/loader/loader.conf", "# timeout 3\ndefault arch.conf\ntimeout 3\n"),
        ("/boot/loader/entries/arch.conf", ARCH),
        (
            "/boot/loader/entries/arch-fallback.conf",
            &ARCH.replace("initramfs-linux", "initramfs-linux-fallback"),
        ),
        ("/boot/loader/entries/memtest.conf", "title Memtest86+\nefi /EFI/memtest86+/memtest.efi\n"),
        ("/boot/grub/grub.cfg", "menuentry 'left behind' {\n linux /old\n}\n"),
    ]);
    host.efi_variable("LoaderInfo", "systemd-boot 256.7-1-arch");
    host
}

#[test]
fn arch_has_its_entry_edited_and_the_fallback_left_alone() {
    let host = arch();
    assert_eq!(host.loader().name(), "systemd-boot");
    assert_eq!(host.apply_sources(&plan()), ["/boot/loader/entries/arch.conf"]);
    assert_eq!(
        host.read("/boot/loader/entries/arch.conf"),
        ARCH.replace("rw  quiet", &format!("rw quiet {NEW}"))
    );
    assert_eq!(host.next(), format!("root=PARTUUID=14420948-2cea rw quiet {NEW}"));
    assert_eq!(
        host.loader().notes(&host.root(), &plan()),
        [
            "/boot/loader/entries/arch-fallback.conf is unchanged, so it boots as before.",
            "/boot/loader/entries/memtest.conf is unchanged, so it boots as before.",
            "/etc/kernel/cmdline is missing: a kernel installed before the reboot gets the command line of the running one."
        ]
    );
}

#[test]
fn kernels_installed_later_get_the_line_from_their_file() {
    let host = arch();
    host.put("/usr/lib/kernel/cmdline", "root=LABEL=x ro\n");
    assert_eq!(host.apply_sources(&plan()), ["/boot/loader/entries/arch.conf", "/etc/kernel/cmdline"]);
    assert_eq!(host.read("/etc/kernel/cmdline"), format!("root=LABEL=x ro {NEW}\n"));
    host.put("/etc/kernel/cmdline", "root=LABEL=y nohz=off\n");
    assert_eq!(host.apply_sources(&plan()), ["/etc/kernel/cmdline"]);
    assert_eq!(host.read("/etc/kernel/cmdline"), format!("root=LABEL=y {NEW}\n"));
}

#[test]
fn debian_on_two_partitions_boots_its_newest_entry() {
    let host = Host::new(&[
        ("/efi/loader/loader.conf", "timeout 3\n"),
        (
            "/boot/loader/entries/m-6.1.0-18-amd64.conf",
            "title Debian\nversion 6.1.0-18-amd64\nmachine-id m\nsort-key debian\noptions root=/dev/sda ro\nlinux /m/linux\n",
        ),
        (
            "/boot/loader/entries/m-6.1.0-9-amd64+3.conf",
            "title Debian\nversion 6.1.0-9-amd64\nmachine-id m\nsort-key debian\noptions root=/dev/sda old\nlinux /m/linux\n",
        ),
    ]);
    assert_eq!(host.loader().name(), "systemd-boot");
    assert_eq!(host.next(), "root=/dev/sda ro");
    host.efi_variable("LoaderEntryOneShot", "m-6.1.0-9-amd64+3.conf");
    assert_eq!(host.next(), "root=/dev/sda old");
    host.apply_sources(&plan());
    assert_has_plan(&host.next());
}

#[test]
fn an_image_that_holds_its_line_is_told_with_the_next_step() {
    let host = arch();
    host.put("/boot/EFI/Linux/arch-linux.efi", "MZ");
    host.put("/boot/loader/loader.conf", "default arch-linux.efi\n");
    let text = host.refusal(&plan());
    assert!(
        text.starts_with(
            "this host boots the unified kernel image /boot/EFI/Linux/arch-linux.efi, which contains"
        ) && text.contains(NEW)
            && text.contains("mkinitcpio -P"),
        "{text}"
    );
    assert!(matches!(host.loader().next_boot_line(&host.root()), Reading::Unparsable(_)));
    host.put("/boot/loader/loader.conf", "default arch.conf\n");
    host.apply_sources(&plan());
    let notes = host.loader().notes(&host.root(), &plan());
    assert!(
        notes.iter().any(|n| n.starts_with("/boot/EFI/Linux/arch-linux.efi contains its command line")),
        "{notes:?}"
    );
    host.efi_variable("LoaderEntrySelected", "arch-linux.efi");
    assert!(host.refusal(&plan()).contains("arch-linux.efi"), "what was booted counts");
}

#[test]
fn an_image_that_the_firmware_starts_is_told() {
    let host = Host::new(&[("/boot/grub/grub.cfg", "menuentry 'old' {\n linux /old\n}\n")]);
    host.efi_variable("StubInfo", "systemd-stub 255.4");
    host.efi_variable("StubImageIdentifier", "\\EFI\\Linux\\linux.efi");
    assert!(
        host.refusal(&plan()).contains("image /EFI/Linux/linux.efi, which contains"),
        "{}",
        host.refusal(&plan())
    );
}

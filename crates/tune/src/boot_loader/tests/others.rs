//! Silverblue, bootc, extlinux, Raspberry Pi, containers, and hosts on which nothing is found.

use super::{Host, NEW, plan, red_hat::MENU};
use crate::boot_loader::{BootLoaderError, detect};
use lowlat_host::Reading;
use lowlat_settings::change::BootToken;

fn silverblue() -> Host {
    let entry = |version: u32| {
        format!(
            "title Fedora Linux 41 (ostree:{version})\nversion {version}\noptions root=UUID=a rw ostree=/ostree/boot.1/{version}\nlinux /ostree/vmlinuz\n"
        )
    };
    Host::new(&[
        ("/run/ostree-booted", ""),
        ("/usr/bin/rpm-ostree", ""),
        ("/boot/grub2/grub.cfg", MENU),
        ("/boot/loader/entries/ostree-1.conf", &entry(1)),
        ("/boot/loader/entries/ostree-2.conf", &entry(2)),
    ])
}

#[test]
fn silverblue_is_told_the_whole_command() {
    let host = silverblue();
    let mut tokens = plan();
    tokens[1].before = Some("nohz_full=2 nohz-full=3".into());
    tokens[2].before = Some("nohz=off".into());
    tokens.push(BootToken {
        setting: "x".into(),
        name: "dyndbg".into(),
        value: Some("file a +p".into()),
        before: None,
    });
    assert_eq!(
        host.refusal(&tokens),
        "ostree manages the command line of this host; run `rpm-ostree kargs \
         --delete=nohz_full=2 --delete=nohz-full=3 --delete=nohz=off --append=isolcpus=managed_irq,domain,1-7,9-15 \
         --append=nohz_full=1-7,9-15 --append=rcu_nocb_poll '--append=dyndbg=\"file a +p\"'`, then reboot"
            .replace("'--append=dyndbg=\"file a +p\"'", "--append='dyndbg=\"file a +p\"'")
    );
    assert_eq!(host.next(), "root=UUID=a rw ostree=/ostree/boot.1/2");
}

#[test]
fn bootc_without_rpm_ostree_is_told_the_file_of_the_image() {
    let host = silverblue();
    std::fs::remove_file(host.place("/usr/bin/rpm-ostree")).unwrap();
    host.put("/usr/bin/bootc", "");
    let text = host.refusal(&plan());
    assert!(
        text.contains(
            "add `kargs = [\"isolcpus=managed_irq,domain,1-7,9-15\", \"nohz_full=1-7,9-15\", \"rcu_nocb_poll\"]` to \
             /usr/lib/bootc/kargs.d/99-lowlat.toml"
        ),
        "{text}"
    );
}

#[test]
fn what_lowlat_does_not_write_is_told_with_the_line_to_set() {
    let host =
        Host::new(&[("/boot/firmware/cmdline.txt", "console=serial0,115200 root=PARTUUID=x rootwait\n")]);
    assert_eq!(
        host.refusal(&plan()),
        format!(
            "this host boots with the firmware of a Raspberry Pi, which lowlat does not configure; set the kernel \
             parameters manually in /boot/firmware/cmdline.txt: {NEW}, and remove nohz"
        )
    );
    assert_eq!(host.next(), "console=serial0,115200 root=PARTUUID=x rootwait");
    let host = Host::new(&[("/boot/extlinux/extlinux.conf", "DEFAULT linux\n")]);
    assert!(host.refusal(&plan()).contains("boots with extlinux, which lowlat does not configure"));
    assert_eq!(host.loader().next_boot_line(&host.root()), Reading::Absent);
}

#[test]
fn a_host_without_a_boot_loader_is_told_where_was_looked() {
    let host = Host::new(&[]);
    assert_eq!(
        host.refusal(&plan()[..1]),
        "no known boot loader found (searched: no /boot and no /efi); set the kernel parameters manually: \
         isolcpus=managed_irq,domain,1-7,9-15"
    );
    host.put("/boot/vmlinuz", "");
    host.put("/etc/fstab", "# /boot was\nLABEL=x / ext4 rw 0 1\nLABEL=ESP /efi vfat umask=77 0 2\n");
    let text = host.refusal(&plan());
    assert!(text.contains("(searched: /boot; /etc/fstab has /efi, check that it is mounted)"), "{text}");
}

#[test]
fn a_container_is_sent_to_its_host() {
    let told = |path: &str, text: &str| {
        let host = Host::new(&[(path, text)]);
        let error = detect(&host.root()).unwrap_err();
        assert!(matches!(error, BootLoaderError::Container { .. }), "{error}");
        error.to_string()
    };
    assert_eq!(
        told("/run/.containerenv", ""),
        "this is a container (/run/.containerenv), and the command line belongs to the host's kernel; run lowlat on the host"
    );
    assert!(
        told("/proc/1/environ", "PATH=/bin\0container=lxc\0")
            .contains("/proc/1/environ contains container=lxc")
    );
}

#[test]
fn files_of_any_bytes_are_refused_and_nothing_panics() {
    for path in
        ["/boot/grub/grub.cfg", "/boot/loader/entries/x.conf", "/etc/default/grub", "/boot/grub2/grubenv"]
    {
        let host = super::red_hat::red_hat_8();
        host.put("/boot/loader/entries/x.conf", "linux /x\noptions a\n");
        host.put(path, [0xff, 0xfe, 0, b'\n']);
        if let Ok(loader) = detect(&host.root()) {
            let _ = loader.sources(&host.root(), &plan());
            let _ = loader.next_boot_line(&host.root());
            let _ = loader.notes(&host.root(), &plan());
        }
    }
    let host = super::red_hat::red_hat_8();
    host.put("/boot/loader/entries/x.conf", [b'l', 0xff]);
    let error = detect(&host.root()).unwrap_err().to_string();
    assert!(error.starts_with("/boot/loader/entries/x.conf: byte 1 is not UTF-8"), "{error}");
}

//! Silverblue, bootc, extlinux, Raspberry Pi, containers, and hosts without a known boot loader.

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
fn ostree_alone_has_another_command() {
    let host = silverblue();
    std::fs::remove_file(host.place("/usr/bin/rpm-ostree")).unwrap();
    let mut tokens = plan();
    tokens[2].before = Some("nohz=off".into());
    assert_eq!(
        host.refusal(&tokens),
        "ostree manages the command line of this host; run `ostree admin instutil set-kargs --merge \
         --replace=isolcpus=managed_irq,domain,1-7,9-15 --replace=nohz_full=1-7,9-15 --replace=rcu_nocb_poll`, then remove \
         nohz=off from the new entry, then reboot"
    );
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
             parameters manually in /boot/firmware/cmdline.txt: {NEW}, and remove nohz; then reboot"
        )
    );
    assert_eq!(host.next(), "console=serial0,115200 root=PARTUUID=x rootwait");
    let host = Host::new(&[("/boot/extlinux/extlinux.conf", "DEFAULT linux\n")]);
    assert!(host.refusal(&plan()).contains("boots with extlinux, which lowlat does not configure"));
    assert_eq!(host.loader().next_boot_line(&host.root()), Reading::Absent);
}

/// The files that show a boot loader, its name, and words on where to set the command line.
type Named<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

#[test]
fn each_boot_loader_that_lowlat_does_not_write_is_named_with_its_place() {
    let entry = "title x\nlinux /x\noptions root=/dev/x\n";
    let grub = "menuentry 'left behind' {\n linux /old\n}\n";
    let cases: &[Named<'_>] = &[
        (&[("/boot/limine.conf", "/x\n cmdline: a\n")], "Limine", &["/boot/limine.conf"]),
        (
            &[("/boot/efi/limine.conf", ""), ("/boot/loader/entries/x.conf", entry)],
            "Limine",
            &["efi/limine.conf"],
        ),
        (
            &[("/etc/default/limine", ""), ("/boot/limine.conf", "")],
            "Limine",
            &["KERNEL_CMDLINE", "limine-update"],
        ),
        (&[("/boot/refind_linux.conf", "\"a\" \"root=x\"\n")], "rEFInd", &["/boot/refind_linux.conf"]),
        (&[("/boot/efi/EFI/refind/refind.conf", "")], "rEFInd", &["/boot/refind_linux.conf", "refind.conf"]),
        (
            &[("/etc/kernel/proxmox-boot-uuids", "AB-CD\n"), ("/boot/grub/grub.cfg", grub)],
            "proxmox-boot-tool",
            &["/etc/kernel/cmdline", "proxmox-boot-tool refresh"],
        ),
        (
            &[("/etc/zipl.conf", ""), ("/boot/loader/entries/x.conf", entry)],
            "zipl",
            &["/boot/loader/entries", "`zipl`"],
        ),
        (&[("/etc/zipl.conf", "[defaultboot]\n")], "zipl", &["parameters="]),
        (
            &[("/etc/os-release", "NAME=NixOS\nID=nixos\n"), ("/boot/grub/grub.cfg", grub)],
            "NixOS",
            &["boot.kernelParams", "nixos-rebuild boot"],
        ),
        (&[("/etc/os-release", "ID=guix\n")], "Guix System", &["kernel-arguments"]),
        (&[("/boot/extlinux/extlinux.conf", "")], "extlinux", &["/boot/extlinux/extlinux.conf"]),
        (
            &[("/boot/extlinux/extlinux.conf", ""), ("/etc/default/u-boot", "")],
            "extlinux",
            &["u-boot-update"],
        ),
        (&[("/boot/armbianEnv.txt", "")], "U-Boot", &["/boot/armbianEnv.txt"]),
        (&[("/boot/grub/menu.lst", "title x\n")], "GRUB legacy", &["/boot/grub/menu.lst"]),
        (&[("/etc/lilo.conf", "")], "LILO", &["run `lilo`"]),
    ];
    for (files, name, pieces) in cases {
        let host = Host::new(files);
        let text = host.refusal(&plan());
        assert!(text.starts_with(&format!("this host boots with {name}")), "{files:?}: {text}");
        for piece in pieces.iter().chain(&["set the kernel parameters manually", NEW, "reboot"]) {
            assert!(text.contains(piece), "{files:?}: {piece}: {text}");
        }
        assert_eq!(host.loader().generator(&host.root()), None, "{files:?}");
    }
}

#[test]
fn the_firmware_s_variable_decides_between_the_files_of_several_boot_loaders() {
    let host = Host::new(&[
        ("/boot/grub/grub.cfg", "menuentry 'a' {\n linux /a\n}\n"),
        ("/boot/efi/limine.conf", ""),
        ("/boot/refind_linux.conf", ""),
    ]);
    assert!(host.loader().name().starts_with("GRUB"));
    for (info, name) in [("Limine 9.3.0", "Limine"), ("rEFInd 0.14.2", "rEFInd"), ("GRUB 2.12", "GRUB")] {
        host.efi_variable("LoaderInfo", info);
        assert_eq!(host.loader().name(), name);
    }
    host.efi_variable("StubInfo", "systemd-stub 257");
    assert_eq!(host.loader().name(), "unified kernel image", "started by GRUB");
}

#[test]
fn nixos_shows_the_line_of_the_generation_that_boots() {
    let host = Host::new(&[
        ("/etc/NIXOS", ""),
        ("/boot/loader/loader.conf", "default nixos-generation-7.conf\n"),
        (
            "/boot/loader/entries/nixos-generation-7.conf",
            "linux /a\noptions init=/nix/store/7/init nohz_full=1\n",
        ),
        ("/boot/loader/entries/nixos-generation-6.conf", "linux /a\noptions init=/nix/store/6/init\n"),
    ]);
    assert_eq!(host.next(), "init=/nix/store/7/init nohz_full=1");
    assert_eq!(host.loader().entry_lines(&host.root()), []);
}

#[test]
fn a_host_without_a_boot_loader_is_told_where_was_looked() {
    let host = Host::new(&[]);
    assert_eq!(
        host.refusal(&plan()[..1]),
        "no known boot loader found (searched: no /boot and no /efi); set the kernel parameters manually: \
         isolcpus=managed_irq,domain,1-7,9-15; then reboot"
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
        told("/run/secrets/kubernetes.io/serviceaccount/token", "").contains("(/run/secrets/kubernetes.io)")
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

#[test]
fn a_kernel_that_ignores_the_boot_loader_s_line_is_refused_with_the_reason() {
    let host = super::systemd_boot::arch();
    host.put("/proc/sys/kernel/osrelease", "6.1\n");
    let config = "CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE=\"root=/dev/vda nohz_full=1\"\n";
    host.put("/boot/config-6.1", config);
    assert_eq!(host.loader().name(), "systemd-boot", "the boot loader's words follow");
    assert_eq!(
        super::super::built_in_note(&host.root(), &plan()).unwrap(),
        "The kernel was built with a command line (CONFIG_CMDLINE, /boot/config-6.1:2), which comes before the boot \
         loader's and stays: nohz_full=1 (the kernel uses the first and ignores the others)."
    );
    assert_eq!(super::super::built_in_note(&host.root(), &plan()[..1]), None);
    host.put("/boot/config-6.1", format!("{config}CONFIG_CMDLINE_OVERRIDE=y\n"));
    let text = host.refusal(&plan());
    assert!(
        text.starts_with("this kernel ignores the boot loader's command line") && text.contains(NEW),
        "{text}"
    );
    assert!(text.contains("/boot/config-6.1:2"), "{text}");
    assert_eq!(host.next(), "root=/dev/vda nohz_full=1");
}

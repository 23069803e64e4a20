//! SUSE and Arch: GRUB's generator without drop-ins.

use super::{Host, NEW, Said, assert_has_plan, plan};

const DEFAULTS: &str = "# If you change this file, run 'grub2-mkconfig -o /boot/grub2/grub.cfg' afterwards\n\
    GRUB_DISTRIBUTOR=\nGRUB_DEFAULT=saved\nGRUB_CMDLINE_LINUX_DEFAULT=\"splash=silent mitigations=auto quiet security=apparmor\"\n\
    GRUB_CMDLINE_LINUX=\"\"\n";

fn menu(line: &str) -> String {
    format!(
        "if [ \"${{next_entry}}\" ] ; then\n   set default=\"${{next_entry}}\"\nelse\n   set default=\"${{saved_entry}}\"\nfi\n\
         ### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'SLES 15-SP6'  --class sles --class os $menuentry_id_option 'gnulinux-simple-6b' {{\n\
         \tload_video\n\tlinux\t/boot/vmlinuz-6.4.0 root=UUID=6b  ${{extra_cmdline}} {line}\n}}\n### END /etc/grub.d/10_linux ###\n"
    )
}

fn suse() -> Host {
    Host::new(&[
        ("/etc/os-release", "ID=\"sles\"\n"),
        ("/sys/firmware/efi/fw_platform_size", "64\n"),
        (
            "/boot/efi/EFI/sles/grub.cfg",
            "set btrfs_relative_path=\"yes\"\nsearch --fs-uuid --set=root 6b\nset prefix=(${root})/boot/grub2\nsource \"${prefix}/grub.cfg\"\n",
        ),
        ("/usr/sbin/grub2-mkconfig", ". ${sysconfdir}/default/grub\n"),
        ("/boot/grub2/grub.cfg", &menu("splash=silent mitigations=auto quiet security=apparmor")),
        ("/etc/default/grub", DEFAULTS),
    ])
}

#[test]
fn suse_has_one_line_edited_and_a_new_menu_where_the_stub_leads() {
    let host = suse();
    assert_eq!(host.loader().name(), "GRUB");
    assert_eq!(host.apply_sources(&plan()), ["/etc/default/grub"]);
    let line = format!("splash=silent mitigations=auto quiet security=apparmor {NEW}");
    assert_eq!(
        host.read("/etc/default/grub"),
        DEFAULTS.replace("splash=silent mitigations=auto quiet security=apparmor", &line)
    );
    let said = Said { stdout: menu(&line), expected: "grub2-mkconfig", ..Said::default() };
    let changes = host.loader().generated(&host.root(), &said).unwrap();
    assert_eq!(changes[0].path, "/boot/grub2/grub.cfg");
    host.apply(&changes);
    assert_has_plan(&host.next());
    assert_eq!(host.loader().generated(&host.root(), &said).unwrap(), changes);
}

#[test]
fn defaults_that_only_a_shell_understands_are_refused_with_the_line_to_set() {
    let host = suse();
    host.put("/etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet \\\nsplash\"\n");
    let text = host.refusal(&plan());
    assert!(
        text.starts_with("/etc/default/grub: line 1: found \"GRUB_CMDLINE_LINUX_DEFAULT=")
            && text.ends_with(&format!("{NEW}, and remove nohz")),
        "{text}"
    );
}

#[test]
fn arch_calls_its_programs_without_the_number() {
    let host = suse();
    std::fs::remove_dir_all(host.place("/boot/grub2")).unwrap();
    host.put("/boot/grub/grub.cfg", menu("quiet"));
    host.apply_sources(&plan());
    let line = format!("splash=silent mitigations=auto quiet security=apparmor {NEW}");
    let said = Said { stdout: menu(&line), expected: "grub-mkconfig", ..Said::default() };
    let changes = host.loader().generated(&host.root(), &said).unwrap();
    assert_eq!(changes[0].path, "/boot/grub/grub.cfg");
}

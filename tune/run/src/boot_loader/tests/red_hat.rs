//! Red Hat 8, 9 and 10, Fedora: entries of the Boot Loader Specification that GRUB reads.

use super::{Host, NEW, Said, assert_has_plan, plan, token};
use crate::boot_loader::FileChange;
use lowlat_undo::State;

const MACHINE: &str = "3a17f34dc2694acda37caa478a339408";
pub(super) const MENU: &str = "### BEGIN /etc/grub.d/00_header ###\nload_env -f ($root)/grub2/grubenv\n\
    if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\nelse\n   \
    set default=\"${saved_entry}\"\nfi\n### END /etc/grub.d/00_header ###\n\n### BEGIN /etc/grub.d/10_linux ###\n\
    if [ -z \"${kernelopts}\" ]; then\n  set kernelopts=\"root=/dev/mapper/rhel-root ro crashkernel=auto \"\nfi\n\n\
    insmod blscfg\nblscfg\n### END /etc/grub.d/10_linux ###\n";

pub(super) fn block(lines: &str) -> Vec<u8> {
    let mut block = format!("# GRUB Environment Block\n{lines}").into_bytes();
    block.resize(1024, b'#');
    block
}

fn entry(version: &str, options: &str) -> String {
    format!(
        "title Red Hat Enterprise Linux ({version}) 8.10 (Ootpa)\nversion {version}\nlinux /vmlinuz-{version}\n\
         initrd /initramfs-{version}.img $tuned_initrd\noptions {options}\nid rhel-20240101-{version}\n\
         grub_users $grub_users\ngrub_arg --unrestricted\ngrub_class kernel\n"
    )
}

fn path(version: &str) -> String {
    format!("/boot/loader/entries/{MACHINE}-{version}.conf")
}

const OLD: &str = "4.18.0-513.5.1.el8_9.x86_64";
const NEWER: &str = "4.18.0-553.el8_10.x86_64";
const RESCUE: &str = "0-rescue";
const KERNELOPTS: &str =
    "root=/dev/mapper/rhel-root ro crashkernel=auto nohz=off rd.lvm.lv=rhel/root rhgb quiet ";

/// Red Hat 8 on EFI: the block of variables is on the EFI partition, and a link leads to it.
pub(super) fn red_hat_8() -> Host {
    let host = Host::new(&[
        ("/etc/os-release", "ID=\"rhel\"\nVERSION_ID=\"8.10\"\n"),
        ("/sys/firmware/efi/fw_platform_size", "64\n"),
        ("/boot/efi/EFI/redhat/grub.cfg", MENU),
        (
            "/etc/default/grub",
            "GRUB_CMDLINE_LINUX=\"crashkernel=auto rd.lvm.lv=rhel/root rhgb quiet\"\nGRUB_ENABLE_BLSCFG=true\n",
        ),
    ]);
    let lines = format!("saved_entry={MACHINE}-{NEWER}\nkernelopts={KERNELOPTS}\nboot_success=0\n");
    host.put("/boot/efi/EFI/redhat/grubenv", block(&lines));
    host.chmod("/boot/efi/EFI/redhat/grubenv", 0o700);
    host.link("/boot/grub2/grubenv", "../efi/EFI/redhat/grubenv");
    for version in [OLD, NEWER, RESCUE] {
        host.put(&path(version), entry(version, "$kernelopts $tuned_params"));
    }
    host
}

/// The note on programs that write the entries again.
const SET_TOO: &str = "`grub2-mkconfig` and kernels installed later take their parameters from /etc/default/grub, and \
    from /etc/kernel/cmdline if it exists: they are set there too.";

#[test]
fn red_hat_8_keeps_its_line_in_one_variable() {
    let host = red_hat_8();
    assert_eq!(host.loader().name(), "GRUB (Boot Loader Specification)");
    assert_eq!(host.next(), format!("BOOT_IMAGE=/vmlinuz-{NEWER} {}", KERNELOPTS.trim_end()));
    let changes = host.loader().sources(&host.root(), &plan()).unwrap();
    let FileChange { path, variable, new: State::Value(_) } = &changes[0] else { panic!("{changes:?}") };
    assert_eq!((path.as_str(), *variable), ("/boot/efi/EFI/redhat/grubenv", Some("kernelopts")));

    assert_eq!(host.apply_sources(&plan()), ["/boot/efi/EFI/redhat/grubenv", "/etc/default/grub"]);
    let lines = format!(
        "saved_entry={MACHINE}-{NEWER}\n\
         kernelopts=root=/dev/mapper/rhel-root ro crashkernel=auto rd.lvm.lv=rhel/root rhgb quiet {NEW} \nboot_success=0\n"
    );
    assert_eq!(host.read("/boot/grub2/grubenv").into_bytes(), block(&lines), "the space at its end stays");
    assert_eq!(
        host.read("/etc/default/grub"),
        format!(
            "GRUB_CMDLINE_LINUX=\"crashkernel=auto rd.lvm.lv=rhel/root rhgb quiet {NEW}\"\nGRUB_ENABLE_BLSCFG=true\n"
        )
    );
    assert_has_plan(&host.next());
    assert_eq!(host.loader().generated(&host.root(), &Said::default()).unwrap(), []);
    assert_eq!(
        host.loader().notes(&host.root(), &plan()),
        [
            format!(
                "{} is unchanged, but reads its command line from the variable kernelopts, which changes.",
                super::red_hat::path(RESCUE)
            ),
            SET_TOO.to_owned()
        ]
    );
}

#[test]
fn what_an_entry_says_beside_the_variable_does_not_win() {
    let host = red_hat_8();
    host.put(&path(OLD), entry(OLD, "$kernelopts nohz-full=3 $tuned_params"));
    host.put(&path(NEWER), entry(NEWER, "root=/dev/mapper/rhel-root ro nohz=off quiet $tuned_params"));
    host.apply_sources(&plan());
    assert_eq!(host.read(&path(OLD)), entry(OLD, "$kernelopts $tuned_params"));
    assert_eq!(
        host.read(&path(NEWER)),
        entry(NEWER, &format!("root=/dev/mapper/rhel-root ro quiet $tuned_params {NEW}"))
    );
    assert_has_plan(&host.next());
}

#[test]
fn a_block_that_lacks_the_variable_gets_the_whole_line_of_the_menu() {
    let host = red_hat_8();
    host.put("/boot/efi/EFI/redhat/grubenv", block("saved_entry=0\nkernelopts=\n"));
    host.apply_sources(&plan());
    assert!(
        host.read("/boot/grub2/grubenv")
            .contains(&format!("\nkernelopts=root=/dev/mapper/rhel-root ro crashkernel=auto {NEW} \n"))
    );
    host.put("/boot/efi/EFI/redhat/grub.cfg", MENU.replace("set kernelopts=", "set other="));
    host.put("/boot/efi/EFI/redhat/grubenv", block("saved_entry=0\n"));
    let text = host.refusal(&plan());
    assert!(
        text.starts_with("/boot/efi/EFI/redhat/grubenv: found no kernelopts"),
        "never a line without root=: {text}"
    );
}

#[test]
fn a_block_that_is_too_small_is_refused_with_its_sizes() {
    let host = red_hat_8();
    let before = host.read("/boot/grub2/grubenv");
    let text = host.refusal(&[token("isolcpus", Some(&"1,".repeat(500)))]);
    assert!(
        text.contains("its variables need 1219 bytes, and it has 1024")
            && text.contains("replace $kernelopts"),
        "{text}"
    );
    assert_eq!(host.read("/boot/grub2/grubenv"), before);
    host.put("/boot/efi/EFI/redhat/grubenv", &before[..1000]);
    assert!(host.refusal(&plan()).contains("found 1000 bytes, expected 1024"), "{}", host.refusal(&plan()));
}

/// Red Hat 9 and Fedora on BIOS: every entry has its own line.
pub(super) fn red_hat_9() -> Host {
    let host = Host::new(&[
        ("/etc/os-release", "ID=\"rhel\"\nVERSION_ID=\"9.4\"\n"),
        ("/boot/grub2/grub.cfg", MENU),
        ("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"rd.lvm.lv=rhel/root\"\nGRUB_ENABLE_BLSCFG=true\n"),
        ("/etc/kernel/cmdline", "root=/dev/mapper/rhel-root ro rd.lvm.lv=rhel/root\n"),
    ]);
    host.put("/boot/grub2/grubenv", block(&format!("saved_entry={MACHINE}-5.14.0-427.13.1.el9_4.x86_64\n")));
    for version in ["5.14.0-427.13.1.el9_4.x86_64", "5.14.0-362.8.1.el9_3.x86_64", RESCUE] {
        let text = entry(
            version,
            "root=/dev/mapper/rhel-root ro isolcpus=3 rd.lvm.lv=rhel/root isolcpus=4 $tuned_params",
        );
        host.put(&path(version), text);
    }
    host
}

#[test]
fn red_hat_9_and_fedora_have_a_line_in_each_entry() {
    let host = red_hat_9();
    let rescue = host.read(&path(RESCUE));
    assert_eq!(
        host.apply_sources(&plan()),
        [
            path("5.14.0-362.8.1.el9_3.x86_64"),
            path("5.14.0-427.13.1.el9_4.x86_64"),
            "/etc/default/grub".into(),
            "/etc/kernel/cmdline".into()
        ]
    );
    assert_eq!(
        host.read(&path("5.14.0-362.8.1.el9_3.x86_64")),
        entry(
            "5.14.0-362.8.1.el9_3.x86_64",
            "root=/dev/mapper/rhel-root ro isolcpus=managed_irq,domain,1-7,9-15 rd.lvm.lv=rhel/root $tuned_params \
             nohz_full=1-7,9-15 rcu_nocb_poll"
        )
    );
    assert_eq!(
        host.read("/etc/kernel/cmdline"),
        format!("root=/dev/mapper/rhel-root ro rd.lvm.lv=rhel/root {NEW}\n")
    );
    assert_eq!(host.read(&path(RESCUE)), rescue);
    assert_eq!(
        host.loader().notes(&host.root(), &plan()),
        [format!("{} is unchanged, so it boots as before.", path(RESCUE)), SET_TOO.to_owned()]
    );
    assert_has_plan(&host.next());
}

#[test]
fn a_kernel_installed_since_shows_in_the_next_line() {
    let host = red_hat_9();
    host.apply_sources(&plan());
    let version = "5.14.0-503.el9.x86_64";
    host.put(&path(version), entry(version, "root=/dev/mapper/rhel-root ro"));
    host.put("/boot/grub2/grubenv", block(&format!("saved_entry={MACHINE}-{version}\n")));
    assert_eq!(host.next(), format!("BOOT_IMAGE=/vmlinuz-{version} root=/dev/mapper/rhel-root ro"));
    host.put("/boot/grub2/grubenv", block("saved_entry=gone\n"));
    assert_eq!(
        host.next(),
        format!("BOOT_IMAGE=/vmlinuz-{version} root=/dev/mapper/rhel-root ro"),
        "the newest"
    );
}

#[test]
fn parameters_of_tuned_in_the_block_are_told() {
    let host = red_hat_9();
    host.put("/boot/grub2/grubenv", block("saved_entry=0\ntuned_params=skew_tick=1 nohz_full=2\n"));
    host.apply_sources(&plan());
    let notes = host.loader().notes(&host.root(), &plan());
    assert!(notes.iter().any(|note| note.contains("sets nohz_full=2")), "{notes:?}");
    assert!(host.next().contains("skew_tick=1 nohz_full=2"), "and stands in the next line: {}", host.next());
}

#[test]
fn a_line_of_defaults_that_only_a_shell_understands_is_left_alone_and_told() {
    let host = red_hat_9();
    host.put("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"$(cat /x)\"\n");
    host.apply_sources(&plan());
    assert_eq!(host.read("/etc/default/grub"), "GRUB_CMDLINE_LINUX=\"$(cat /x)\"\n");
    let notes = host.loader().notes(&host.root(), &plan());
    assert!(
        notes.iter().any(|note| note.starts_with("/etc/default/grub is unchanged (line 1:")
            && note.contains("`grub2-mkconfig` may write the entries again without these parameters")),
        "{notes:?}"
    );
    std::fs::remove_file(host.place("/etc/default/grub")).unwrap();
    let notes = host.loader().notes(&host.root(), &plan());
    assert!(notes.iter().any(|note| note.starts_with("/etc/default/grub is missing")), "{notes:?}");
}

#[test]
fn kernels_installed_later_take_the_vendor_s_line_with_the_parameters() {
    let host = red_hat_9();
    std::fs::remove_file(host.place("/etc/kernel/cmdline")).unwrap();
    host.put("/usr/lib/kernel/cmdline", "root=LABEL=x ro\n");
    host.apply_sources(&plan());
    assert_eq!(host.read("/etc/kernel/cmdline"), format!("root=LABEL=x ro {NEW}\n"));
}

#[test]
fn a_line_that_the_kernel_would_cut_off_is_refused() {
    let text = red_hat_9().refusal(&[token("isolcpus", Some(&"1,".repeat(1000)))]);
    assert!(
        text.contains(".conf: the command line would have 2107 bytes")
            && text.contains("truncates it after 2047"),
        "{text}"
    );
}

#[test]
fn entries_for_rescue_alone_are_not_changed() {
    let host = red_hat_9();
    for version in ["5.14.0-427.13.1.el9_4.x86_64", "5.14.0-362.8.1.el9_3.x86_64"] {
        std::fs::remove_file(host.place(&path(version))).unwrap();
    }
    assert!(host.refusal(&plan()).contains("found rescue entries only"));
}

#[test]
fn red_hat_7_has_one_file_and_a_menu_on_the_efi_partition() {
    let menu = |line: &str| {
        format!(
            "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Red Hat (3.10.0)' --unrestricted $menuentry_id_option 'gnulinux-3.10.0' {{\n\
             \tlinuxefi /vmlinuz-3.10.0 root=/dev/mapper/rhel-root ro {line}\n}}\n### END /etc/grub.d/10_linux ###\n"
        )
    };
    let host = Host::new(&[
        ("/etc/os-release", "ID=\"rhel\"\n"),
        ("/sys/firmware/efi/fw_platform_size", "64\n"),
        ("/boot/efi/EFI/BOOT/grub.cfg", "configfile x\n"),
        ("/boot/efi/EFI/redhat/grub.cfg", &menu("quiet")),
        ("/boot/grub2/grubenv", ""),
        ("/etc/default/grub", "# mine\nGRUB_CMDLINE_LINUX=\"quiet\"\n"),
    ]);
    assert_eq!(host.loader().name(), "GRUB");
    assert_eq!(host.apply_sources(&plan()), ["/etc/default/grub"]);
    assert_eq!(host.read("/etc/default/grub"), format!("# mine\nGRUB_CMDLINE_LINUX=\"quiet {NEW}\"\n"));
    let said = Said { stdout: menu(&format!("quiet {NEW}")), expected: "grub2-mkconfig", ..Said::default() };
    let changes = host.loader().generated(&host.root(), &said).unwrap();
    assert_eq!(changes[0].path, "/boot/efi/EFI/redhat/grub.cfg");
    host.apply(&changes);
    assert_has_plan(&host.next());
    let said = Said { stdout: menu("quiet"), expected: "grub2-mkconfig", ..Said::default() };
    let error = host.loader().generated(&host.root(), &said).unwrap_err().to_string();
    assert!(error.contains("\"Red Hat (3.10.0)\": nohz_full=1-7,9-15 is missing"), "{error}");
}

#[test]
fn fallback_counting_boots_the_second_entry_only_after_failed_boots() {
    let host = red_hat_9();
    let counting = "if [ -n \"${boot_counter}\" -a \"${boot_success}\" = \"0\" ]; then\n  if [ \"${boot_counter}\" = \"0\" \
        -o \"${boot_counter}\" = \"-1\" ]; then\n    set default=1\n    set boot_counter=-1\n  else\n    \
        decrement boot_counter\n  fi\n  save_env boot_counter\nfi\n";
    host.put("/boot/grub2/grub.cfg", [MENU, counting].concat());
    let newest = "BOOT_IMAGE=/vmlinuz-5.14.0-427.13.1.el9_4.x86_64";
    let saved = format!("saved_entry={MACHINE}-5.14.0-427.13.1.el9_4.x86_64\n");
    for (counter, image) in [
        ("", newest),
        ("boot_success=0\n", newest),
        ("boot_success=0\nboot_counter=2\n", newest),
        ("boot_success=1\nboot_counter=0\n", newest),
        ("boot_success=0\nboot_counter=0\n", "BOOT_IMAGE=/vmlinuz-5.14.0-362.8.1.el9_3.x86_64"),
    ] {
        host.put("/boot/grub2/grubenv", block(&[saved.as_str(), counter].concat()));
        assert!(host.next().starts_with(&format!("{image} ")), "{counter:?}: {}", host.next());
    }
}

#[test]
fn an_entry_that_depends_on_a_file_elsewhere_is_not_known() {
    let host = red_hat_9();
    host.put("/boot/grub2/grub.cfg", ["source (hd1,gpt1)/other.cfg\n", MENU].concat());
    let reading = host.loader().next_boot_line(&host.root());
    assert!(matches!(&reading, lowlat_host::Reading::Unparsable(_)), "{reading:?}");
    assert!(reading.to_string().contains("(hd1,gpt1)/other.cfg, which could not be read"), "{reading}");
}

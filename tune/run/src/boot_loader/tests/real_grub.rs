//! The real `grub-mkconfig` and `grub-script-check` of this machine, with a host's files mounted over its own in a
//! private mount namespace. Nothing on the machine is written.

use super::{Host, assert_has_plan, plan, token};
use crate::{Outcome, Programs, SystemPrograms};
use lowlat_host::cmdline::CommandLine;
use lowlat_plan::boot_files::grubenv::GrubEnv;
use lowlat_settings::change::BootToken;
use std::{fs, io};

/// Runs the generator with a host's /etc/default and /boot in place of the machine's.
#[derive(Debug)]
struct Mounted<'a>(&'a Host);

impl Programs for Mounted<'_> {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome> {
        let place = |path: &str| self.0.place(path).display().to_string();
        let mount = "mount --bind \"$1\" /etc/default && mount --bind \"$2\" /boot && shift 2 && exec \"$@\"";
        let (defaults, boot) = (place("/etc/default"), place("/boot"));
        let all = [&["-rm", "sh", "-c", mount, "sh", &defaults, &boot, program], arguments].concat();
        SystemPrograms.run("unshare", &all)
    }

    fn run_with_input(&self, program: &str, arguments: &[&str], input: &[u8]) -> io::Result<Outcome> {
        SystemPrograms.run_with_input(program, arguments, input)
    }
}

/// A host with the machine's generator; none if the machine has none or does not allow namespaces.
fn host(defaults: &str) -> Option<Host> {
    let Ok(generator) = fs::read_to_string("/usr/sbin/grub-mkconfig") else {
        eprintln!("skipped: no /usr/sbin/grub-mkconfig here; Debian's package grub2-common has it");
        return None;
    };
    let may_mount = SystemPrograms.run("unshare", &["-rm", "sh", "-c", "mount --bind /proc/self /mnt"]);
    if !may_mount.as_ref().is_ok_and(|outcome| outcome.is_success) {
        eprintln!("skipped: this process may not mount in a namespace of its own: {may_mount:?}");
        return None;
    }
    let host = Host::new(&[
        ("/etc/debian_version", "12\n"),
        ("/usr/sbin/grub-mkconfig", &generator),
        ("/etc/default/grub", defaults),
        ("/boot/vmlinuz-6.1.0-18-amd64", "kernel"),
        ("/boot/initrd.img-6.1.0-18-amd64", "initrd"),
        ("/boot/vmlinuz-6.1.0-9-amd64", "kernel"),
        ("/boot/grub/grub.cfg", ""),
    ]);
    let menu = Mounted(&host).run("grub-mkconfig", &[]).unwrap();
    assert!(menu.is_success, "{}", menu.stderr);
    host.put("/boot/grub/grub.cfg", menu.stdout);
    Some(host)
}

/// Sets the tokens, and returns the lines of all entries: usual ones first, then recovery entries.
fn lines(host: &Host, tokens: &[BootToken]) -> (Vec<String>, Vec<String>) {
    host.apply_sources(tokens);
    let changes = host.loader().generated(&host.root(), &Mounted(host)).unwrap();
    host.apply(&changes);
    assert_eq!(host.loader().generated(&host.root(), &Mounted(host)).unwrap(), changes);
    let text = host.read("/boot/grub/grub.cfg");
    let all = text.lines().filter_map(|line| line.trim_start().strip_prefix("linux\t"));
    all.map(str::to_owned).partition(|line| !CommandLine::parse(line).has("single"))
}

#[test]
fn every_usual_entry_gets_the_line_and_recovery_stays_stock() {
    let Some(host) = host(
        "GRUB_DEFAULT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet nohz_full=2\"\n\
         GRUB_CMDLINE_LINUX=\"console=ttyS0 isolcpus=3\"\n",
    ) else {
        return;
    };
    let stock = host.read("/boot/grub/grub.cfg");
    let (usual, recovery) = lines(&host, &plan());
    assert_eq!((usual.len(), recovery.len()), (3, 2), "{usual:?} {recovery:?}");
    for line in &usual {
        assert_has_plan(line);
    }
    for line in usual.iter().chain(&recovery) {
        assert!(line.contains(" root=") && CommandLine::parse(line).has("console"), "{line}");
    }
    assert!(
        recovery.iter().all(|line| !line.contains("nohz_full") && !line.contains("isolcpus")),
        "{recovery:?}"
    );
    assert_has_plan(&host.next());
    assert!(host.next().starts_with("BOOT_IMAGE="), "{}", host.next());

    // Without the drop-in, the menu is byte for byte as before.
    fs::remove_file(host.place("/etc/default/grub.d/99-zz-lowlat.cfg")).unwrap();
    assert_eq!(String::from_utf8(Mounted(&host).run("grub-mkconfig", &[]).unwrap().stdout).unwrap(), stock);
}

#[test]
fn cloud_settings_crash_kernels_and_quoted_values_survive() {
    let Some(host) = host("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n") else { return };
    host.put(
        "/etc/default/grub.d/50-cloudimg-settings.cfg",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"console=tty1 console=ttyS0 nohz=off\"\n",
    );
    host.put(
        "/etc/default/grub.d/kdump-tools.cfg",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=512M-:192M\"\n",
    );
    let tokens = [plan(), vec![token("dyndbg", Some("file a +p; file b -p"))]].concat();
    let (usual, _) = lines(&host, &tokens);
    assert_eq!(usual.len(), 3);
    let next = host.next();
    assert_eq!(lowlat_plan::boot_files::missing(&next, &tokens), [""; 0], "{next}");
    let line = CommandLine::parse(&next);
    assert_eq!(line.all("console").collect::<Vec<_>>(), [Some("tty1"), Some("ttyS0")]);
    assert_eq!(line.last("crashkernel"), Some("512M-:192M"));
    assert_eq!(line.last("dyndbg"), Some("file a +p; file b -p"));
}

#[test]
fn no_variable_set_at_all_is_enough() {
    let Some(host) = host("GRUB_DEFAULT=0\n") else { return };
    let (usual, _) = lines(&host, &plan());
    for line in &usual {
        assert_has_plan(line);
    }
}

#[test]
fn a_lone_double_dash_of_every_entry_is_found_out() {
    let Some(host) = host("GRUB_CMDLINE_LINUX=\"ro -- init_argument\"\n") else { return };
    host.apply_sources(&plan());
    let error = host.loader().generated(&host.root(), &Mounted(&host)).unwrap_err();
    assert!(error.to_string().starts_with("cannot use the menu that"), "{error}");
    assert!(error.to_string().contains("is missing"), "{error}");
}

#[test]
fn a_syntax_error_of_the_menu_is_found_by_grubs_own_checker() {
    let Some(host) = host("GRUB_DEFAULT=0\n") else { return };
    let checked = Mounted(&host).run_with_input("grub-script-check", &[], b"menuentry 'x' {\n").unwrap();
    assert!(!checked.is_success, "an open brace");
    host.put("/etc/default/grub", "GRUB_TIMEOUT='5; fi'\n");
    host.apply_sources(&plan());
    let error = host.loader().generated(&host.root(), &Mounted(&host)).unwrap_err().to_string();
    assert!(error.contains("grub-script-check reported"), "{error}");
}

#[test]
fn grubs_own_editor_reads_the_block_that_lowlat_writes_and_writes_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grubenv");
    let name = path.display().to_string();
    let edit =
        |arguments: &[&str]| SystemPrograms.run("grub-editenv", &[&[name.as_str()], arguments].concat());
    if let Err(error) = edit(&["create"]) {
        eprintln!("skipped: grub-editenv cannot be run ({error}); Debian's package grub-common has it");
        return;
    }
    for set in ["saved_entry=x", "kernelopts=root=/dev/sda ro ", "boot_success=0"] {
        assert!(edit(&["set", set]).unwrap().is_success);
    }
    let value = "root=/dev/sda ro nohz_full=1-7,9-15 a=\\b ";
    let ours = GrubEnv::parse(&fs::read(&path).unwrap()).unwrap().with("kernelopts", value).unwrap();
    assert!(edit(&["set", &format!("kernelopts={value}")]).unwrap().is_success);
    assert_eq!(
        String::from_utf8(fs::read(&path).unwrap()).unwrap(),
        String::from_utf8(ours.clone()).unwrap()
    );
    fs::write(&path, &ours).unwrap();
    let listed = String::from_utf8(edit(&["list"]).unwrap().stdout).unwrap();
    assert_eq!(listed, format!("saved_entry=x\nkernelopts={value}\nboot_success=0\n"));
}

//! Secrets of a host in a redacted capture: none is left, wherever it stood.

use super::host::{Host, Node};
use crate::common::{lowlat, text};
use std::io::Read;

/// The planted secret. It has no digits, which some replacements keep. It is not the host's name, which is overwritten
/// wherever it stands and would hide every other leak.
const SECRET: &str = "hunterTwo";
/// The name of the host.
const NAME: &str = "deskhost";

/// Words of a command line that hold a secret.
const WORDS: &str = "rootflags=vers=3,username=hunterTwo,password=hunterTwo inst.ks=https://u:hunterTwo@ks.example/x \
    passphrase=hunterTwo psk=hunterTwo pass=hunterTwo key=hunterTwo credential=hunterTwo rd.luks.name=hunterTwo \
    ifname=hunterTwo:52:54:00:ab:cd:ef netconsole=6665@fe80::hunterTwo/eth0 ip=10.9.8.7::hunterTwo:eth0 \
    netroot=iscsi:@hunterTwo::3260::iqn.2020-01.example:hunterTwo rd.iscsi.initiator=iqn.2020-01.hunterTwo \
    root=LABEL=hunterTwo resume=/dev/mapper/hunterTwo BOOT_IMAGE=/hunterTwo/linux hunterTwo unknown=hunterTwo \
    systemd.hostname=hunterTwo ds=nocloud;s=http://hunterTwo/ hunterTwo=1";
/// Addresses that no capture may hold.
const ADDRESSES: &[&str] = &["ab:cd:ef", "10.9.8.7", "fe80::", "iqn."];

/// Files of a host, each with a secret where one can stand.
const FILES: &[(&str, &str)] = &[
    ("proc/cmdline", "ro quiet nohz_full=1-7 <words>\n"),
    ("proc/bootconfig", "kernel.password = \"hunterTwo\"\nkernel.hunterTwo = 1\n"),
    (
        "etc/default/grub",
        "# hunterTwo\nGRUB_CMDLINE_LINUX=\"<words>\"\nGRUB_TITLE='hunterTwo'\nexport SECRET=hunterTwo\n",
    ),
    ("etc/kernel/cmdline", "<words>\n"),
    ("boot/grub2/grubenv", "# GRUB Environment Block\nsaved_entry=hunterTwo\nkernelopts=<words>\n####\n"),
    ("boot/grub/grubenv", "# GRUB Environment Block\nhunterTwo=1\ntuned_params=<words>\n####\n"),
    ("etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE=\"<words>\"\n"),
    ("etc/tuned/tuned-main.conf", "rollback = not_on_exit\nlog = hunterTwo # hunterTwo\n"),
    ("etc/tuned/cpu-partitioning-variables.conf", "isolated_cores=1-7\npassword_cores=hunterTwo\n"),
    ("etc/sysctl.conf", "vm.swappiness = 10\nkernel.core_pattern = |/opt/hunterTwo\n; hunterTwo\n"),
    ("etc/sysctl.d/50-desk.conf", "# hunterTwo\nhunterTwo = 1 hunterTwo\nkernel.hostname=hunterTwo\n"),
    ("run/sysctl.d/60-desk.conf", "kernel.domainname=hunterTwo\n"),
    ("usr/lib/sysctl.d/70-desk.conf", "kernel.modprobe=/hunterTwo\n"),
    (
        "etc/default/irqbalance",
        "IRQBALANCE_ARGS=\"--policyscript=/opt/hunterTwo hunterTwo\"\nTOKEN=hunterTwo\n",
    ),
    ("etc/os-release", "ID=debian\nHOME_URL=\"https://hunterTwo/\"\n"),
    ("etc/machine-id", "hunterTwo\n"),
    ("etc/systemd/system/irqbalance.service", "[Service]\nEnvironment=PASS=hunterTwo\n[hunterTwo=1]\n"),
    ("proc/swaps", "Filename Type Size Used Priority\n/dev/mapper/hunterTwo-swap partition 8 4 -2\n"),
    ("proc/sys/kernel/core_pattern", "|/opt/hunterTwo %p\n"),
    ("proc/sys/kernel/hostname", "deskhost.example\n"),
    ("proc/version", "Linux version 6.1 (root@deskhost) #1\n"),
    (
        "boot/config-6.1.0-50-amd64",
        "CONFIG_HZ=250\nCONFIG_CMDLINE=\"pass=hunterTwo\"\nCONFIG_DEFAULT_HOSTNAME=\"hunterTwo\"\n# hunterTwo\n",
    ),
];

fn unpacked(path: &std::path::Path) -> Vec<(String, String)> {
    let file = std::fs::File::open(path).expect("the capture");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut files = Vec::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("a whole entry");
        let path = entry.path().expect("a path").to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its bytes");
        files.push((path, text(&bytes)));
    }
    files
}

#[test]
fn a_redacted_capture_holds_no_planted_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut host = Host::fixture("epyc-7f32-stock");
    // A link may stand where a file is planted.
    host.nodes.retain(|(path, _)| FILES.iter().all(|(planted, _)| path != planted));
    for (path, content) in FILES {
        host.nodes.push(((*path).to_owned(), Node::File(content.replace("<words>", WORDS).into_bytes())));
    }
    let root = host.pack(directory.path());
    let out = directory.path().join("redacted.tar.gz");
    let path = |path: &std::path::Path| path.to_str().expect("a path in UTF-8").to_owned();
    let output = lowlat(&["host", "capture", "--root", &path(&root), &path(&out)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let files = unpacked(&out);
    let mut leaks = Vec::new();
    for (path, content) in &files {
        for line in content.lines().chain([path.as_str()]) {
            if line.contains(SECRET)
                || line.contains(NAME)
                || (path != ".lowlat/names" && ADDRESSES.iter().any(|address| line.contains(address)))
            {
                leaks.push(format!("{path}: {line}"));
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    // The values that lowlat judges are still there.
    let content = |path: &str| {
        files.iter().find(|(found, _)| found == path).map_or("", |(_, content)| content.as_str())
    };
    assert!(
        content("proc/cmdline").starts_with("ro quiet nohz_full=1-7 rootflags=X"),
        "{}",
        content("proc/cmdline")
    );
    assert!(content("etc/tuned/cpu-partitioning-variables.conf").starts_with("isolated_cores=1-7\n"));
    assert!(content("etc/sysctl.conf").starts_with("vm.swappiness = 10\n"));
    assert!(content("boot/config-6.1.0-50-amd64").starts_with("CONFIG_HZ=250\n"));
}

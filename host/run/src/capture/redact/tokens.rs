//! Words of the kernel's command line: known parameters keep their values, all others at most their names.

use super::pattern;
use lowlat_settings::{Catalogue, Layer};
use std::collections::BTreeSet;

/// Harmless parameters that are not in the catalogue. Their values are words, numbers and lists.
const HARMLESS: &[&str] = &[
    "acpi",
    "acpi_cpufreq",
    "amd_iommu",
    "amd_pstate",
    "apic",
    "apparmor",
    "audit",
    "audit_backlog_limit",
    "biosdevname",
    "cgroup_disable",
    "cgroup_no_v1",
    "clocksource",
    "console",
    "consoleblank",
    "cpuidle.governor",
    "crashkernel",
    "debug",
    "default_hugepagesz",
    "earlycon",
    "earlyprintk",
    "elevator",
    "enforcing",
    "fsck.mode",
    "fsck.repair",
    "hpet",
    "hugepages",
    "hugepagesz",
    "hugetlb_free_vmemmap",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "kvm.nx_huge_pages",
    "lapic",
    "loglevel",
    "maxcpus",
    "mce",
    "mem",
    "mitigations",
    "movablecore",
    "net.ifnames",
    "nmi_watchdog",
    "no_timer_check",
    "nohz",
    "nohz_full",
    "nokaslr",
    "nomodeset",
    "noresume",
    "nosmt",
    "nosoftlockup",
    "nosplash",
    "nospectre_v2",
    "nowatchdog",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "nvme_core.io_timeout",
    "oops",
    "panic",
    "pci",
    "pcie_aspm",
    "pcie_port_pm",
    "possible_cpus",
    "preempt",
    "printk.devkmsg",
    "pti",
    "quiet",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_expedited",
    "rcupdate.rcu_normal",
    "rd.plymouth",
    "rhgb",
    "ro",
    "rootdelay",
    "rootfstype",
    "rootwait",
    "rw",
    "security",
    "selinux",
    "single",
    "skew_tick",
    "spectre_v2",
    "splash",
    "swapaccount",
    "swiotlb",
    "systemd.cpu_affinity",
    "systemd.show_status",
    "systemd.unified_cgroup_hierarchy",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "tuned.non_isolcpus",
    "vga",
    "workqueue.unbound_cpus",
    "x2apic_phys",
    "zswap.enabled",
];
/// Parameters that name a device with a file system.
const DEVICES: &[&str] = &["root", "resume"];
/// Parameters that name a kernel.
const IMAGES: &[&str] = &["BOOT_IMAGE", "linux", "initrd"];
/// Values that do not identify a host, whatever the parameter.
const HARMLESS_VALUES: &[&str] = &[
    "", "0", "1", "on", "off", "yes", "no", "y", "n", "true", "false", "none", "auto", "any", "dhcp",
    "dhcp4", "dhcp6", "auto6", "both", "ibft", "link6", "enabled", "disabled",
];
/// Longest part of a value between commas and colons, in bytes.
const PART_BYTES_MAX: usize = 24;
/// Longest name of a parameter, and the maximum number of digits in it. Longer ones look like an ID.
const NAME_BYTES_MAX: usize = 48;
const NAME_DIGITS_MAX: usize = 4;
/// Names of devices as the kernel gives them.
const DEVICE_KINDS: [&str; 9] = ["sd", "vd", "xvd", "hd", "nvme", "md", "dm-", "mmcblk", "pmem"];

/// Boot parameters whose names are kept: those in the catalogue, and the harmless ones.
#[derive(Debug)]
pub(super) struct KnownParameters(BTreeSet<String>);

impl KnownParameters {
    pub(super) fn of(catalogue: Catalogue) -> Self {
        let rows = catalogue.settings().filter(|row| row.layer == Layer::Boot);
        let names = rows.flat_map(|row| row.name.split([',', ' '])).filter_map(|name| name.split('=').next());
        Self(names.chain(HARMLESS.iter().copied()).filter(|name| !name.is_empty()).map(canonical).collect())
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains(&canonical(name))
    }
}

/// The kernel treats dashes and underscores in a name as the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Redacts the words of a command line in place. Quotes also separate words, so a quoted value is judged
/// without its name.
pub(super) fn redact(line: &mut [u8], known: &KnownParameters) {
    for word in line.split_mut(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | 0)) {
        redact_word(word, known);
    }
}

pub(super) fn redact_word(word: &mut [u8], parameters: &KnownParameters) {
    let Some(at) = word.iter().position(|byte| *byte == b'=') else {
        let is_known = std::str::from_utf8(word).is_ok_and(|word| word == "--" || parameters.contains(word));
        if !is_known {
            pattern::blank_all(word);
        }
        return;
    };
    let (name, value) = word.split_at_mut(at);
    let value = value.get_mut(1..).unwrap_or_default();
    let known = std::str::from_utf8(name).unwrap_or_default().to_owned();
    if !is_harmless_name(&known) {
        pattern::blank_all(name);
    }
    redact_value(&known, value, parameters);
}

fn redact_value(name: &str, value: &mut [u8], parameters: &KnownParameters) {
    if is_harmless_value(value) || (parameters.contains(name) && is_plain(value)) {
        return;
    }
    if DEVICES.contains(&name) {
        redact_device(value);
    } else if IMAGES.contains(&name) {
        redact_image(value);
    } else {
        pattern::blank_all(value);
    }
}

/// True if a value does not identify a host.
pub(super) fn is_harmless_value(value: &[u8]) -> bool {
    HARMLESS_VALUES.iter().any(|harmless| harmless.as_bytes() == value)
}

/// True if the name of a parameter or key can be kept: a word, not an ID. The kernel's names are in lower case, shell
/// variables in upper case. A mixture is neither.
pub(super) fn is_harmless_name(name: &str) -> bool {
    let has = |is_case: fn(&u8) -> bool| name.as_bytes().iter().any(is_case);
    if has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) {
        return false;
    }
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-' | '.' | '/'))
        && name.len() <= NAME_BYTES_MAX
        && digits <= NAME_DIGITS_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/*".contains(&byte))
}

/// True if a value consists of words, numbers and lists whose parts are all short.
pub(super) fn is_plain(value: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        part.len() <= PART_BYTES_MAX
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte))
    };
    value.split(|byte| b",:;=".contains(byte)).all(is_part)
}

/// Keeps how a device is named ("UUID=", "/dev/mapper/"), and the kernel's own names as a whole.
pub(super) fn redact_device(value: &mut [u8]) {
    const IDS: [&[u8]; 4] = [b"PARTUUID=", b"UUID=", b"/dev/disk/by-partuuid/", b"/dev/disk/by-uuid/"];
    const NAMES: [&[u8]; 7] = [
        b"PARTLABEL=",
        b"LABEL=",
        b"/dev/disk/by-id/",
        b"/dev/disk/by-label/",
        b"/dev/disk/by-path/",
        b"/dev/mapper/",
        b"/dev/",
    ];
    if let Some(start) = IDS.iter().find(|start| value.starts_with(start)) {
        let id = &mut value[start.len()..];
        pattern::blank_all_but_hex(id);
        pattern::zero_digits(id);
        return;
    }
    let start = NAMES.iter().find(|start| value.starts_with(start)).map_or(0, |start| start.len());
    let is_path = value.starts_with(b"/dev/");
    let name = &mut value[start..];
    if !(is_path && start == 5 && is_kernel_device(name)) {
        pattern::blank_all(name);
    }
}

fn is_kernel_device(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let rest = DEVICE_KINDS.iter().find_map(|kind| name.strip_prefix(kind));
    rest.is_some_and(|rest| {
        rest.len() <= 8 && rest.bytes().all(|b| b.is_ascii_digit() || b"abcdefnp".contains(&b))
    })
}

/// Keeps the file name of a kernel: "/vmlinuz-5.10.0-28-amd64". Directories may be named after machines.
fn redact_image(value: &mut [u8]) {
    const PLACES: [&[u8]; 3] = [b"boot", b"efi", b""];
    const KINDS: [&[u8]; 5] = [b"vmlinuz-", b"vmlinux-", b"linux-", b"initrd.img-", b"initramfs-"];
    let last = value.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (folders, file) = value.split_at_mut(last);
    for folder in folders.split_mut(|byte| *byte == b'/') {
        let is_partition = folder.starts_with(b"(hd") && folder.len() <= 16;
        if !PLACES.contains(&&*folder) && !is_partition {
            pattern::blank_all(folder);
        }
    }
    let version = KINDS.iter().find_map(|kind| file.strip_prefix(*kind));
    let is_release = |version: &[u8]| {
        version.first().is_some_and(u8::is_ascii_digit)
            && version.len() <= 64
            && version.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._+~-".contains(byte))
    };
    if !version.is_some_and(is_release) {
        pattern::blank_all(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::CATALOGUE;

    fn redacted(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        redact(&mut bytes, &KnownParameters::of(CATALOGUE));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn known_parameters_keep_their_values_and_others_their_names() {
        for (line, kept) in [
            (
                "isolcpus=managed_irq,domain,1-7 nohz_full=1-7 quiet ro",
                "isolcpus=managed_irq,domain,1-7 nohz_full=1-7 quiet ro",
            ),
            (
                "console=ttyS0,115200n8 crashkernel=1G-4G:192M",
                "console=ttyS0,115200n8 crashkernel=1G-4G:192M",
            ),
            ("ip=dhcp nfsroot=10.0.0.1:/srv", "ip=dhcp nfsroot=XXXXXXXXXXXXX"),
            ("rootflags=vers=3,password=hunter2", "rootflags=XXXXXXXXXXXXXXXXXXXXXXX"),
            ("ifname=eth0:52:54:00:12:34:56", "ifname=XXXXXXXXXXXXXXXXXXXXXX"),
            ("netconsole=@fe80::1/eth0", "netconsole=XXXXXXXXXXXXX"),
            ("root=UUID=4c4c4544-0042 ro", "root=UUID=00000000-0000 ro"),
            ("root=/dev/disk/by-uuid/4c4c4544-0042 quiet", "root=/dev/disk/by-uuid/00000000-0000 quiet"),
            ("root=/dev/nvme0n1p2", "root=/dev/nvme0n1p2"),
            ("root=/dev/mapper/desk-root", "root=/dev/mapper/XXXXXXXXX"),
            ("root=LABEL=desk", "root=LABEL=XXXX"),
            ("hunter2 --password 5f4dcc3b5aa7=x", "XXXXXXX XXXXXXXXXX XXXXXXXXXXXX=X"),
            ("x=\"a b\"", "x=\"X X\""),
            (
                "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.10.0-28-amd64",
                "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.10.0-28-amd64",
            ),
            ("BOOT_IMAGE=/0123456789abcdef/linux", "BOOT_IMAGE=/XXXXXXXXXXXXXXXX/XXXXX"),
        ] {
            assert_eq!(redacted(line), kept);
        }
    }
}

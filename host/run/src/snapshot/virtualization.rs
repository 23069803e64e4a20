//! Reads whether the host is virtual, and how much time the hypervisor took.

use super::{cpu, cpuinfo::CpuInfo};
use crate::{Root, proc_stat::steal_of_line};
use lowlat_host::{Reading, snapshot::Virtualization};

const DMI: &str = "/sys/class/dmi/id";
const DEVICE_TREE: &str = "/proc/device-tree";
/// Name of virtual platforms that consist only of devices (kernel:
/// Documentation/devicetree/bindings/arm/linux,dummy-virt.yaml): QEMU's and compatible ones.
const DUMMY_PLATFORM: &str = "linux,dummy-virt";

/// Words in the machine's identity that name a hypervisor: file, word, name.
const DMI_NAMES: &[(&str, &str, &str)] = &[
    ("product_name", "KVM", "KVM"),
    ("product_name", "VMware", "VMware"),
    ("product_name", "VirtualBox", "VirtualBox"),
    ("product_name", "HVM domU", "Xen"),
    ("product_name", "Google Compute Engine", "KVM (Google Compute Engine)"),
    ("product_name", "OpenStack", "KVM (OpenStack)"),
    ("sys_vendor", "VMware", "VMware"),
    ("sys_vendor", "innotek GmbH", "VirtualBox"),
    ("sys_vendor", "Xen", "Xen"),
    ("sys_vendor", "Parallels", "Parallels"),
    ("sys_vendor", "QEMU", "QEMU"),
    ("sys_vendor", "Bochs", "Bochs"),
    ("bios_vendor", "Parallels", "Parallels"),
    ("bios_vendor", "BHYVE", "bhyve"),
];

pub(super) fn read(root: &Root) -> Virtualization {
    let has_flag = cpu::flags(&CpuInfo::read(root)).map(|flags| flags.contains("hypervisor"));
    // s390x has "vendor_id" too; only x86 calls its features flags.
    let is_x86 = root.read("/proc/cpuinfo").text().lines().any(|line| line.starts_with("flags"));
    let named = read_named(root);
    let is_virtual = match (has_flag, &named) {
        (Reading::Known(true), _) if is_x86 => Reading::Known(true),
        // Xen's control domain has the hypervisor's name without the flag.
        (Reading::Known(false), Some(_)) if is_x86 && root.exists("/sys/hypervisor/type") => {
            Reading::Known(false)
        }
        // A hypervisor can hide the flag, and some name their bare-metal machines like their virtual ones.
        (Reading::Known(false), Some(name)) if is_x86 => Reading::unparsable(
            "/proc/cpuinfo",
            &format!("no flag hypervisor on a machine named {name}"),
            "evidence that agrees",
        ),
        (_, Some(_)) => Reading::Known(true),
        // The flag alone may be hidden, and other architectures have none: a machine is physical if its vendor is
        // known and makes no hypervisor.
        (Reading::Known(_), None) => root.read(&format!("{DMI}/sys_vendor")).map(|_| false),
        (missing, None) => missing,
    };
    let hypervisor = match is_virtual {
        Reading::Known(true) => read_signature(root).or(|| Reading::from_option(named)),
        _ => Reading::Absent,
    };
    Virtualization {
        is_virtual,
        hypervisor,
        steal_ticks: root
            .or_unread("/proc/stat", root.read("/proc/stat"))
            .lines()
            .filter_map(steal_of_line)
            .collect(),
    }
}

/// The hypervisor's name from files.
fn read_named(root: &Root) -> Option<String> {
    match root.read("/sys/hypervisor/type").text() {
        "" => {}
        "xen" => return Some("Xen".into()),
        other => return Some(other.to_owned()),
    }
    let hypervisor = format!("{DEVICE_TREE}/hypervisor");
    let compatible = root.read(&format!("{hypervisor}/compatible"));
    if compatible.is_known() || root.exists(&hypervisor) {
        // A device tree's strings end in a zero byte; several may follow one another.
        return Some(match compatible.text().split('\0').next().unwrap_or_default() {
            "linux,kvm" => "KVM".into(),
            name if name.starts_with("xen,") => "Xen".into(),
            "" => "unnamed".into(),
            name => name.to_owned(),
        });
    }
    let platform = root.read(&format!("{DEVICE_TREE}/compatible"));
    if platform.text().split('\0').any(|name| name == DUMMY_PLATFORM) {
        // QEMU's interface for passing files to its guest.
        let nodes = root.list(DEVICE_TREE).into_known().unwrap_or_default();
        let is_qemu = nodes.iter().any(|node| node.starts_with("fw-cfg@"));
        return Some(if is_qemu { "QEMU" } else { "unnamed" }.into());
    }
    let dmi = |file: &str| root.read(&format!("{DMI}/{file}"));
    if dmi("sys_vendor").text() == "Microsoft Corporation" && dmi("product_name").text() == "Virtual Machine"
    {
        return Some("Microsoft".into());
    }
    // Amazon's bare-metal machines have the vendor of the virtual ones; their types end in ".metal".
    if dmi("sys_vendor").text() == "Amazon EC2" && !dmi("product_name").text().contains(".metal") {
        return Some("KVM (Amazon EC2)".into());
    }
    DMI_NAMES
        .iter()
        .find(|(file, word, _)| dmi(file).text().contains(word))
        .map(|(_, _, name)| (*name).to_owned())
}

/// The twelve letters that a hypervisor returns in CPUID leaf 0x40000000: "KVMKVMKVM", "TCGTCGTCGTCG".
fn read_signature(root: &Root) -> Reading<String> {
    root.interface("cpuid/hypervisor", cpuid_signature).and_then(|bytes| {
        let text: String =
            bytes.iter().take(12).map(|byte| char::from(*byte)).filter(char::is_ascii_graphic).collect();
        match text.as_str() {
            "" => Reading::Absent,
            "KVMKVMKVM" | "LinuxKVMHv" => Reading::Known("KVM".into()),
            "TCGTCGTCGTCG" => Reading::Known("QEMU (TCG)".into()),
            "VMwareVMware" => Reading::Known("VMware".into()),
            "MicrosoftHv" => Reading::Known("Microsoft".into()),
            "XenVMMXenVMM" => Reading::Known("Xen".into()),
            "VBoxVBoxVBox" => Reading::Known("VirtualBox".into()),
            "bhyvebhyve" => Reading::Known("bhyve".into()),
            "ACRNACRNACRN" => Reading::Known("ACRN".into()),
            "prlhyperv" => Reading::Known("Parallels".into()),
            other => Reading::Known(other.to_owned()),
        }
    })
}

#[cfg(target_arch = "x86_64")]
fn cpuid_signature() -> Reading<Vec<u8>> {
    #[allow(unused_unsafe)] // Newer compilers treat the intrinsic as safe.
    // SAFETY: every x86_64 processor has CPUID; a missing leaf returns other numbers, nothing worse.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    Reading::Known([leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect())
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_signature() -> Reading<Vec<u8>> {
    Reading::Absent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    const VIRTUAL: &str = "processor: 0\nvendor_id: GenuineIntel\nflags: fpu hypervisor\n";
    const REAL: &str = "processor: 0\nvendor_id: GenuineIntel\nflags: fpu\n";

    #[test]
    fn a_processor_without_flags_says_nothing() {
        for cpuinfo in
            ["vendor_id       : IBM/S390\nfeatures\t: esan3 zarch stfle msa\n", "vendor_id: GenuineIntel\n"]
        {
            let facts = read(&TestTree::of(&[("/proc/cpuinfo", cpuinfo)]).root());
            assert!(!facts.is_virtual.is_known(), "{cpuinfo}: {:?}", facts.is_virtual);
        }
    }

    #[test]
    fn the_flag_and_the_signature_tell() {
        let tree = TestTree::new()
            .file("/proc/cpuinfo", VIRTUAL)
            .file("/.lowlat/interface/cpuid/hypervisor", "TCGTCGTCGTCG")
            .file(&format!("{DMI}/sys_vendor"), "QEMU\n");
        let facts = read(&tree.root());
        assert_eq!((facts.is_virtual, facts.hypervisor.text()), (Reading::Known(true), "QEMU (TCG)"));
    }

    #[test]
    fn the_machines_name_tells_where_no_signature_does() {
        let named = |vendor: &str, product: &str| {
            let tree = TestTree::new()
                .file("/proc/cpuinfo", VIRTUAL)
                .file(&format!("{DMI}/sys_vendor"), vendor)
                .file(&format!("{DMI}/product_name"), product);
            read(&tree.root()).hypervisor
        };
        assert_eq!(named("QEMU", "Standard PC (Q35 + ICH9, 2009)").text(), "QEMU");
        assert_eq!(named("VMware, Inc.", "VMware7,1").text(), "VMware");
        assert_eq!(named("Microsoft Corporation", "Virtual Machine").text(), "Microsoft");
        assert!(named("Dell Inc.", "PowerEdge R750").is_absent());
    }

    #[test]
    fn a_real_host_is_known_to_be_real() {
        let tree = TestTree::of(&[("/proc/cpuinfo", REAL), ("/sys/class/dmi/id/sys_vendor", "HPE\n")]);
        let facts = read(&tree.root());
        assert_eq!((facts.is_virtual, facts.hypervisor), (Reading::Known(false), Reading::Absent));
        assert!(read(&TestTree::new().root()).is_virtual.is_absent());
        let metal = TestTree::new()
            .file("/proc/cpuinfo", "processor: 0\nFeatures: fp\n")
            .file(&format!("{DMI}/sys_vendor"), "Amazon EC2\n")
            .file(&format!("{DMI}/product_name"), "c7g.metal\n");
        assert_eq!(read(&metal.root()).is_virtual, Reading::Known(false));
    }

    #[test]
    fn a_missing_flag_alone_does_not_make_a_host_real() {
        let is_virtual = |tree: TestTree| read(&tree.root()).is_virtual;
        assert!(is_virtual(TestTree::of(&[("/proc/cpuinfo", REAL)])).is_absent());
        let hidden = TestTree::of(&[("/proc/cpuinfo", REAL), ("/sys/class/dmi/id/sys_vendor", "QEMU\n")]);
        assert!(matches!(is_virtual(hidden), Reading::Unparsable(_)));
        let vendor_only = TestTree::of(&[("/sys/class/dmi/id/sys_vendor", "HPE\n")]);
        assert!(is_virtual(vendor_only).is_absent());
        let xen = TestTree::of(&[("/proc/cpuinfo", REAL), ("/sys/hypervisor/type", "xen\n")]);
        assert_eq!(is_virtual(xen), Reading::Known(false));
    }

    #[test]
    fn an_arm_guest_is_recognized_by_its_device_tree() {
        let tree = TestTree::new()
            .file("/proc/cpuinfo", "processor: 0\nFeatures: fp\n")
            .file(&format!("{DEVICE_TREE}/hypervisor/compatible"), "xen,xen-4.17\0xen,xen\0");
        let facts = read(&tree.root());
        assert_eq!((facts.is_virtual, facts.hypervisor.text()), (Reading::Known(true), "Xen"));
    }

    #[test]
    fn a_platform_of_nothing_but_devices_is_virtual() {
        let guest = || {
            TestTree::new()
                .file("/proc/cpuinfo", "processor: 0\nFeatures: fp\n")
                .file(&format!("{DEVICE_TREE}/compatible"), "linux,dummy-virt\0")
        };
        let facts = read(&guest().root());
        assert_eq!((facts.is_virtual, facts.hypervisor.text()), (Reading::Known(true), "unnamed"));
        let qemu = guest().file(&format!("{DEVICE_TREE}/fw-cfg@9020000/compatible"), "qemu,fw-cfg-mmio\0");
        assert_eq!(read(&qemu.root()).hypervisor.text(), "QEMU");
        let board = TestTree::new()
            .file("/proc/cpuinfo", "processor: 0\nFeatures: fp\n")
            .file(&format!("{DEVICE_TREE}/compatible"), "solidrun,lx2160a-honeycomb\0fsl,lx2160a\0");
        assert!(read(&board.root()).is_virtual.is_absent());
    }

    #[test]
    fn steal_is_the_eighth_number() {
        let stat = "cpu  1 2 3 4 5 6 7 800 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2\ncpu2 1 2 3 4 5 6 7 x\n";
        let steal = read(&TestTree::new().file("/proc/stat", stat).root()).steal_ticks;
        assert_eq!(steal, std::collections::BTreeMap::from([(0, 8)]));
    }
}

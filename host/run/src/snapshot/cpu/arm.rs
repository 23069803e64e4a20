//! Names of Arm processors. /proc/cpuinfo has two numbers of each CPU's identification register (MIDR_EL1),
//! and no name (kernel: Documentation/arch/arm64/cpu-feature-registers.rst,
//! arch/arm64/include/asm/cputype.h).

use crate::snapshot::cpuinfo::CpuInfo;
use lowlat_host::Reading;

/// Designers by the register's bits 31 to 24, as `CPU implementer` shows them.
const IMPLEMENTERS: &[(&str, &str)] = &[
    ("0x41", "Arm"),
    ("0x42", "Broadcom"),
    ("0x43", "Cavium"),
    ("0x46", "Fujitsu"),
    ("0x48", "HiSilicon"),
    ("0x4e", "NVIDIA"),
    ("0x50", "Applied Micro"),
    ("0x51", "Qualcomm"),
    ("0x61", "Apple"),
    ("0x6d", "Microsoft"),
    ("0x70", "Phytium"),
    ("0xc0", "Ampere"),
];

/// Cores of servers and workstations, by implementer and the register's bits 15 to 4 (`CPU part`).
const PARTS: &[(&str, &str, &str)] = &[
    ("0x41", "0xd03", "Cortex-A53"),
    ("0x41", "0xd05", "Cortex-A55"),
    ("0x41", "0xd07", "Cortex-A57"),
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd09", "Cortex-A73"),
    ("0x41", "0xd0a", "Cortex-A75"),
    ("0x41", "0xd0b", "Cortex-A76"),
    ("0x41", "0xd0c", "Neoverse-N1"),
    ("0x41", "0xd0d", "Cortex-A77"),
    ("0x41", "0xd40", "Neoverse-V1"),
    ("0x41", "0xd41", "Cortex-A78"),
    ("0x41", "0xd49", "Neoverse-N2"),
    ("0x41", "0xd4a", "Neoverse-E1"),
    ("0x41", "0xd4f", "Neoverse-V2"),
    ("0x41", "0xd83", "Neoverse-V3AE"),
    ("0x41", "0xd84", "Neoverse-V3"),
    ("0x41", "0xd85", "Cortex-X925"),
    ("0x41", "0xd87", "Cortex-A725"),
    ("0x41", "0xd8e", "Neoverse-N3"),
    ("0x43", "0x0a1", "ThunderX"),
    ("0x43", "0x0af", "ThunderX2"),
    ("0x46", "0x001", "A64FX"),
    ("0x48", "0xd01", "TSV110 (Kunpeng 920)"),
    ("0x4e", "0x004", "Carmel"),
    ("0x4e", "0x010", "Olympus"),
    ("0x51", "0xc00", "Falkor"),
    ("0x51", "0x001", "Oryon"),
    ("0x6d", "0xd49", "Cobalt 100"),
    ("0xc0", "0xac3", "AmpereOne"),
    ("0xc0", "0xac4", "AmpereOne A"),
];

/// The designer by `CPU implementer`, or its number if unknown here.
pub(super) fn vendor(info: &Reading<CpuInfo>) -> Reading<String> {
    CpuInfo::value::<String>(info, "CPU implementer", "text").map(|code| designer(&code))
}

/// "Arm Neoverse-N1"; on a host with several kinds of cores all of them, in the order of its CPUs. An unknown
/// part is named by its number.
pub(super) fn model_name(info: &Reading<CpuInfo>) -> Reading<String> {
    info.as_ref().and_then(|info| {
        let mut names: Vec<String> = Vec::new();
        for (implementer, part) in info.pairs("CPU implementer", "CPU part") {
            let (implementer, part) = (implementer.to_ascii_lowercase(), part.to_ascii_lowercase());
            let known = PARTS.iter().find(|(by, number, _)| *by == implementer && *number == part);
            let core =
                known.map_or_else(|| format!("processor, part {part}"), |(.., core)| (*core).to_owned());
            let name = format!("{} {core}", designer(&implementer));
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Reading::from_option((!names.is_empty()).then(|| names.join(" and ")))
    })
}

fn designer(code: &str) -> String {
    let code = code.to_ascii_lowercase();
    let known = IMPLEMENTERS.iter().find(|(number, _)| *number == code);
    known.map_or(code, |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn named(blocks: &[(&str, &str)]) -> Reading<String> {
        let block = |(cpu, (implementer, part)): (usize, &(&str, &str))| {
            format!("processor\t: {cpu}\nCPU implementer\t: {implementer}\nCPU part\t: {part}\n\n")
        };
        let text: String = blocks.iter().enumerate().map(block).collect();
        model_name(&CpuInfo::read(&TestTree::new().file("/proc/cpuinfo", text).root()))
    }

    #[test]
    fn cores_are_named_by_designer_and_part() {
        assert_eq!(named(&[("0x41", "0xd0c"), ("0x41", "0xd0c")]).text(), "Arm Neoverse-N1");
        assert_eq!(named(&[("0xC0", "0xAC3")]).text(), "Ampere AmpereOne");
        // Two designers share this number.
        assert_eq!(named(&[("0x6d", "0xd49")]).text(), "Microsoft Cobalt 100");
    }

    #[test]
    fn each_kind_of_core_is_named_once() {
        let both = named(&[("0x41", "0xd85"), ("0x41", "0xd87"), ("0x41", "0xd85")]);
        assert_eq!(both.text(), "Arm Cortex-X925 and Arm Cortex-A725");
    }

    #[test]
    fn what_is_not_known_is_recognized_by_its_number() {
        assert_eq!(named(&[("0x41", "0xfff")]).text(), "Arm processor, part 0xfff");
        assert_eq!(named(&[("0x99", "0x001")]).text(), "0x99 processor, part 0x001");
        let x86 = TestTree::new().file("/proc/cpuinfo", "processor : 0\nvendor_id : AuthenticAMD\n");
        assert!(model_name(&CpuInfo::read(&x86.root())).is_absent());
        assert!(model_name(&CpuInfo::read(&TestTree::new().root())).is_absent());
    }
}

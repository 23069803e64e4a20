//! Every parser of a single text: CPU lists, masks, command lines, kernel releases, role files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_host::{CpuSet, HostSnapshot, RoleFile, cmdline::CommandLine, kernel_version::KernelVersion};
use lowlat_settings::same_meaning;

fuzz_target!(|text: &str| {
    for set in [CpuSet::parse_list(text).ok(), CpuSet::parse_mask(text).ok()].into_iter().flatten() {
        assert_eq!(CpuSet::parse_list(&set.to_list()).as_ref(), Ok(&set));
        assert_eq!(CpuSet::parse_mask(&set.to_mask()).as_ref(), Ok(&set));
    }
    let _ = CpuSet::parse_list_within(text, 64);
    let _ = CommandLine::parse(text).cpus("isolcpus", 64);
    let _ = KernelVersion::parse(text);
    assert!(same_meaning(text, text));
    if let Err(error) = RoleFile::parse("role.toml", text).and_then(|file| file.resolve(&HostSnapshot::default(), &[])) {
        let _ = error.to_string();
    }
});

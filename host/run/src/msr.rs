//! Model-specific registers of x86 processors, read from /dev/cpu/N/msr (module msr; root only).

use crate::Root;
use lowlat_host::{CpuId, Reading};
use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
};

/// System-management interrupts since reset in bits 31:0 (Intel SDM volume 4, MSR_SMI_COUNT; Nehalem and later).
pub const SMI_COUNT: u32 = 0x34;

/// Value of a CPU's register.
///
/// The CPU itself reads it, in an interrupt (arch/x86/kernel/msr.c, `rdmsr_safe_on_cpu`), so never read a
/// register of a CPU under measurement. Absent if the module or the register does not exist.
pub fn read(root: &Root, cpu: CpuId, register: u32) -> Reading<u64> {
    let name = format!("msr/{cpu}/{register:#x}");
    root.interface(&name, || read_live(cpu, register)).and_then(|bytes| {
        <[u8; 8]>::try_from(bytes.as_slice()).map_or_else(
            |_| Reading::unparsable(name, &format!("{bytes:02x?}"), "the eight bytes of a register"),
            |bytes| Reading::Known(u64::from_le_bytes(bytes)),
        )
    })
}

fn read_live(cpu: CpuId, register: u32) -> Reading<Vec<u8>> {
    let path = format!("/dev/cpu/{cpu}/msr");
    let mut bytes = vec![0; 8];
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let read = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(&path)
        .and_then(|file| file.read_exact_at(&mut bytes, u64::from(register)));
    match read {
        Ok(()) => Reading::Known(bytes),
        Err(error) => match (error.kind(), error.raw_os_error().map(rustix::io::Errno::from_raw_os_error)) {
            (io::ErrorKind::PermissionDenied, _) => Reading::Denied,
            // No such file, no such CPU, or the processor faults on the register.
            (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, _)
            | (_, Some(rustix::io::Errno::NXIO | rustix::io::Errno::NODEV | rustix::io::Errno::IO)) => {
                Reading::Absent
            }
            _ => Reading::unparsable(path, &error.to_string(), "a readable register"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_registers_are_read_back() {
        let place = |cpu: u32| format!("/.lowlat/interface/msr/{cpu}/0x34");
        let root = Root::in_memory(
            "test",
            [(place(0), 7_u64.to_le_bytes().to_vec()), (place(1), b"short".to_vec())],
        );
        assert_eq!(read(&root, 0, SMI_COUNT), Reading::Known(7));
        assert!(matches!(read(&root, 1, SMI_COUNT), Reading::Unparsable(_)));
        assert!(read(&root, 2, SMI_COUNT).is_absent());
    }

    #[test]
    fn a_cpu_that_is_missing_has_no_register() {
        assert!(!read(&Root::live(), 65_000, SMI_COUNT).is_known());
    }
}

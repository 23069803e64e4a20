//! Mappings of a process (proc(5), /proc/PID/smaps).

use lowlat_host::Reading;
use lowlat_host_run::Root;
use std::{
    fs::File,
    io::{self, Read},
};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    pub start: u64,
    /// First address after the mapping.
    pub end: u64,
    /// Access letters, such as "rw-p".
    pub access: String,
    /// Offset in the file of its first byte.
    pub offset: u64,
    /// The file, `[heap]` or the like; empty if it has no name.
    pub name: String,
    /// Device of the file system that contains the file; `00:00` without a file.
    pub device: String,
    /// Inode of the file; 0 without one.
    pub inode: u64,
    /// Memory that is in RAM, in KiB.
    pub resident_kib: u64,
    /// Memory that was written, in KiB: in private mappings by this process, in shared ones by any.
    pub dirty_kib: u64,
    /// Memory that other processes map too, in KiB.
    pub common_kib: u64,
    /// Memory in transparent huge pages, in KiB.
    pub huge_kib: u64,
    /// Memory in pages of hugetlbfs, in KiB.
    pub hugetlb_kib: u64,
}

impl Mapping {
    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    pub fn is_writable(&self) -> bool {
        self.access.contains('w')
    }

    pub fn is_executable(&self) -> bool {
        self.access.contains('x')
    }

    /// True if other processes see its writes.
    pub fn is_shared(&self) -> bool {
        self.access.ends_with('s')
    }

    /// True if it contains the address.
    pub fn has(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Longest program that is read, in bytes.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// Reads a program or library as a process sees it, which may be in a container.
///
/// # Errors
/// The system's, and `FileTooLarge` above 1 GiB.
pub fn program_bytes(pid: u32, path: &str) -> io::Result<Vec<u8>> {
    // The path alone if the process has ended.
    let file = File::open(format!("/proc/{pid}/root{path}")).or_else(|_| File::open(path))?;
    if file.metadata()?.len() > PROGRAM_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the mappings of a process, in the order of addresses.
pub fn mappings(root: &Root, pid: u32) -> Reading<Vec<Mapping>> {
    // A file's name may have any bytes.
    root.read_bytes(&format!("/proc/{pid}/smaps")).map(|bytes| parse(&String::from_utf8_lossy(&bytes)))
}

pub(crate) fn parse(text: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = head(line) {
            all.push(mapping);
        } else if let (Some((name, rest)), Some(last)) = (line.split_once(':'), all.last_mut()) {
            let kib = || rest.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
            match name {
                "Rss" => last.resident_kib += kib(),
                "Private_Dirty" => last.dirty_kib += kib(),
                "Shared_Clean" => last.common_kib += kib(),
                "Shared_Dirty" => {
                    last.common_kib += kib();
                    last.dirty_kib += if last.is_shared() { kib() } else { 0 };
                }
                "AnonHugePages" | "ShmemPmdMapped" => last.huge_kib += kib(),
                "Private_Hugetlb" | "Shared_Hugetlb" => last.hugetlb_kib += kib(),
                _ => {}
            }
        }
    }
    all
}

/// `7f01c000-7f01d000 rw-p 00001000 08:01 1234   /lib/x.so`
fn head(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = rest.split_ascii_whitespace();
    let (access, offset, device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let name = words.next().map_or("", |first| rest.find(first).map_or("", |at| &rest[at..]));
    Some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        access: access.to_owned(),
        offset: hexadecimal(offset)?,
        name: name.to_owned(),
        device: device.to_owned(),
        inode: inode.parse().ok()?,
        ..Mapping::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sizes_and_letters_are_read() {
        let text = "55d0a000-55d0c000 rw-p 00002000 08:01 77   /opt/my program\nSize: 8 kB\nPrivate_Dirty:        4 kB\n\
                    Shared_Dirty: 8 kB\nAnonHugePages:  2048 kB\n7f00-7f10 rw-s 00000000 00:01 9\nShared_Clean: 8 kB\n\
                    Shared_Dirty: 4 kB\nPrivate_Dirty: 12 kB\nPrivate_Hugetlb: 2048 kB\n7ffc-7ffd r-xp 00000000 00:00 0      [vdso]\nVmFlags: rd ex\n";
        let all = parse(text);
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].name.as_str(), all[0].dirty_kib, all[0].bytes()), ("/opt/my program", 4, 0x2000));
        assert_eq!(
            (all[0].huge_kib, all[1].dirty_kib, all[1].common_kib, all[1].hugetlb_kib),
            (2048, 16, 12, 2048)
        );
        assert_eq!((all[0].device.as_str(), all[1].device.as_str(), all[1].inode), ("08:01", "00:01", 9));
        assert!(all[0].is_writable() && !all[0].is_shared() && all[1].is_shared() && all[1].name.is_empty());
        assert!(all[2].is_executable() && all[2].has(0x7ffc) && !all[2].has(0x7ffd));
        let own = mappings(&Root::live(), std::process::id()).into_known().unwrap();
        let local = std::ptr::from_ref(&own).addr() as u64;
        assert!(own.iter().any(|mapping| mapping.has(local) && mapping.dirty_kib > 0));
        assert_eq!(parse("nonsense\n1-2 rw\nzz-1 rw-p 0 0 0\n"), []);
    }
}

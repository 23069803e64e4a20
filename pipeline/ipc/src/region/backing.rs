//! Kinds of pages behind a segment.

use std::fmt;

/// The kind of pages behind a segment, as granted by the kernel, which may differ from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Pages of this size from the reserved pool (hugetlbfs).
    Reserved {
        /// Size of a page, in bytes.
        page_bytes: u64,
    },
    /// Transparent huge pages for part of it.
    Transparent {
        /// Bytes in huge pages (ShmemPmdMapped of /proc/PID/smaps).
        bytes: u64,
    },
    /// Pages of the usual size.
    Base,
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved { page_bytes } => write!(f, "reserved pages of {} KiB", page_bytes >> 10),
            Self::Transparent { bytes } => write!(f, "transparent huge pages for {} KiB", bytes >> 10),
            Self::Base => write!(f, "pages of the usual size"),
        }
    }
}

impl Backing {
    /// Parses the backing of the mapping at `address` from the text of /proc/PID/smaps; `None` if there is no
    /// such mapping.
    pub fn from_smaps(smaps: &str, address: u64) -> Option<Self> {
        let mut lines = smaps.lines().skip_while(|line| start_of(line) != Some(address));
        lines.next()?;
        let (mut page_bytes, mut huge_bytes) = (0, 0);
        for line in lines.take_while(|line| start_of(line).is_none()) {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let kib = || rest.trim().strip_suffix("kB").and_then(|text| text.trim().parse::<u64>().ok());
            match name {
                "KernelPageSize" => page_bytes = kib().unwrap_or(0) << 10,
                "ShmemPmdMapped" => huge_bytes = kib().unwrap_or(0) << 10,
                _ => {}
            }
        }
        Some(match (page_bytes, huge_bytes) {
            (page_bytes, _) if page_bytes > BASE_PAGE_BYTES_MAX => Self::Reserved { page_bytes },
            (_, 0) => Self::Base,
            (_, bytes) => Self::Transparent { bytes },
        })
    }
}

/// The largest base page: 64 KiB on arm64.
const BASE_PAGE_BYTES_MAX: u64 = 64 << 10;

/// The start address in a head line of smaps: "7f00-7f10 rw-s ...".
fn start_of(line: &str) -> Option<u64> {
    let (range, _) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    u64::from_str_radix(end, 16).ok()?;
    u64::from_str_radix(start, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "7f0000000000-7f0000200000 rw-s 00000000 00:01 5  /memfd:x (deleted)\n\
        Size:               2048 kB\nKernelPageSize:     2048 kB\nShmemPmdMapped:        0 kB\n\
        7f0000400000-7f0000600000 rw-s 00000000 00:01 6  /memfd:y (deleted)\n\
        KernelPageSize:        4 kB\nShmemPmdMapped:     2048 kB\n\
        7f0000800000-7f0000a00000 rw-s 00000000 00:01 7  /memfd:z (deleted)\n\
        KernelPageSize:        4 kB\nShmemPmdMapped:        0 kB\n";

    #[test]
    fn the_granted_pages_are_parsed() {
        let at = |address| Backing::from_smaps(SMAPS, address);
        assert_eq!(at(0x7f00_0000_0000), Some(Backing::Reserved { page_bytes: 2 << 20 }));
        assert_eq!(at(0x7f00_0040_0000), Some(Backing::Transparent { bytes: 2 << 20 }));
        assert_eq!(at(0x7f00_0080_0000), Some(Backing::Base));
        assert_eq!(at(0x1000), None);
        assert_eq!(Backing::from_smaps("", 0), None);
    }
}

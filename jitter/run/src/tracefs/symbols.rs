//! Names of the kernel's functions by address, from /proc/kallsyms.

use lowlat_trace::TraceNames;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

/// Maximum number of bytes read from /proc/kallsyms; 200,000 symbols take about 10 MB.
pub(super) const SYMBOLS_BYTES_MAX: u64 = 256 << 20;
/// An address further than this after the nearest symbol belongs to code without a symbol.
const DISTANCE_MAX: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionNames {
    /// By address: "vmstat_update", `nf_hook [nf_tables]`, "name+0x10" inside a function. Addresses without a
    /// name are left out.
    pub names: BTreeMap<u64, String>,
    /// True if the kernel hides addresses from this user (`kernel.kptr_restrict`), in which case there are no names.
    pub is_hidden: bool,
}

impl FunctionNames {
    /// Adds the names to those of a trace.
    pub fn add_to(self, names: &mut TraceNames) {
        names.functions.extend(self.names);
    }
}

/// Looks up functions in the running kernel's symbol table. The kernel formats the whole table for this, so
/// call it after the run. Only the requested names are kept.
///
/// # Errors
/// The system's error for /proc/kallsyms.
pub fn function_names(addresses: &BTreeSet<u64>) -> io::Result<FunctionNames> {
    if addresses.is_empty() {
        return Ok(FunctionNames::default());
    }
    names_in(
        BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms")?.take(SYMBOLS_BYTES_MAX)),
        addresses,
    )
}

/// The nearest symbol at or below each address. The table need not be sorted.
pub(super) fn names_in(mut table: impl BufRead, addresses: &BTreeSet<u64>) -> io::Result<FunctionNames> {
    let wanted: Vec<u64> = addresses.iter().copied().collect();
    // For each address, the nearest symbol between the previous address and itself.
    let mut nearest: Vec<Option<(u64, String)>> = vec![None; wanted.len()];
    let (mut symbol_count, mut zero_count) = (0_u64, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        if table.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let Some((address, name)) = symbol(&line) else { continue };
        symbol_count += 1;
        zero_count += u64::from(address == 0);
        let place = wanted.partition_point(|wanted| *wanted < address);
        let Some(best) = nearest.get_mut(place) else { continue };
        if best.as_ref().is_none_or(|(known, _)| *known < address) {
            *best = Some((address, name));
        }
    }
    let mut below: Option<(u64, String)> = None;
    let mut names = BTreeMap::new();
    for (address, found) in wanted.into_iter().zip(nearest) {
        below = found.or(below);
        match &below {
            Some((start, name)) if *start == address => {
                names.insert(address, name.clone());
            }
            Some((start, name)) if *start > 0 && address - start <= DISTANCE_MAX => {
                names.insert(address, format!("{name}+{:#x}", address - start));
            }
            _ => {}
        }
    }
    Ok(FunctionNames { names, is_hidden: symbol_count > 0 && zero_count == symbol_count })
}

/// The address and name of a function in a line `ffffffff81000000 T _stext` or, for a module,
/// `ffffffffc0000000 t name [module]`. `None` for data and lines that are not symbols.
fn symbol(line: &[u8]) -> Option<(u64, String)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    if !matches!(words.next()?, "T" | "t" | "W" | "w") {
        return None;
    }
    let name = words.next()?;
    Some((address, words.next().map_or_else(|| name.to_owned(), |module| format!("{name} {module}"))))
}

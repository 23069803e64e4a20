//! Names of a program's variables and instructions: the symbol table and debug information (DWARF) of an ELF file.
#![allow(non_upper_case_globals, reason = "names of the DWARF standard in patterns")]

use gimli::{
    AttributeValue, DW_AT_byte_size, DW_AT_count, DW_AT_data_member_location, DW_AT_location, DW_AT_name,
    DW_AT_type, DW_AT_upper_bound, DW_TAG_array_type, DW_TAG_class_type, DW_TAG_const_type, DW_TAG_member,
    DW_TAG_structure_type, DW_TAG_subrange_type, DW_TAG_typedef, DW_TAG_union_type, DW_TAG_variable,
    DW_TAG_volatile_type, EndianSlice, LittleEndian, Operation, Unit, UnitOffset,
};
use object::{
    CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind, read::elf::ElfFile64,
};

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

/// Types that a name leads through at most: structures in structures, arrays of arrays.
const LEVELS_MAX: usize = 16;

/// A program or library. Addresses are those of the file.
pub struct Program<'a> {
    /// Place in the file, address, size in memory.
    segments: Vec<(u64, u64, u64)>,
    symbols: Vec<Symbol<'a>>,
    dwarf: gimli::Dwarf<Slice<'a>>,
}

struct Symbol<'a> {
    address: u64,
    bytes: u64,
    name: &'a str,
    is_code: bool,
}

impl<'a> Program<'a> {
    /// Parses a file; `None` if it is no 64-bit ELF file.
    pub fn parse(file: &'a [u8]) -> Option<Self> {
        let elf = ElfFile64::<object::LittleEndian>::parse(file).ok()?;
        let segments = elf.segments().map(|of| (of.file_range().0, of.address(), of.size())).collect();
        let symbols =
            elf.symbols().chain(elf.dynamic_symbols()).filter(|of| !of.is_undefined() && of.size() > 0);
        let symbols = symbols.filter_map(|of| {
            let is_code = match of.kind() {
                SymbolKind::Text => true,
                SymbolKind::Data => false,
                _ => return None,
            };
            Some(Symbol { address: of.address(), bytes: of.size(), name: of.name().ok()?, is_code })
        });
        let section = |id: gimli::SectionId| -> Result<Slice<'a>, gimli::Error> {
            let section = elf.section_by_name(id.name());
            // Compressed sections count as missing.
            let plain = section.filter(|section| {
                section.compressed_file_range().is_ok_and(|range| range.format == CompressionFormat::None)
            });
            Ok(EndianSlice::new(plain.and_then(|section| section.data().ok()).unwrap_or(&[]), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        Some(Self { segments, symbols: symbols.collect(), dwarf })
    }

    /// Converts a place in the file to an address.
    pub fn address_of(&self, place: u64) -> Option<u64> {
        // The last one, since a segment's first page holds the end of the one before it too.
        let segment = self.segments.iter().rev().find(|of| of.0 & !0xfff <= place && place < of.0 + of.2)?;
        (segment.1 + place).checked_sub(segment.0)
    }

    /// True if a segment contains an address.
    pub fn has(&self, address: u64) -> bool {
        self.segments.iter().any(|of| (of.1..of.1 + of.2).contains(&address))
    }

    /// The variable at an address, with the field if the debug information has it: `stats[2].sent`, `stats+8`.
    pub fn variable(&self, address: u64) -> Option<String> {
        self.described(address).or_else(|| self.symbol(address, false))
    }

    /// The function of an instruction.
    pub fn function(&self, address: u64) -> Option<String> {
        let symbol = self.symbol(address, true)?;
        Some(symbol.split_once('+').map_or(symbol.clone(), |(name, _)| name.to_owned()))
    }

    fn symbol(&self, address: u64, is_code: bool) -> Option<String> {
        let mut of_kind = self.symbols.iter().filter(|of| of.is_code == is_code);
        let symbol = of_kind.find(|of| (of.address..of.address + of.bytes).contains(&address))?;
        let offset = address - symbol.address;
        Some(if offset == 0 { symbol.name.to_owned() } else { format!("{}+{offset}", symbol.name) })
    }

    fn described(&self, address: u64) -> Option<String> {
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            let mut entries = unit.entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                if entry.tag() != DW_TAG_variable {
                    continue;
                }
                let (Some(start), Some(of_type)) = (self.location(&unit, entry), type_of(entry)) else {
                    continue;
                };
                let Some(offset) = address.checked_sub(start) else { continue };
                if offset >= size(&unit, of_type, LEVELS_MAX).unwrap_or(0) {
                    continue;
                }
                let name = self.name(&unit, entry).or_else(|| self.symbol(start, false))?;
                return Some(format!("{name}{}", self.path(&unit, of_type, offset, LEVELS_MAX)));
            }
        }
        None
    }

    /// The fixed address of a variable.
    fn location(&self, unit: &Unit<Slice<'a>>, entry: &Entry<'a>) -> Option<u64> {
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(DW_AT_location) else { return None };
        match expression.operations(unit.encoding()).next() {
            Ok(Some(Operation::Address { address })) => Some(address),
            Ok(Some(Operation::AddressIndex { index })) => self.dwarf.address(unit, index).ok(),
            _ => None,
        }
    }

    fn name(&self, unit: &Unit<Slice<'a>>, entry: &Entry<'a>) -> Option<String> {
        let name = self.dwarf.attr_string(unit, entry.attr_value(DW_AT_name)?).ok()?;
        Some(String::from_utf8_lossy(name.slice()).into_owned())
    }

    /// Returns the path to an offset in a type: `[2].sent`, or `+4` if it leads to no member.
    fn path(&self, unit: &Unit<Slice<'a>>, of_type: UnitOffset, offset: u64, levels: usize) -> String {
        self.step(unit, of_type, offset, levels).unwrap_or_else(|| match offset {
            0 => String::new(),
            _ => format!("+{offset}"),
        })
    }

    fn step(
        &self,
        unit: &Unit<Slice<'a>>,
        of_type: UnitOffset,
        offset: u64,
        levels: usize,
    ) -> Option<String> {
        let levels = levels.checked_sub(1)?;
        let entry = unit.entry(of_type).ok()?;
        match entry.tag() {
            DW_TAG_typedef | DW_TAG_const_type | DW_TAG_volatile_type => {
                self.step(unit, type_of(&entry)?, offset, levels)
            }
            DW_TAG_array_type => {
                let inner = type_of(&entry)?;
                let bytes = size(unit, inner, levels)?;
                let rest = self.path(unit, inner, offset.checked_rem(bytes)?, levels);
                let mut index = offset / bytes;
                let mut places = String::new();
                for length in lengths(unit, of_type).into_iter().rev() {
                    places = format!("[{}]{places}", index.checked_rem(length)?);
                    index /= length;
                }
                Some(places + &rest)
            }
            DW_TAG_structure_type | DW_TAG_class_type | DW_TAG_union_type => {
                let mut tree = unit.entries_tree(Some(of_type)).ok()?;
                let mut children = tree.root().ok()?.children();
                let mut found: Option<(u64, String, UnitOffset)> = None;
                while let Ok(Some(child)) = children.next() {
                    let entry = child.entry();
                    let place = entry.attr_value(DW_AT_data_member_location);
                    let place = place.map_or(Some(0), |value| value.udata_value());
                    let (DW_TAG_member, Some(place)) = (entry.tag(), place) else { continue };
                    if place <= offset && found.as_ref().is_none_or(|found| found.0 < place) {
                        found = Some((place, self.name(unit, entry).unwrap_or_default(), type_of(entry)?));
                    }
                }
                let (place, name, inner) = found?;
                let rest = offset - place;
                if rest >= size(unit, inner, levels).unwrap_or(u64::MAX) {
                    return None;
                }
                Some(format!(".{name}{}", self.path(unit, inner, rest, levels)))
            }
            _ => None,
        }
    }

    /// The source line of an instruction: `sender.c:41`.
    pub fn line(&self, address: u64) -> Option<String> {
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            if let Some(line) = self.line_in(&unit, address) {
                return Some(line);
            }
        }
        None
    }

    fn line_in(&self, unit: &Unit<Slice<'a>>, address: u64) -> Option<String> {
        let mut ranges = self.dwarf.unit_ranges(unit).ok()?;
        let mut is_inside = false;
        while let Ok(Some(range)) = ranges.next() {
            is_inside |= (range.begin..range.end).contains(&address);
        }
        let mut rows = unit.line_program.clone().filter(|_| is_inside)?.rows();
        // The row before an address, if it is of the same sequence.
        let mut last: Option<(u64, u64, u64)> = None;
        let mut found = None;
        while let Ok(Some((_, row))) = rows.next_row() {
            if let Some((start, file, line)) = last
                && (start..row.address()).contains(&address)
            {
                found = Some((file, line));
                break;
            }
            let line = row.line().map_or(0, std::num::NonZero::get);
            last = (!row.end_sequence()).then_some((row.address(), row.file_index(), line));
        }
        let (file, line) = found.filter(|(_, line)| *line > 0)?;
        let file = unit.line_program.as_ref()?.header().file(file)?;
        let path = self.dwarf.attr_string(unit, file.path_name()).ok()?;
        let path = String::from_utf8_lossy(path.slice()).into_owned();
        Some(format!("{}:{line}", path.rsplit('/').next().unwrap_or(&path)))
    }
}

/// The type of an entry, if it is in the same unit.
fn type_of(entry: &Entry) -> Option<UnitOffset> {
    match entry.attr_value(DW_AT_type) {
        Some(AttributeValue::UnitRef(offset)) => Some(offset),
        _ => None,
    }
}

/// Returns the size of a type in bytes.
fn size(unit: &Unit<Slice>, of_type: UnitOffset, levels: usize) -> Option<u64> {
    let entry = unit.entry(of_type).ok()?;
    if let Some(bytes) = entry.attr_value(DW_AT_byte_size).and_then(|value| value.udata_value()) {
        return Some(bytes);
    }
    let inner = size(unit, type_of(&entry)?, levels.checked_sub(1)?)?;
    if entry.tag() != DW_TAG_array_type {
        return Some(inner);
    }
    lengths(unit, of_type).into_iter().try_fold(inner, u64::checked_mul)
}

/// Lengths of an array, one for each dimension.
fn lengths(unit: &Unit<Slice>, array: UnitOffset) -> Vec<u64> {
    let mut lengths = Vec::new();
    let Ok(mut tree) = unit.entries_tree(Some(array)) else { return lengths };
    let Ok(root) = tree.root() else { return lengths };
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        if entry.tag() == DW_TAG_subrange_type {
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            lengths.extend(
                number(DW_AT_count).or_else(|| number(DW_AT_upper_bound).map(|last| last.saturating_add(1))),
            );
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_have_no_names() {
        assert!(Program::parse(b"no program").is_none());
        let own = std::fs::read("/proc/self/exe").unwrap();
        let program = Program::parse(&own).unwrap();
        assert!(
            program.variable(1).is_none()
                && program.function(1).is_none()
                && program.line(u64::MAX).is_none()
        );
        // Debug information that ends early.
        for bytes in [64, 4_096, own.len() / 2] {
            if let Some(program) = Program::parse(&own[..bytes]) {
                assert!(program.variable(1).is_none());
            }
        }
    }
}

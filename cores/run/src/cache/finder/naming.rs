//! Names the data and code at addresses of a program.

use super::process::Process;
use crate::watch::{Mapping, program_bytes};
use lowlat_cache::finder::{Code, FinderRecord, Place, names::Program, plain};
use std::collections::{BTreeMap, BTreeSet};

/// Names the fields and the code of a record.
pub fn name(record: &mut FinderRecord, processes: &[Process]) {
    let findings = record.findings();
    let fields = findings.iter().flat_map(|finding| &finding.fields);
    let users = fields.clone().flat_map(|field| &field.users);
    let mut addresses: BTreeSet<u64> = fields.map(|field| field.address).collect();
    addresses.extend(record.suspects().iter().map(|suspect| suspect.start));
    let code: BTreeSet<u64> = users.map(|user| user.code).filter(|code| *code > 0).collect();
    for process in processes {
        let of = |all: &BTreeSet<u64>| {
            all.iter().filter(|at| process.is_tagged(**at)).map(|at| plain(*at)).collect()
        };
        let (mut places, mut names) = named(process.pid, &process.mappings, &of(&addresses), &of(&code));
        for place in &mut places {
            place.address = process.tagged(place.address);
        }
        for code in &mut names {
            code.address = process.tagged(code.address);
        }
        record.places.append(&mut places);
        record.code.append(&mut names);
    }
}

/// Names addresses of a process. A breakpoint reports the instruction after the one that it saw.
fn named(
    pid: u32,
    mappings: &[Mapping],
    addresses: &BTreeSet<u64>,
    code: &BTreeSet<u64>,
) -> (Vec<Place>, Vec<Code>) {
    let mut places: Vec<Place> = addresses.iter().map(|address| place(*address, mappings)).collect();
    let mut names: Vec<Code> = code.iter().map(|address| function(*address, mappings)).collect();
    let mut files: BTreeMap<&str, &Mapping> = BTreeMap::new();
    for address in addresses.iter().chain(code) {
        if let Some(mapping) = file_before(*address, mappings) {
            files.entry(&mapping.name).or_insert(mapping);
        }
    }
    for (file, mapping) in files {
        let Ok(bytes) = program_bytes(pid, file) else { continue };
        let Some(program) = Program::parse(&bytes) else { continue };
        let Some(start) = program.address_of(mapping.offset) else { continue };
        let in_file = |address: u64| {
            let is_near = file_before(address, mappings).is_some_and(|of| of.name == file);
            let address = address.wrapping_sub(mapping.start).wrapping_add(start);
            Some(address).filter(|address| is_near && program.has(*address))
        };
        for place in &mut places {
            if let Some(name) = in_file(place.address).and_then(|address| program.variable(address)) {
                (place.name, place.is_variable) = (name, true);
            }
        }
        for code in &mut names {
            let Some(address) = in_file(code.address.wrapping_sub(1)) else { continue };
            if let Some(function) = program.function(address) {
                code.function = function;
            }
            code.line = program.line(address).unwrap_or_default();
        }
    }
    (places, names)
}

/// The last mapping of a file that starts before an address. A program's zeroed data follows it.
fn file_before(address: u64, mappings: &[Mapping]) -> Option<&Mapping> {
    mappings.iter().rfind(|mapping| mapping.start <= address && mapping.inode != 0)
}

fn place(address: u64, mappings: &[Mapping]) -> Place {
    let mapping = mappings.iter().find(|mapping| mapping.has(address));
    let name = match mapping.map_or("", |mapping| &mapping.name) {
        "[heap]" => "heap",
        "[stack]" => "stack",
        "" => "memory",
        // Shared without a file; SysV, memfd and POSIX objects have names.
        "/dev/zero (deleted)" => "shared memory",
        name => name.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or(name),
    };
    Place { address, name: name.to_owned(), is_variable: false }
}

fn function(address: u64, mappings: &[Mapping]) -> Code {
    let mapping = mappings.iter().find(|mapping| mapping.has(address));
    let file = mapping.map_or("", |mapping| mapping.name.rsplit('/').next().unwrap_or_default());
    Code { address, function: file.to_owned(), line: String::new() }
}

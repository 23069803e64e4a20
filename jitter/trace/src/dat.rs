//! Writes a trace as a trace.dat, version 6 (trace-cmd.dat.v6(5)), which `trace-cmd report` and KernelShark open.
//!
//! ```text
//! 17 08 44 "tracing" "6\0" | 0: little endian, as the pages of x86-64 and aarch64 | bytes of a long u8 | bytes of a page u32
//! "header_page\0" u64 text | "header_event\0" u64 text
//! formats of ftrace: u32, each u64 text | systems: u32, each name\0 u32, each u64 text
//! kallsyms: u32 text | printk_formats: u32 text | names of threads: u64 text | CPUs u32
//! "options  \0", each u16 id, u32 length, data | u16 0
//! "flyrecord\0", for each CPU u64 place and u64 length of its pages | pages, each at a multiple of a page
//! ```
//! The option of a second buffer has the place of its own "flyrecord", and its name.

use super::TraceClock;
use std::collections::BTreeMap;

const OPTION_BUFFER: u16 = 3;
const OPTION_CLOCK: u16 = 4;
/// A factor u32, a shift to the right u32 and an offset u64, which convert stamps to nanoseconds.
const OPTION_TICKS_TO_NS: u16 = 14;
const SHIFT: u32 = 31;

/// Contents of a trace.dat file.
#[derive(Debug, Clone)]
pub struct TraceFile {
    pub page_bytes: usize,
    /// The texts of `events/header_page` and `events/header_event`.
    pub headers: [String; 2],
    /// The format of each event, by its path below `events/`.
    pub formats: BTreeMap<String, String>,
    /// `/proc/kallsyms`; empty if the addresses are hidden.
    pub kallsyms: String,
    pub printk_formats: String,
    /// Names of threads, as lines "47 kworker/1:2".
    pub threads: String,
    /// The clock of the stamps, and the frequency of the processor's counter.
    pub clock: (TraceClock, u64),
    /// Sub-buffers by CPU.
    pub pages: BTreeMap<u32, Vec<u8>>,
    /// Those of a second trace, in which CPUs send to others.
    pub senders: BTreeMap<u32, Vec<u8>>,
}

impl TraceFile {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
        number(&mut out, 4, self.page_bytes);
        for (name, text) in ["header_page\0", "header_event\0"].iter().zip(&self.headers) {
            out.extend(name.bytes());
            sized(&mut out, 8, text.as_bytes());
        }
        let mut systems = BTreeMap::<&str, Vec<&String>>::from([("ftrace", Vec::new())]);
        for (path, text) in &self.formats {
            systems.entry(path.split('/').next().unwrap_or_default()).or_default().push(text);
        }
        let own = systems.remove("ftrace").unwrap_or_default();
        let put_formats = |out: &mut Vec<u8>, formats: &[&String]| {
            number(out, 4, formats.len());
            for text in formats {
                sized(out, 8, text.as_bytes());
            }
        };
        put_formats(&mut out, &own);
        number(&mut out, 4, systems.len());
        for (system, formats) in &systems {
            out.extend(system.bytes().chain([0]));
            put_formats(&mut out, formats);
        }
        for (width, text) in [(4, &self.kallsyms), (4, &self.printk_formats), (8, &self.threads)] {
            sized(&mut out, width, text.as_bytes());
        }
        let cpus = self.pages.keys().chain(&mut self.senders.keys()).max().map_or(1, |cpu| *cpu as usize + 1);
        number(&mut out, 4, cpus);
        out.extend(b"options  \0");
        let (clock, hz) = self.clock;
        option(&mut out, OPTION_CLOCK, format!("[{}]\0", clock.name()).as_bytes());
        let factor = (1_000_000_000_u64 << SHIFT).checked_div(hz).filter(|_| clock == TraceClock::X86Tsc);
        if let Some(factor) = factor.and_then(|factor| u32::try_from(factor).ok()) {
            let data = [factor.to_le_bytes(), SHIFT.to_le_bytes(), [0; 4], [0; 4]].concat();
            option(&mut out, OPTION_TICKS_TO_NS, &data);
        }
        option(&mut out, OPTION_BUFFER, b"\0\0\0\0\0\0\0\0senders\0");
        let place = out.len() - 16;
        number(&mut out, 2, 0);
        self.put(&mut out, cpus, &self.pages);
        let second = out.len();
        patch(&mut out, place, second);
        self.put(&mut out, cpus, &self.senders);
        out
    }

    fn put(&self, out: &mut Vec<u8>, cpus: usize, pages: &BTreeMap<u32, Vec<u8>>) {
        out.extend(b"flyrecord\0");
        let table = out.len();
        out.resize(table + 16 * cpus, 0);
        for (cpu, pages) in pages {
            let start = out.len().next_multiple_of(self.page_bytes.max(1));
            out.resize(start, 0);
            patch(out, table + 16 * *cpu as usize, start);
            patch(out, table + 16 * *cpu as usize + 8, pages.len());
            out.extend(pages);
        }
    }
}

fn number(out: &mut Vec<u8>, width: usize, number: usize) {
    out.extend((number as u64).to_le_bytes().iter().take(width));
}

fn sized(out: &mut Vec<u8>, width: usize, bytes: &[u8]) {
    number(out, width, bytes.len());
    out.extend(bytes);
}

fn option(out: &mut Vec<u8>, id: u16, data: &[u8]) {
    out.extend(id.to_le_bytes());
    sized(out, 4, data);
}

fn patch(out: &mut [u8], at: usize, number: usize) {
    out.iter_mut().skip(at).zip((number as u64).to_le_bytes()).for_each(|(to, from)| *to = from);
}

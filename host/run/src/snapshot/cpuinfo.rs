//! /proc/cpuinfo: blocks of "key : value" lines, one block per CPU.

use crate::Root;
use lowlat_host::{CpuId, Reading};
use std::collections::BTreeMap;

const PATH: &str = "/proc/cpuinfo";

/// The blocks of /proc/cpuinfo. If a key occurs twice in a block, the first counts.
#[derive(Debug, Default)]
pub(super) struct CpuInfo {
    blocks: Vec<BTreeMap<String, String>>,
}

impl CpuInfo {
    /// Unparsable if the file has no line with a colon.
    pub(super) fn read(root: &Root) -> Reading<Self> {
        root.read(PATH).parse(PATH, "lines such as \"processor : 0\"", |text| {
            let info = Self::parse(text);
            (!info.blocks.is_empty()).then_some(info)
        })
    }

    fn parse(text: &str) -> Self {
        let mut blocks = vec![BTreeMap::new()];
        for line in text.lines() {
            match (line.split_once(':'), blocks.last_mut()) {
                (Some((key, value)), Some(block)) => {
                    block.entry(key.trim().to_owned()).or_insert_with(|| value.trim().to_owned());
                }
                (None, Some(block)) if line.trim().is_empty() && !block.is_empty() => {
                    blocks.push(BTreeMap::new());
                }
                _ => {}
            }
        }
        blocks.retain(|block| !block.is_empty());
        Self { blocks }
    }

    /// The blocks that name a processor, with its number.
    pub(super) fn by_cpu(&self) -> impl Iterator<Item = (CpuId, &BTreeMap<String, String>)> {
        self.blocks.iter().filter_map(|block| {
            let cpu = block.get("processor")?.parse().ok().filter(|cpu| *cpu <= lowlat_host::CPU_ID_MAX)?;
            Some((cpu, block))
        })
    }

    /// The value of a key in the first block that has it.
    pub(super) fn first(&self, key: &str) -> Option<&str> {
        self.blocks.iter().find_map(|block| block.get(key)).map(String::as_str)
    }

    /// All values of a key.
    pub(super) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.blocks.iter().filter_map(move |block| block.get(key)).map(String::as_str)
    }

    /// The values of two keys in each block that has both.
    pub(super) fn pairs<'a>(
        &'a self,
        one: &'a str,
        other: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.blocks
            .iter()
            .filter_map(move |block| Some((block.get(one)?.as_str(), block.get(other)?.as_str())))
    }

    /// The value of a key as a reading of this file.
    pub(super) fn value<T: std::str::FromStr>(info: &Reading<Self>, key: &str, expected: &str) -> Reading<T> {
        info.as_ref().and_then(|info| match info.first(key) {
            Some(raw) => Reading::understood(raw.parse().ok(), PATH, &format!("{key}: {raw}"), expected),
            None => Reading::Absent,
        })
    }
}

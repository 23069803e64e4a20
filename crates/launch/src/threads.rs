//! Which CPU each thread gets, as threads appear.

use lowlat_host::{CpuId, CpuSet, snapshot::component_matches};
use std::collections::BTreeSet;

/// CPUs of threads by name. The first pattern that matches applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadMap(Vec<(String, CpuSet)>);

impl ThreadMap {
    /// Parses "md=3,worker*=4-5": names of threads, in which `*` matches any text, with their CPUs. A comma within a
    /// CPU list is written "+".
    ///
    /// # Errors
    /// The entry that is wrong, with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entry = |entry: &str| {
            let (name, cpus) = entry
                .rsplit_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| format!("\"{entry}\": expected NAME=CPUS, such as md=3"))?;
            let cpus = CpuSet::parse_list(&cpus.replace('+', ","))
                .map_err(|error| format!("\"{entry}\": {error}"))?;
            if cpus.is_empty() { Err(format!("\"{entry}\": no CPUs")) } else { Ok((name.to_owned(), cpus)) }
        };
        Ok(Self(text.split(',').map(entry).collect::<Result<_, _>>()?))
    }

    /// Returns all CPUs of the map.
    pub fn cpus(&self) -> CpuSet {
        self.0.iter().flat_map(|(_, cpus)| cpus.iter()).collect()
    }

    fn get(&self, name: &str) -> Option<&CpuSet> {
        self.0.iter().find(|(pattern, _)| component_matches(pattern, name)).map(|(_, cpus)| cpus)
    }
}

/// Assigns CPUs to the threads of one process in order of appearance.
#[derive(Debug, Clone)]
pub struct Pins {
    cpus: Vec<CpuId>,
    map: ThreadMap,
    /// Threads with a place in `cpus`: `None` after they ended.
    places: Vec<Option<u32>>,
    /// Threads that the map named.
    named: BTreeSet<u32>,
}

impl Pins {
    /// Assigns these CPUs, in their order.
    pub fn new(cpus: Vec<CpuId>, map: ThreadMap) -> Self {
        Self { cpus, map, places: Vec::new(), named: BTreeSet::new() }
    }

    /// Takes the running threads with their names, and returns those to pin now, each with its CPUs. A new thread gets
    /// the CPU with the fewest threads; the CPU of an ended thread is free again. A thread that is renamed to a name
    /// of the map moves there.
    pub fn update(&mut self, running: &[(u32, String)]) -> Vec<(u32, CpuSet)> {
        let is_running = |tid: u32| running.iter().any(|(running, _)| *running == tid);
        self.named.retain(|tid| is_running(*tid));
        for place in &mut self.places {
            *place = place.filter(|tid| is_running(*tid));
        }
        let mut to_pin = Vec::new();
        for (tid, name) in running {
            if self.named.contains(tid) {
                continue;
            }
            let at = self.places.iter().position(|place| *place == Some(*tid));
            if let Some(cpus) = self.map.get(name) {
                if let Some(at) = at {
                    self.places[at] = None;
                }
                self.named.insert(*tid);
                to_pin.push((*tid, cpus.clone()));
            } else if at.is_none() && !self.cpus.is_empty() {
                to_pin.push((*tid, CpuSet::of(self.place(*tid))));
            }
        }
        to_pin
    }

    /// Returns the number of threads that share a CPU with another, without those of the map.
    pub fn crowded(&self) -> usize {
        self.places.iter().flatten().count().saturating_sub(self.cpus.len())
    }

    /// Gives a thread the first free place. Place `n` is on CPU `n` modulo the number of CPUs.
    fn place(&mut self, tid: u32) -> CpuId {
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(tid);
        self.cpus[at % self.cpus.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(list: &[(u32, &str)]) -> Vec<(u32, String)> {
        list.iter().map(|(tid, name)| (*tid, (*name).to_owned())).collect()
    }

    fn pinned(pins: &mut Pins, list: &[(u32, &str)]) -> Vec<(u32, String)> {
        pins.update(&threads(list)).into_iter().map(|(tid, cpus)| (tid, cpus.to_list())).collect()
    }

    #[test]
    fn each_new_thread_gets_the_next_cpu_once() {
        let mut pins = Pins::new(vec![3, 5], ThreadMap::default());
        assert_eq!(pinned(&mut pins, &[(10, "a")]), [(10, "3".into())]);
        assert_eq!(pinned(&mut pins, &[(10, "a"), (11, "b")]), [(11, "5".into())]);
        assert_eq!(pins.crowded(), 0);
        assert_eq!(pinned(&mut pins, &[(10, "a"), (11, "b"), (12, "c")]), [(12, "3".into())]);
        assert_eq!(pins.crowded(), 1);
    }

    #[test]
    fn a_cpu_is_free_after_its_thread_ended() {
        let mut pins = Pins::new(vec![3, 5], ThreadMap::default());
        pins.update(&threads(&[(10, "a"), (11, "b")]));
        assert_eq!(pinned(&mut pins, &[(11, "b"), (12, "c")]), [(12, "3".into())]);
    }

    #[test]
    fn named_threads_get_their_cpus_also_when_renamed_later() {
        let map = ThreadMap::parse("md=7,worker*=1-2+4").unwrap();
        assert_eq!(map.cpus().to_list(), "1-2,4,7");
        let mut pins = Pins::new(vec![3], map);
        let expected = [(10, "3".to_owned()), (11, "1-2,4".into())];
        assert_eq!(pinned(&mut pins, &[(10, "main"), (11, "worker-1")]), expected);
        assert_eq!(pinned(&mut pins, &[(10, "md"), (11, "worker-1")]), [(10, "7".into())]);
        assert_eq!(pinned(&mut pins, &[(10, "md"), (12, "late")]), [(12, "3".into())]);
    }

    #[test]
    fn wrong_maps_are_refused_with_the_entry() {
        for (text, part) in [("md", "\"md\""), ("=3", "\"=3\""), ("md=x", "\"md=x\""), ("md=", "\"md=\"")] {
            assert!(ThreadMap::parse(text).unwrap_err().contains(part), "{text}");
        }
    }
}

//! Assignment of CPUs to threads as they appear.

use lowlat_host::{CpuId, CpuSet, snapshot::component_matches};
use std::collections::{BTreeMap, BTreeSet};

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

    /// The first pattern that matches a name, by its place, with its CPUs.
    fn get(&self, name: &str) -> Option<(usize, &CpuSet)> {
        let place = self.0.iter().position(|(pattern, _)| component_matches(pattern, name))?;
        Some((place, &self.0.get(place)?.1))
    }
}

/// Assigns CPUs to the threads of one process in order of appearance.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    cpus: Vec<CpuId>,
    map: ThreadMap,
    /// Threads with a place in `cpus`: `None` after they ended.
    places: Vec<Option<u32>>,
    /// Threads that the map named.
    named: BTreeSet<u32>,
    /// Patterns of the map that matched a thread, by their place.
    matched: BTreeSet<usize>,
    /// CPUs of each running thread that has some.
    given: BTreeMap<u32, CpuSet>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    /// The CPUs on which it may run, if it still exists.
    pub cpus: Option<CpuSet>,
}

/// Actions for the threads that run now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Update {
    /// Threads to pin, each with its CPUs.
    pub to_pin: Vec<(u32, CpuSet)>,
    /// Threads that have chosen other CPUs themselves. They are left there.
    pub moved: Vec<Thread>,
}

impl Pins {
    /// Assigns these CPUs, in their order.
    pub fn new(cpus: Vec<CpuId>, map: ThreadMap) -> Self {
        Self { cpus, map, ..Self::default() }
    }

    /// Takes the running threads. A new thread gets the CPU with the fewest threads; the CPU of an ended thread is free
    /// again. A thread that is renamed to a name of the map moves there. A thread is new only if it may run where its
    /// creator did, or on all CPUs: else it has chosen its CPUs itself.
    pub fn update(&mut self, running: &[Thread]) -> Update {
        let is_running = |tid: u32| running.iter().any(|thread| thread.tid == tid);
        let all: CpuSet = self.cpus.iter().copied().chain(self.map.cpus().iter()).collect();
        let inherited: Vec<CpuSet> = self.given.values().cloned().collect();
        self.given.retain(|tid, _| is_running(*tid));
        self.named.retain(|tid| is_running(*tid));
        for place in &mut self.places {
            *place = place.filter(|tid| is_running(*tid));
        }
        let mut update = Update::default();
        for thread in running {
            let Thread { tid, name, cpus } = thread;
            let has_moved = |cpus: &CpuSet| {
                if let Some(given) = self.given.get(tid) {
                    return !cpus.is_subset(given);
                }
                // The first thread starts on the first CPU, or on all.
                let first = self.cpus.first().copied().map(CpuSet::of);
                let is_inherited = Some(cpus) == first.as_ref() || inherited.contains(cpus);
                !is_inherited && !all.is_subset(cpus)
            };
            if cpus.as_ref().is_some_and(has_moved) {
                update.moved.push(thread.clone());
                continue;
            }
            if self.named.contains(tid) {
                continue;
            }
            let at = self.places.iter().position(|place| *place == Some(*tid));
            let to_pin = if let Some((place, cpus)) = self.map.get(name) {
                self.matched.insert(place);
                let cpus = cpus.clone();
                if let Some(at) = at {
                    self.places[at] = None;
                }
                self.named.insert(*tid);
                cpus
            } else if at.is_none() && !self.cpus.is_empty() {
                CpuSet::of(self.place(*tid))
            } else {
                continue;
            };
            self.given.insert(*tid, to_pin.clone());
            update.to_pin.push((*tid, to_pin));
        }
        update
    }

    /// Returns the names of the map that matched no thread so far.
    pub fn unmatched(&self) -> Vec<String> {
        let names = self.map.0.iter().enumerate();
        names.filter(|(place, _)| !self.matched.contains(place)).map(|(_, (name, _))| name.clone()).collect()
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

    fn threads(list: &[(u32, &str)]) -> Vec<Thread> {
        list.iter().map(|(tid, name)| Thread { tid: *tid, name: (*name).to_owned(), cpus: None }).collect()
    }

    fn pinned(pins: &mut Pins, list: &[(u32, &str)]) -> Vec<(u32, String)> {
        pins.update(&threads(list)).to_pin.into_iter().map(|(tid, cpus)| (tid, cpus.to_list())).collect()
    }

    #[test]
    fn a_thread_that_chose_its_cpus_is_left_there() {
        let thread =
            |tid, cpus: &str| Thread { tid, name: "x".into(), cpus: Some(CpuSet::parse_list(cpus).unwrap()) };
        let mut pins = Pins::new(vec![3, 5], ThreadMap::default());
        let first = pins.update(&[thread(10, "3"), thread(11, "3"), thread(12, "0-7"), thread(13, "4")]);
        let tids: Vec<u32> = first.to_pin.iter().map(|(tid, _)| *tid).collect();
        assert_eq!((tids, first.moved), (vec![10, 11, 12], vec![thread(13, "4")]));
        // A thread that inherits the CPU of a pinned thread has not moved; a thread that leaves its own has.
        let later = pins.update(&[thread(10, "3"), thread(11, "0-7"), thread(14, "5")]);
        assert_eq!((later.to_pin.len(), later.moved), (1, vec![thread(11, "0-7")]));
    }

    #[test]
    fn names_that_no_thread_had_are_known() {
        let mut pins = Pins::new(vec![3], ThreadMap::parse("md=7,td*=1").unwrap());
        pinned(&mut pins, &[(10, "td-1")]);
        assert_eq!(pins.unmatched(), ["md"]);
        pinned(&mut pins, &[(10, "td-1"), (11, "md")]);
        assert_eq!(pins.unmatched(), [""; 0]);
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

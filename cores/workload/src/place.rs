//! Choice of the CPU for each process.

use crate::Place;
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use lowlat_launch::{Place as Rule, order};

/// Returns the CPU of each process; empty if the kernel can choose, or if there are no CPUs. With more processes than
/// CPUs, the order starts again.
pub fn cpus_of(place: Place, topology: &Topology, usable: &CpuSet, processes: usize) -> Vec<CpuId> {
    let ordered = match place {
        Place::Kernel if usable.len() != 1 => return Vec::new(),
        Place::Kernel | Place::One => usable.iter().take(1).collect(),
        Place::Pack => order(&Rule::ClusterPack, topology, usable),
        Place::Spread => order(&Rule::ClusterSpread, topology, usable),
    };
    ordered.into_iter().cycle().take(processes).collect()
}

/// Returns the reason that a place cannot be distinguished from others on this host, for so many processes that may
/// wait for each other.
pub fn why_not(place: Place, topology: &Topology, usable: &CpuSet, processes: usize) -> Option<String> {
    let chosen = |place| cpus_of(place, topology, usable, processes);
    let sorted = |place| {
        let mut cpus = chosen(place);
        cpus.sort_unstable();
        cpus
    };
    match place {
        _ if usable.is_empty() => Some("no CPU can be used".to_owned()),
        Place::Pack | Place::Spread if usable.len() == 1 => Some("only one CPU can be used".to_owned()),
        Place::Pack if topology.clusters.is_empty() => {
            Some("no clusters: no second-level cache is shared by cores".to_owned())
        }
        Place::Pack if !is_cluster(topology, &chosen(place)) => {
            Some("no two cores of one cluster can be used".to_owned())
        }
        Place::Pack if processes > 2 && sorted(place) == sorted(Place::Spread) => {
            Some(format!("{processes} processes fill every CPU as spread does"))
        }
        Place::Spread if !topology.clusters.is_empty() && is_cluster(topology, &chosen(place)) => {
            Some("all usable CPUs are in one cluster".to_owned())
        }
        Place::Kernel | Place::One | Place::Pack | Place::Spread => None,
    }
}

/// True if the first two CPUs are in one cluster.
fn is_cluster(topology: &Topology, cpus: &[CpuId]) -> bool {
    let cluster = |place: usize| {
        let cpu = cpus.get(place)?;
        topology.clusters.iter().position(|cluster| cluster.cpus.contains(*cpu))
    };
    cluster(0).is_some() && cluster(0) == cluster(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::topology::Group;

    /// Cores without SMT; clusters of four if there are any.
    fn host(cpus: u32, has_clusters: bool) -> Topology {
        let group = |id: u32, first: u32, count: u32| Group {
            id: i64::from(id),
            cpus: (first..first + count).collect(),
        };
        Topology {
            online: (0..cpus).collect(),
            cores: (0..cpus).map(|cpu| group(cpu, cpu, 1)).collect(),
            clusters: if has_clusters {
                (0..cpus / 4).map(|id| group(id, id * 4, 4)).collect()
            } else {
                Vec::new()
            },
            ..Topology::default()
        }
    }

    /// Returns the number of processes in each cluster of four.
    fn per_cluster(cpus: &[CpuId]) -> Vec<usize> {
        let clusters = cpus.iter().map(|cpu| cpu / 4).max().map_or(0, |last| last + 1);
        (0..clusters).map(|cluster| cpus.iter().filter(|cpu| *cpu / 4 == cluster).count()).collect()
    }

    #[test]
    fn copies_sit_one_two_and_four_to_a_cluster_when_spread() {
        let topology = host(16, true);
        let spread = |copies| per_cluster(&cpus_of(Place::Spread, &topology, &topology.online, copies));
        assert_eq!([spread(4), spread(8), spread(16)], [vec![1; 4], vec![2; 4], vec![4; 4]]);
        let packed = |copies| per_cluster(&cpus_of(Place::Pack, &topology, &topology.online, copies));
        assert_eq!((packed(4), packed(8)), (vec![4], vec![4, 4]));
        let large = host(128, true);
        let spread = |copies| per_cluster(&cpus_of(Place::Spread, &large, &large.online, copies));
        assert_eq!((spread(32), spread(64)), (vec![1; 32], vec![2; 32]));
    }

    #[test]
    fn places_that_show_nothing_say_why() {
        let (plain, clusters) = (host(2, false), host(8, true));
        let why = |place, topology: &Topology, usable: &str, processes| {
            why_not(place, topology, &CpuSet::parse_list(usable).unwrap(), processes).unwrap_or_default()
        };
        assert!(why(Place::Pack, &plain, "0-1", 2).starts_with("no clusters"));
        assert!(why(Place::Spread, &plain, "0-1", 2).is_empty());
        assert!(why(Place::Spread, &plain, "1", 2).contains("only one CPU"));
        assert!(why(Place::Pack, &clusters, "0-7", 2).is_empty());
        assert!(why(Place::Pack, &clusters, "0-7", 8).contains("fill every CPU"));
        assert!(why(Place::Pack, &clusters, "0,4", 2).contains("no two cores"));
        assert!(why(Place::Spread, &clusters, "4-7", 2).contains("in one cluster"));
        assert!(Place::ALL.iter().skip(1).all(|place| !why(*place, &plain, "", 2).is_empty()));
        assert_eq!(cpus_of(Place::Kernel, &plain, &CpuSet::of(1), 2), [1, 1], "no choice");
        assert_eq!(cpus_of(Place::Spread, &plain, &CpuSet::new(), 4), Vec::<CpuId>::new());
    }
}

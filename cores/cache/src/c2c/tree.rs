//! Groups within groups: CPUs that are nearer to each other than to the rest.

use lowlat_host::{CpuId, CpuSet};

/// A group of CPUs whose farthest members are `level` apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Cpu(CpuId),
    /// Groups of which any two members are `level` apart.
    /// - `level`: level of latency between the children.
    /// - `children`: the children, at least two.
    Group {
        level: usize,
        children: Vec<Tree>,
    },
}

impl Tree {
    /// A member that represents the group.
    pub fn member(&self) -> CpuId {
        match self {
            Self::Cpu(cpu) => *cpu,
            Self::Group { children, .. } => children.first().map_or(0, Self::member),
        }
    }

    pub fn members(&self) -> Vec<CpuId> {
        match self {
            Self::Cpu(cpu) => vec![*cpu],
            Self::Group { children, .. } => children.iter().flat_map(Self::members).collect(),
        }
    }

    fn contains(&self, cpu: CpuId) -> bool {
        match self {
            Self::Cpu(own) => *own == cpu,
            Self::Group { children, .. } => children.iter().any(|child| child.contains(cpu)),
        }
    }

    /// Adds a CPU that is `level` apart from the member `near`. `ask` returns the level between the CPU and a member,
    /// `rank` how likely a member is near it: the lowest is asked first.
    pub fn insert(
        self,
        cpu: CpuId,
        (near, level): (CpuId, usize),
        ask: &mut dyn FnMut(CpuId) -> Option<usize>,
        rank: &dyn Fn(CpuId) -> u64,
    ) -> Self {
        match self {
            Self::Group { level: own, mut children } if own >= level => {
                let mut place = children.iter().position(|child| child.contains(near));
                let mut found = (near, level);
                if own == level {
                    // As far from `near` as the children are from each other: perhaps near another child.
                    place = None;
                    let mut others: Vec<(u64, usize)> = children
                        .iter()
                        .enumerate()
                        .filter(|(_, child)| !child.contains(near))
                        .map(|(place, child)| (rank(nearest(child, rank)), place))
                        .collect();
                    others.sort_unstable();
                    for (_, other) in others {
                        let Some(child) = children.get(other) else { continue };
                        let member = nearest(child, rank);
                        if let Some(below) = ask(member).filter(|below| *below < own) {
                            (place, found) = (Some(other), (member, below));
                            break;
                        }
                    }
                }
                match place.filter(|place| *place < children.len()) {
                    Some(place) => {
                        // The order of children decides which member represents the group.
                        let child = children.remove(place);
                        children.insert(place, child.insert(cpu, found, ask, rank));
                    }
                    None => children.push(Self::Cpu(cpu)),
                }
                Self::Group { level: own, children }
            }
            tree => Self::Group { level, children: vec![tree, Self::Cpu(cpu)] },
        }
    }

    /// The groups whose members are at most `level` apart, single CPUs included.
    pub fn cut(&self, level: usize) -> Vec<CpuSet> {
        match self {
            Self::Group { level: own, children } if *own > level => {
                children.iter().flat_map(|child| child.cut(level)).collect()
            }
            _ => vec![self.members().into_iter().collect()],
        }
    }
}

/// The likeliest member of a group.
fn nearest(tree: &Tree, rank: &dyn Fn(CpuId) -> u64) -> CpuId {
    tree.members().into_iter().min_by_key(|cpu| rank(*cpu)).unwrap_or_else(|| tree.member())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two clusters of two CPUs.
    fn level(a: CpuId, b: CpuId) -> usize {
        if a / 2 == b / 2 {
            0
        } else if a / 4 == b / 4 {
            1
        } else {
            2
        }
    }

    #[test]
    fn groups_are_found_in_any_order_of_arrival() {
        for order in [[0, 1, 2, 3, 4, 5, 6, 7], [0, 2, 4, 6, 1, 3, 5, 7], [7, 0, 5, 2, 6, 1, 4, 3]] {
            let mut tree = Tree::Cpu(order[0]);
            for cpu in &order[1..] {
                let near = tree.member();
                let first = level(*cpu, near);
                tree = tree.insert(*cpu, (near, first), &mut |other| Some(level(*cpu, other)), &u64::from);
            }
            let groups = |at: usize| {
                let mut groups: Vec<String> = tree.cut(at).iter().map(ToString::to_string).collect();
                groups.sort();
                groups
            };
            assert_eq!(groups(0), ["0-1", "2-3", "4-5", "6-7"], "{order:?}");
            assert_eq!(groups(1), ["0-3", "4-7"], "{order:?}");
            assert_eq!(groups(2), ["0-7"], "{order:?}");
        }
    }
}

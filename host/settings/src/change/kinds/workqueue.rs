//! The CPUs of the workers of a workqueue, or of all unbound work, as a CPU list.

use crate::change::{
    Kind, KindFacts, Mechanism, Rival,
    grammar::{CPU_LIST, PATH},
    kind::{list, put_list},
};
use lowlat_host::{HostSnapshot, Reading};

pub(super) struct WorkqueueKind<'a> {
    pub(super) name: Option<&'a str>,
}

impl Kind for WorkqueueKind<'_> {
    fn facts(&self) -> KindFacts<'_> {
        const QUEUES: &str = "/sys/devices/virtual/workqueue";
        let path = self.name.map_or(format!("{QUEUES}/cpumask"), |name| format!("{QUEUES}/{name}/cpumask"));
        let name = self.name.unwrap_or("all unbound work");
        // The kernel exposes its queues under two paths.
        let other = path.replacen(QUEUES, "/sys/bus/workqueue/devices", 1);
        KindFacts {
            title: self.name.map_or(name.to_owned(), |name| format!("workqueue {name}")),
            rivals: vec![Rival::Path(path.clone()), Rival::Path(other)],
            ..KindFacts::of(name, Mechanism::Mask { path: path.clone() }, &[(&PATH, &path)], &CPU_LIST)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let Some(name) = self.name else { return list(&host.tasks.workqueue_cpus) };
        let queue = host.tasks.workqueues.iter().find(|queue| queue.name == name);
        queue.map_or(Reading::Absent, |queue| list(&queue.cpus))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let Some(name) = self.name else { return put_list(&mut host.tasks.workqueue_cpus, value) };
        for queue in host.tasks.workqueues.iter_mut().filter(|queue| queue.name == name) {
            put_list(&mut queue.cpus, value);
        }
    }
}

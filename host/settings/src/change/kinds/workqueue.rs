//! The CPUs of the workers of a workqueue, or of all unbound work, as a CPU list.

use crate::change::{
    Kind, Mechanism, Rival,
    grammar::{CPU_LIST, PATH, misfit},
    kind::{list, put_list},
};
use lowlat_host::{HostSnapshot, Reading};

pub(super) struct WorkqueueKind<'a> {
    pub(super) name: Option<&'a str>,
}

impl WorkqueueKind<'_> {
    fn path(&self) -> String {
        const QUEUES: &str = "/sys/devices/virtual/workqueue";
        self.name.map_or(format!("{QUEUES}/cpumask"), |name| format!("{QUEUES}/{name}/cpumask"))
    }
}

impl Kind for WorkqueueKind<'_> {
    fn name(&self) -> String {
        self.name.unwrap_or("all unbound work").to_owned()
    }

    fn title(&self) -> String {
        self.name.map_or_else(|| self.name(), |name| format!("workqueue {name}"))
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&PATH, &self.path()), (&CPU_LIST, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::Mask { path: self.path() }
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

    /// The kernel exposes its queues under two paths.
    fn rivals(&self) -> Vec<Rival> {
        let path = self.path();
        let other = path.replacen("/sys/devices/virtual/workqueue/", "/sys/bus/workqueue/devices/", 1);
        vec![Rival::Path(path), Rival::Path(other)]
    }
}

//! The request checked against a host.

use crate::{
    Accelerator, Place, ThreadMap,
    choose::{cpus, near_nothing, shared_core},
};
use lowlat_host::{CpuId, CpuSet, HostSnapshot, Reading, snapshot::SchedPolicy};
use std::num::NonZeroU32;
use thiserror::Error;

/// Reason why a command is not started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refusal(pub(crate) String);

/// Variable through which the loader loads a library first (ld.so(8)).
const LD_PRELOAD: &str = "LD_PRELOAD";
/// Variable that sets glibc's tunables, and the one that makes malloc use reserved huge pages (glibc 2.35).
const TUNABLES: &str = "GLIBC_TUNABLES";
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=2";

/// Most interrupts that a warning names.
const LABELS_MAX: usize = 4;

/// State of lowlat's own process and of the host that a launch depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// CPUs that the kernel accepts for this process.
    pub allowed: CpuSet,
    /// CPUs that a role isolates, which come before those that the kernel isolates.
    pub of_role: Option<CpuSet>,
    /// True if the accelerator's launcher or library is installed.
    pub is_installed: bool,
    pub environment: Vec<(String, String)>,
}

impl Surroundings {
    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Settings to apply before the command starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    pub mode: Mode,
    /// CPUs of threads, or of copies, in order of appearance.
    pub cpus: Vec<CpuId>,
    /// Number of copies of the command, one to a CPU; `None` runs one command whose threads are placed.
    pub copies: Option<NonZeroU32>,
    /// CPUs of threads by name.
    pub thread_map: ThreadMap,
    /// Scheduling policy with its priority; `None` inherits.
    pub policy: Option<(SchedPolicy, u32)>,
    pub memory: MemoryPolicy,
    /// Variables added to the command's environment.
    pub environment: Vec<(String, String)>,
    /// Words put before the command.
    pub launcher: Vec<String>,
    /// True if all CPUs stay out of idle states while the command runs.
    pub is_awake: bool,
    /// Accelerator, to be proven while the command runs.
    pub accelerator: Option<Accelerator>,
    /// Reasons why the command is slower or its latency less certain, a sentence each.
    pub warnings: Vec<String>,
}

impl Launch {
    /// Checks a request.
    ///
    /// # Errors
    /// [`Refusal`] if the command cannot run so, or its latency would be meaningless.
    pub fn plan(request: &Request, host: &HostSnapshot, around: &Surroundings) -> Result<Self, Refusal> {
        let cpus = cpus(request, host, around)?;
        check_installed(request, around)?;
        check_memory(request, host)?;
        let (environment, overridden) = environment(request, around);
        let launcher = request.accelerator.as_ref().map_or_else(Vec::new, |of| of.launcher(request.mode));
        let mut launch = Self {
            mode: request.mode,
            cpus,
            copies: request.copies,
            thread_map: request.thread_map.clone(),
            policy: request.policy,
            memory: request.memory,
            environment,
            launcher,
            is_awake: request.is_awake,
            accelerator: request.accelerator.clone(),
            warnings: Vec::new(),
        };
        launch.warnings = launch.warnings_of_cpus(host);
        if let CpuChoice::Place(Place::Near(name)) = &request.cpus {
            launch.warnings.extend(near_nothing(name, host));
        }
        launch.warnings.extend(overridden);
        Ok(launch)
    }

    /// Returns every CPU that the command may use.
    pub fn all_cpus(&self) -> CpuSet {
        self.cpus.iter().copied().collect::<CpuSet>().union(&self.thread_map.cpus())
    }

    /// Returns the CPUs of each process to start: all of them for one command, one for each copy.
    pub fn processes(&self) -> Vec<Vec<CpuId>> {
        match self.copies {
            None => vec![self.cpus.clone()],
            Some(count) => {
                self.cpus.iter().cycle().take(count.get() as usize).map(|cpu| vec![*cpu]).collect()
            }
        }
    }

    fn warnings_of_cpus(&self, host: &HostSnapshot) -> Vec<String> {
        let all = self.all_cpus();
        let isolated = host.cpus_isolated();
        let open = all.difference(&isolated);
        let mut warnings = Vec::new();
        if !open.is_empty() {
            warnings.push(format!(
                "not isolated: {open:#}. Other threads may run there; `lowlat tune plan` shows how to isolate CPUs"
            ));
        }
        let is_real_time = matches!(self.policy, Some((SchedPolicy::Fifo | SchedPolicy::Rr, _)));
        if is_real_time && self.mode == Mode::Spin && !open.is_empty() {
            warnings.push(format!(
                "real-time threads that spin on {open:#} starve the kernel's threads there: isolate the CPUs first"
            ));
        }
        warnings.extend(interrupts(host, &all));
        if self.mode == Mode::Spin {
            let shared = all.iter().filter_map(|cpu| {
                let others = host.topology.siblings(cpu).difference(&all).difference(&isolated);
                let sibling = others.iter().find(|other| *other != cpu)?;
                Some(format!(
                    "CPU {cpu} shares its core with CPU {sibling}, which is not isolated: work there slows it down"
                ))
            });
            warnings.extend(shared);
            if self.copies.is_some() {
                warnings.extend(shared_core(host, &all).map(|core| {
                    format!(
                        "there are more copies than cores: two of them share the core of {core:#}, for example"
                    )
                }));
            }
        }
        if let MemoryPolicy::Node(id) = self.memory {
            let on_node = host.topology.nodes.iter().find(|node| node.id == id).map(|node| &node.cpus);
            let cpus = on_node.map_or_else(|| all.clone(), |on_node| all.difference(on_node));
            if !cpus.is_empty() {
                warnings.push(format!(
                    "memory of NUMA node {id} is remote to {cpus:#}: each cache miss crosses nodes"
                ));
            }
        }
        warnings
    }
}

fn interrupts(host: &HostSnapshot, cpus: &CpuSet) -> Option<String> {
    let mut labels = Vec::new();
    let mut on = CpuSet::new();
    for irq in host.interrupts.irqs.iter().filter(|irq| !irq.actions.is_empty()) {
        let Reading::Known(goes_to) = irq.goes_to() else { continue };
        let here = goes_to.intersection(cpus);
        if !here.is_empty() {
            labels.push(irq.label());
            on.extend(here.iter());
        }
    }
    let more = match labels.len().saturating_sub(LABELS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    labels.truncate(LABELS_MAX);
    (!labels.is_empty()).then(|| format!("interrupts on {on:#}: {}{more}", labels.join(", ")))
}

fn check_installed(request: &Request, around: &Surroundings) -> Result<(), Refusal> {
    let Some(accelerator) = request.accelerator.as_ref().filter(|_| !around.is_installed) else {
        return Ok(());
    };
    let (missing, hint) = match accelerator {
        Accelerator::Onload(_) => ("onload", "install Onload, and check that `onload` is in PATH"),
        Accelerator::Vma | Accelerator::Xlio => {
            (accelerator.library(), "install it; the loader would only warn and use the kernel")
        }
    };
    let name = accelerator.name();
    Err(Refusal(format!("cannot accelerate with {name}: {missing} is not installed\nhint: {hint}")))
}

fn check_memory(request: &Request, host: &HostSnapshot) -> Result<(), Refusal> {
    if request.has_huge_pages {
        let is_free = |free: &Reading<u64>| free.known().is_none_or(|free| *free > 0);
        if !host.memory.huge_pages.iter().any(|pool| is_free(&pool.free)) {
            return Err(Refusal(
                "cannot use huge pages: none is free\nhint: reserve some with `sysctl vm.nr_hugepages=N`"
                    .to_owned(),
            ));
        }
    }
    let MemoryPolicy::Node(id) = request.memory else { return Ok(()) };
    let has_memory = |bytes: &Reading<u64>| bytes.known().is_none_or(|bytes| *bytes > 0);
    let nodes = &host.topology.nodes;
    let why = match nodes.iter().find(|node| node.id == id) {
        Some(node) if has_memory(&node.memory_bytes) => return Ok(()),
        Some(_) => "it has none",
        None => "no such node",
    };
    let with_memory = nodes.iter().filter(|node| has_memory(&node.memory_bytes));
    let known = with_memory.map(|node| node.id.to_string()).collect::<Vec<_>>().join(", ");
    Err(Refusal(format!(
        "cannot take memory from NUMA node {id}: {why}\nhint: nodes with memory are {known}"
    )))
}

/// Returns the additions to the environment. A variable that the user has set stays, with a warning.
fn environment(request: &Request, around: &Surroundings) -> (Vec<(String, String)>, Vec<String>) {
    let mut environment = Vec::new();
    let mut warnings = Vec::new();
    if let Some(accelerator) = &request.accelerator
        && let Some(variables) = accelerator.preload(request.mode)
    {
        let library = joined(accelerator.library(), around.variable(LD_PRELOAD));
        environment.push((LD_PRELOAD.to_owned(), library));
        for (name, value) in variables {
            match around.variable(&name) {
                Some(present) if present != value => {
                    warnings.push(format!("{name}={present} in the environment replaces {value}"));
                }
                Some(_) => {}
                None => environment.push((name, value.to_owned())),
            }
        }
    }
    if request.has_huge_pages {
        environment.push((TUNABLES.to_owned(), joined(HUGE_PAGES, around.variable(TUNABLES))));
    }
    (environment, warnings)
}

fn joined(first: &str, rest: Option<&str>) -> String {
    rest.filter(|rest| !rest.is_empty()).map_or_else(|| first.to_owned(), |rest| format!("{first}:{rest}"))
}

/// Way in which the command waits for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Busy-waits: each thread needs a CPU of its own.
    #[default]
    Spin,
    /// Sleeps until an interrupt: threads may share CPUs.
    Interrupt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuChoice {
    List(CpuSet),
    /// One per busy thread, chosen by this rule.
    Place(Place),
}

/// Memory policy of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryPolicy {
    /// The kernel's default policy, which it inherits.
    #[default]
    Inherited,
    /// Each thread allocates on the node of its CPU (MPOL_LOCAL).
    Local,
    /// Only on this NUMA node (MPOL_BIND).
    Node(u32),
}

/// Everything that the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub mode: Mode,
    /// Network acceleration; `None` uses the kernel's sockets.
    pub accelerator: Option<Accelerator>,
    pub cpus: CpuChoice,
    /// Number of busy threads; `None` is one, or as many as appear under a rule of clusters.
    pub thread_count: Option<NonZeroU32>,
    /// Number of copies of the command, one to a CPU; `None` runs one command whose threads are placed.
    pub copies: Option<NonZeroU32>,
    /// Scheduling policy with its real-time priority; `None` inherits.
    pub policy: Option<(SchedPolicy, u32)>,
    pub memory: MemoryPolicy,
    /// True if malloc uses huge pages.
    pub has_huge_pages: bool,
    /// True if all CPUs stay out of idle states while the command runs.
    pub is_awake: bool,
    /// CPUs of threads by name.
    pub thread_map: ThreadMap,
}

impl Request {
    /// Returns the number of CPUs that must run something at any time.
    pub fn busy_count(&self) -> u32 {
        self.copies.or(self.thread_count).map_or(1, NonZeroU32::get)
    }

    /// True if threads are placed on as many CPUs as they need, whatever their number.
    pub fn is_open_ended(&self) -> bool {
        let by_clusters = matches!(self.cpus, CpuChoice::Place(Place::ClusterSpread | Place::ClusterPack));
        by_clusters && self.copies.or(self.thread_count).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CpuChoice, Place,
        testing::{host, set},
    };
    use std::num::NonZeroU32;

    fn request(cpus: CpuChoice, threads: u32) -> Request {
        Request {
            mode: Mode::Spin,
            accelerator: None,
            cpus,
            thread_count: NonZeroU32::new(threads),
            copies: None,
            policy: None,
            memory: MemoryPolicy::Inherited,
            has_huge_pages: false,
            is_awake: false,
            thread_map: ThreadMap::default(),
        }
    }

    fn around() -> Surroundings {
        Surroundings { allowed: set("0-14"), is_installed: true, ..Surroundings::default() }
    }

    fn plan(request: &Request) -> Result<Launch, Refusal> {
        Launch::plan(request, &host(), &around())
    }

    fn refusal(request: &Request) -> String {
        plan(request).unwrap_err().to_string()
    }

    fn list(cpus: &str) -> CpuChoice {
        CpuChoice::List(set(cpus))
    }

    #[test]
    fn rules_choose_isolated_cpus() {
        let launch = plan(&request(CpuChoice::Place(Place::Compact), 2)).unwrap();
        assert_eq!((launch.cpus, launch.warnings), (vec![4, 5], vec![]));
        let near = plan(&request(CpuChoice::Place(Place::Near("eth1".into())), 1)).unwrap();
        assert_eq!(near.cpus, [4]);
        // A plan in force may wait for its reboot.
        let of_role = Surroundings { of_role: Some(set("2,5")), ..around() };
        let compact = request(CpuChoice::Place(Place::Compact), 2);
        assert_eq!(Launch::plan(&compact, &host(), &of_role).unwrap().cpus, [2, 5]);
    }

    #[test]
    fn an_interface_that_is_near_nothing_is_told() {
        let near = |node: Reading<i32>| {
            let mut host = host();
            host.nics[0].node = node;
            let near = request(CpuChoice::Place(Place::Near("eth1".into())), 1);
            let warnings = Launch::plan(&near, &host, &around()).unwrap().warnings;
            warnings.join("; ")
        };
        assert_eq!(near(Reading::Known(1)), "");
        assert!(near(Reading::Known(-1)).contains("no NUMA node"));
        assert!(near(Reading::Absent).contains("no CPU is nearer to eth1 than others: it has no device"));
        assert!(near(Reading::Denied).contains("was not read: "));
    }

    #[test]
    fn impossible_cpus_are_refused() {
        let offline = "cannot run on CPU 16: missing or offline\nhint: CPUs 0-15 are online";
        assert_eq!(refusal(&request(list("3,16"), 1)), offline);
        let forbidden = "cannot run on CPU 15: outside the cpuset of this process, CPUs 0-14\n";
        assert!(refusal(&request(list("15"), 1)).starts_with(forbidden));
        let named = Request { thread_map: ThreadMap::parse("md=99").unwrap(), ..request(list("4"), 1) };
        assert!(refusal(&named).contains("CPU 99: missing or offline"));
        let unknown = "cannot choose CPUs near eth9: no such interface\nhint: this host has eth1";
        assert_eq!(refusal(&request(CpuChoice::Place(Place::Near("eth9".into())), 1)), unknown);
    }

    #[test]
    fn spinning_threads_need_cores() {
        let few = "cannot run 2 spinning threads on CPU 4: each needs a CPU\n";
        assert!(refusal(&request(list("4"), 2)).starts_with(few));
        let siblings = "cannot run two spinning threads on CPUs 4,12: they share a core\n";
        assert!(refusal(&request(list("4,12"), 2)).starts_with(siblings));
        let named = Request { thread_map: ThreadMap::parse("md=12").unwrap(), ..request(list("4"), 1) };
        assert!(refusal(&named).starts_with(siblings));
        let sleeping = Request { mode: Mode::Interrupt, ..request(list("4,12"), 3) };
        assert_eq!(plan(&sleeping).unwrap().cpus, [4, 12]);
    }

    #[test]
    fn copies_get_a_cpu_each_and_siblings_only_with_a_warning() {
        let copies = |count, mode| Request {
            mode,
            copies: NonZeroU32::new(count),
            ..request(CpuChoice::Place(Place::ClusterSpread), 0)
        };
        let of = |count, mode| plan(&copies(count, mode)).map(|launch| (launch.processes(), launch.warnings));
        // The isolated CPUs: clusters 4-5 and 6-7 with siblings 12-14; 15 is not allowed.
        assert_eq!(of(3, Mode::Spin), Ok((vec![vec![4], vec![6], vec![5]], vec![])));
        let (cpus, warnings) = of(5, Mode::Spin).unwrap();
        assert_eq!(cpus[4], [12]);
        assert_eq!(
            warnings,
            ["there are more copies than cores: two of them share the core of CPUs 4,12, for example"]
        );
        let refused = "cannot run 8 spinning copies on CPUs 4-7,12-14: each needs a CPU\n";
        assert!(of(8, Mode::Spin).unwrap_err().to_string().starts_with(refused));
        let wrapped = of(8, Mode::Interrupt).unwrap().0;
        assert_eq!((wrapped.len(), &wrapped[7]), (8, &vec![4]));
    }

    #[test]
    fn threads_without_a_number_get_every_cpu_in_the_order_of_a_rule_of_clusters() {
        let cpus = |place| plan(&request(CpuChoice::Place(place), 0)).unwrap().cpus;
        assert_eq!(cpus(Place::ClusterSpread), [4, 6, 5, 7, 12, 14, 13]);
        assert_eq!(cpus(Place::ClusterPack), [4, 5, 6, 7, 12, 13, 14]);
        assert_eq!(cpus(Place::Compact), [4]);
    }

    #[test]
    fn noisy_cpus_are_named() {
        let policy = Some((SchedPolicy::Fifo, 50));
        let launch =
            plan(&Request { policy, memory: MemoryPolicy::Node(1), ..request(list("3"), 1) }).unwrap();
        assert_eq!(
            launch.warnings,
            [
                "not isolated: CPU 3. Other threads may run there; `lowlat tune plan` shows how to isolate CPUs",
                "real-time threads that spin on CPU 3 starve the kernel's threads there: isolate the CPUs first",
                "interrupts on CPU 3: 40 eth1-rx-0",
                "CPU 3 shares its core with CPU 11, which is not isolated: work there slows it down",
                "memory of NUMA node 1 is remote to CPU 3: each cache miss crosses nodes",
            ]
        );
    }

    #[test]
    fn memory_must_exist() {
        let node = "cannot take memory from NUMA node 2: no such node\nhint: nodes with memory are 0, 1";
        assert_eq!(refusal(&Request { memory: MemoryPolicy::Node(2), ..request(list("4"), 1) }), node);
        let huge = refusal(&Request { has_huge_pages: true, ..request(list("4"), 1) });
        assert!(huge.starts_with("cannot use huge pages: none is free\n"));
    }

    #[test]
    fn accelerators_set_their_variables_and_keep_the_users() {
        let vma = Request { accelerator: Some(Accelerator::Vma), ..request(list("4"), 1) };
        let mut around = around();
        around.environment =
            vec![("LD_PRELOAD".into(), "liba.so".into()), ("VMA_RX_POLL".into(), "1000".into())];
        let launch = Launch::plan(&vma, &host(), &around).unwrap();
        let expected =
            [("LD_PRELOAD", "libvma.so:liba.so"), ("VMA_SPEC", "latency"), ("VMA_SELECT_POLL", "-1")];
        assert_eq!(launch.environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(launch.warnings, ["VMA_RX_POLL=1000 in the environment replaces -1"]);
        around.is_installed = false;
        let onload = Request { accelerator: Some(Accelerator::Onload("latency".into())), ..vma };
        let refused = Launch::plan(&onload, &host(), &around).unwrap_err().to_string();
        assert!(refused.contains("Onload: onload is not installed"), "{refused}");
        around.is_installed = true;
        assert_eq!(Launch::plan(&onload, &host(), &around).unwrap().launcher, ["onload", "-p", "latency"]);
    }
}

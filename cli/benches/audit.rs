//! Benchmarks of reading and judging: the running host, and a made-up host of 1,024 CPUs.

use criterion::{Criterion, criterion_group, criterion_main};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{
    Allocation, CpuSet, HostSnapshot, Profile, Reading, Role,
    cmdline::CommandLine,
    snapshot::{Irq, KernelThread, SchedPolicy},
    topology::{Cache, CacheKind, Group, Node},
};
use lowlat_host_run::{Root, snapshot};
use lowlat_settings::{Context, audit::Audit};
use std::hint::black_box;

const CPU_COUNT: u32 = 1_024;

/// Eight packages of 64 cores with two threads each, a last-level cache per 8 cores, 4,096 interrupts, 8 kernel
/// threads per CPU, and every knob of the catalogue at every CPU.
fn synthetic() -> HostSnapshot {
    let mut host = HostSnapshot::default();
    let core = |c: u32| [c, c + CPU_COUNT / 2].into_iter().collect::<CpuSet>();
    let groups = |width: u32| -> Vec<Group> {
        let cpus = |g: u32| (g * width..(g + 1) * width).flat_map(|c| [c, c + CPU_COUNT / 2]).collect();
        (0..CPU_COUNT / 2 / width).map(|g| Group { id: i64::from(g), cpus: cpus(g) }).collect()
    };
    let topology = &mut host.topology;
    topology.online = CpuSet::first(CPU_COUNT);
    topology.possible = Reading::Known(topology.online.clone());
    topology.packages = groups(64);
    topology.cores = (0..CPU_COUNT / 2).map(|c| Group { id: i64::from(c), cpus: core(c) }).collect();
    topology.nodes = groups(64)
        .into_iter()
        .zip(0..)
        .map(|(g, id)| Node { id, cpus: g.cpus, memory_bytes: Reading::Known(1 << 38), ..Node::default() })
        .collect();
    for (level, width) in [(1, 1), (2, 1), (3, 8)] {
        let cache = |g: Group| Cache { level, kind: CacheKind::Unified, cpus: g.cpus, ..Cache::default() };
        topology.caches.extend(groups(width).into_iter().map(cache));
    }
    host.interrupts.irqs = (0..4_096)
        .map(|number| Irq {
            number,
            actions: vec![format!("nic{}-q{}", number / 64, number % 64)],
            affinity: Reading::Known(CpuSet::of(number % CPU_COUNT)),
            effective_affinity: Reading::Known(CpuSet::of(number % CPU_COUNT)),
            ..Irq::default()
        })
        .collect();
    host.tasks.kernel_threads = (0..CPU_COUNT * 8)
        .map(|i| KernelThread {
            pid: i + 2,
            comm: format!(
                "{}/{}",
                ["ksoftirqd", "migration", "cpuhp", "idle_inject", "rcuc", "kworker", "irq", "kswapd"]
                    [i as usize % 8],
                i / 8
            ),
            cpus_allowed: Reading::Known(CpuSet::of(i / 8)),
            policy: SchedPolicy::Other,
            rt_priority: 0,
            is_bound: i % 8 < 5,
        })
        .collect();
    host.kernel.command_line =
        Reading::Known(CommandLine::parse("quiet nohz_full=1-1023 isolcpus=managed_irq,domain,1-1023"));
    for glob in CATALOGUE.knob_globs() {
        for cpu in 0..if glob.contains('*') { CPU_COUNT } else { 1 } {
            host.files.insert(glob.replace('*', &cpu.to_string()), Reading::Known("1".into()));
        }
    }
    host
}

fn judge(host: &HostSnapshot) -> usize {
    let role = Role::default();
    let allocation = Allocation::choose(host, &role);
    let audit = Audit::of(&Context {
        host,
        role: &role,
        allocation: &allocation,
        profile: Profile::Trading,
        catalogue: CATALOGUE,
    });
    audit.findings.len()
}

fn bench(c: &mut Criterion) {
    c.bench_function("snapshot of the running host", |b| {
        b.iter(|| black_box(snapshot::read(&Root::live(), CATALOGUE)));
    });
    let host = synthetic();
    c.bench_function("allocation and audit of 1,024 CPUs", |b| b.iter(|| black_box(judge(black_box(&host)))));
}

criterion_group!(benches, bench);
criterion_main!(benches);

//! Command lines of a trial and of its processes.

use super::{Scene, Subject, post::Post};
use crate::ipc::{floor, handover, kungfu, star};
use anyhow::{Context, ensure};
use lowlat_ipc::region::{Access, Memfd};
use lowlat_pipeline::{Mode, PipelineParameters, ProcessRole};
use std::path::PathBuf;

/// How processes wait, for the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModeArgument {
    /// All spin
    Fast,
    /// All sleep until they are woken
    Parked,
    /// md and td spin, strategies sleep
    PlatformFast,
}

impl From<ModeArgument> for Mode {
    fn from(mode: ModeArgument) -> Self {
        match mode {
            ModeArgument::Fast => Self::Fast,
            ModeArgument::Parked => Self::Parked,
            ModeArgument::PlatformFast => Self::PlatformFast,
        }
    }
}

/// One trial.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Strategies, each with an instrument of its own
    #[arg(long, default_value_t = 80)]
    strategies: u32,
    /// Quotes per second over all instruments
    #[arg(long, default_value_t = 800.0)]
    rate: f64,
    /// Seconds of the schedule
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// How processes wait
    #[arg(long, value_enum, default_value = "parked")]
    mode: ModeArgument,
    /// CPUs of a role (master, cached, md, td, strategies), such as md=0 or strategies=1,3; can be given again
    #[arg(long, value_name = "ROLE=CPUS", value_parser = pin)]
    pin: Vec<(ProcessRole, Vec<u32>)>,
    /// Runs all strategies in one process that spins on this CPU (ipc-star alone)
    #[arg(long, value_name = "CPU")]
    host_cpu: Option<u32>,
}

impl Arguments {
    pub fn parameters(&self) -> PipelineParameters {
        PipelineParameters {
            strategies: self.strategies,
            rate_per_s: self.rate,
            mode: self.mode.into(),
            duration_s: self.seconds,
            pins: self.pin.iter().cloned().collect(),
            host_core: self.host_cpu,
            may_use_huge_pages: true,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }
}

fn pin(text: &str) -> Result<(ProcessRole, Vec<u32>), String> {
    const ROLES: [ProcessRole; 5] =
        [ProcessRole::Master, ProcessRole::Cached, ProcessRole::Md, ProcessRole::Td, ProcessRole::Strategies];
    let (role, cpus) = text.split_once('=').ok_or_else(|| format!("found {text:?}, expected ROLE=CPUS"))?;
    let role = ROLES.into_iter().find(|known| known.name() == role).ok_or_else(|| {
        format!("found role {role:?}, expected one of {}", ROLES.map(ProcessRole::name).join(", "))
    })?;
    let cpus = cpus.split(',').map(str::parse).collect::<Result<Vec<_>, _>>();
    let cpus = cpus.map_err(|_| format!("found CPUs in {text:?}, expected numbers such as 1 or 1,3"))?;
    Ok((role, cpus))
}

/// One process of a trial.
#[derive(Debug, clap::Args)]
pub struct RoleArguments {
    #[arg(long, value_enum)]
    subject: Subject,
    #[arg(long)]
    member: usize,
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    parent: i32,
    #[arg(long)]
    parameters: String,
}

/// Runs one process of a trial.
pub fn play(arguments: &RoleArguments) -> anyhow::Result<()> {
    handover::follow_parent(arguments.parent)?;
    let parameters = serde_json::from_str(&arguments.parameters).context("the trial's parameters")?;
    let memory = handover::take(1)?.pop().context("no memory was passed on")?;
    let memory = Memfd::open(memory, Access::Write)?;
    let scene = Scene::new(arguments.subject, parameters, Some(memory))?;
    let mut post = Post::new(&scene, arguments.member)?;
    pin_to(&post.role.cpus(&scene.parameters))?;
    shorten_slice();
    // Sleeps to a time end there, not up to 50 us later.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).context("timer slack")?;
    match arguments.subject {
        Subject::KungfuModel => kungfu::play(&scene, &mut post, &arguments.folder),
        Subject::IpcStar => star::play(&scene, &mut post),
        Subject::Floor => floor::play(&scene, &mut post),
    }
}

/// Shortens the time slice of this thread to the shortest that the kernel gives, as lowlat's own processes do: a woken one
/// does not wait for the end of another's. The default remains if the kernel refuses.
fn shorten_slice() {
    const SLICE_NS: u64 = 100_000;
    let wanted = libc::sched_attr {
        size: 48,
        sched_policy: libc::SCHED_OTHER.cast_unsigned(),
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is alive through the call, and its first member bounds what the kernel reads; 0 is the calling
    // thread, and no flags.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

/// Pins this thread, and those that it starts from now on. Does nothing without CPUs.
pub fn pin_to(cpus: &[u32]) -> anyhow::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        let cpu = usize::try_from(*cpu)?;
        ensure!(
            cpu < rustix::thread::CpuSet::MAX_CPU,
            "CPU {cpu}; expected one below {}",
            rustix::thread::CpuSet::MAX_CPU
        );
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("cannot run on CPUs {cpus:?}: take some that are there and allowed"))
}

#[cfg(test)]
mod tests {
    use super::{ProcessRole, pin};

    #[test]
    fn pins_are_read() {
        assert_eq!(pin("strategies=1,3"), Ok((ProcessRole::Strategies, vec![1, 3])));
        for wrong in ["md", "md=", "md=x", "ledger=1"] {
            assert!(pin(wrong).is_err(), "{wrong}");
        }
    }
}

//! Processes that the master starts and restarts.

use super::{Happened, Master, Standing, Use, member::Member, ready::EventTag};
use lowlat_node::{Refusal, clock::now_ns, cpu_set};
use rustix::{
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getppid, kill_process, pidfd_open,
        set_parent_process_death_signal, waitid,
    },
    thread::sched_setaffinity,
};
use std::{
    collections::VecDeque,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command},
    time::Duration,
};

const MINUTE_NS: u64 = 60_000_000_000;
/// First wait of a program that backs off.
const BACK_OFF_NS: u64 = 1_000_000_000;
/// Ended processes of a program whose use is kept apart; that of others is added up.
const ENDED_MAX: usize = 64;

/// A process for the master to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The name under which it joins.
    pub name: String,
    /// Its role: processes of one role are started one after the other and stopped together.
    pub role: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The CPUs that it may use; empty: those of the master.
    pub cpus: Vec<u32>,
    /// Maximum restarts when it dies, within a minute, or in a row if it backs off; 0: never.
    pub restarts_max: u32,
    /// It waits before it is restarted: a second, and twice as long each time, up to a minute. Once it has run for a
    /// minute, counting starts again.
    pub backs_off: bool,
}

#[derive(Debug)]
pub(super) struct Running {
    program: Program,
    child: Option<Child>,
    pub(super) pidfd: Option<OwnedFd>,
    /// When its last process was started.
    started_ns: u64,
    /// Times of its restarts that count.
    restarts_ns: VecDeque<u64>,
    restarts: u64,
    /// When it is due to be restarted.
    due_ns: Option<u64>,
    is_abandoned: bool,
    /// Process ids and resource use of ended processes.
    ended: Vec<(u32, Use)>,
}

/// Numbers of stopped processes, by the means that ended them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stopped {
    /// Ended on request.
    pub asked: u64,
    /// Ended by SIGTERM.
    pub terminated: u64,
    /// Ended by SIGKILL.
    pub killed: u64,
}

impl Running {
    /// Keeps the use of a process that has ended.
    fn keep(&mut self, pid: u32, used: Option<Use>) {
        let Some(used) = used else { return };
        match self.ended.get_mut(ENDED_MAX) {
            Some((_, others)) => *others = others.plus(used),
            None => self.ended.push((pid, used)),
        }
    }
}

/// Wait before the restart after so many others in a row.
fn back_off_ns(restarts: usize) -> u64 {
    let doublings = u32::try_from(restarts).unwrap_or(u32::MAX);
    2_u64.checked_pow(doublings).map_or(MINUTE_NS, |times| BACK_OFF_NS.saturating_mul(times)).min(MINUTE_NS)
}

impl Master {
    /// Starts a process. It is restarted when it dies, and ends with the thread that called this.
    pub fn start(&mut self, program: Program) -> Result<u32, Refusal> {
        let (child, pidfd) = self.spawn(&program)?;
        let pid = child.id();
        self.happened.push(Happened::Started { name: program.name.clone(), pid });
        self.programs.push(Running {
            program,
            child: Some(child),
            pidfd,
            started_ns: now_ns(),
            restarts_ns: VecDeque::new(),
            restarts: 0,
            due_ns: None,
            is_abandoned: false,
            ended: Vec::new(),
        });
        Ok(pid)
    }

    /// Pins the calling thread, the master's, to these CPUs; empty: no change. Processes started later run
    /// where the master could when it was opened, or on their [`Program::cpus`].
    pub fn pin_this_thread(&self, cpus: &[u32]) -> Result<(), Refusal> {
        let pin = |cpus: &[u32]| -> io::Result<()> {
            cpu_set(cpus)?.map_or(Ok(()), |cpus| Ok(sched_setaffinity(None, &cpus)?))
        };
        pin(cpus)
            .map_err(|error| Refusal::new(format!("cannot pin this thread master (CPUs {cpus:?}): {error}")))
    }

    /// Returns whether the master starts a program that joins under this name.
    pub fn has_program(&self, name: &str) -> bool {
        self.programs.iter().any(|running| running.program.name == name)
    }

    /// Programs whose nodes have never joined.
    pub(super) fn awaited_programs(&self) -> u32 {
        let awaited = self.programs.iter().filter(|running| self.named(&running.program.name).is_none());
        u32::try_from(awaited.count()).unwrap_or(u32::MAX)
    }

    /// Returns whether the master has started this process or its ancestor: each has a process group.
    pub(super) fn is_program(&self, pid: u32) -> bool {
        let pid = i32::try_from(pid).ok().map(nix::unistd::Pid::from_raw);
        // 0 for a group whose leader is in a PID namespace outside this one.
        let group = pid.and_then(|pid| nix::unistd::getpgid(Some(pid)).ok());
        let group = group.and_then(|group| Pid::from_raw(group.as_raw()));
        let children = self.programs.iter().filter_map(|running| running.child.as_ref());
        children.map(Pid::from_child).any(|child| Some(child) == group)
    }

    /// Restarts of all programs that do not back off.
    pub fn restarts(&self) -> u64 {
        let at_once = self.programs.iter().filter(|running| !running.program.backs_off);
        at_once.map(|running| running.restarts).sum()
    }

    /// Names, roles, process ids (0: none) and states of programs without a process that has joined.
    pub(super) fn absent_programs(&self) -> impl Iterator<Item = (&Program, u32, &'static str)> {
        self.programs.iter().filter_map(|running| {
            let state = match (running.is_abandoned, running.due_ns, &running.child) {
                (true, ..) => "given up",
                (_, Some(_), _) => "restarting",
                (.., Some(_)) => "starting",
                (.., None) => return None,
            };
            let is_there = self.named(&running.program.name).is_some_and(Member::is_there);
            (!is_there).then(|| (&running.program, running.child.as_ref().map_or(0, Child::id), state))
        })
    }

    /// Keeps the end of logs that have become long.
    pub(super) fn trim_logs(&self) {
        for running in self.programs.iter().filter(|running| running.child.is_some()) {
            // A log that cannot be shortened now is shortened later.
            self.held.trim_log(&self.options.folder, &running.program.name).ok();
        }
    }

    /// Names, roles and process ids of the running started processes.
    pub fn processes(&self) -> Vec<(String, String, u32)> {
        let alive = self.programs.iter().filter_map(|running| Some((running, running.child.as_ref()?)));
        alive
            .map(|(running, child)| (running.program.name.clone(), running.program.role.clone(), child.id()))
            .collect()
    }

    /// Roles, process ids and resource use of the ended processes.
    pub fn ended_uses(&self) -> Vec<(String, u32, Use)> {
        let ended = |running: &Running| -> Vec<_> {
            running.ended.iter().map(|(pid, used)| (running.program.role.clone(), *pid, *used)).collect()
        };
        self.programs.iter().flat_map(ended).collect()
    }

    /// Stops the started processes, the last role first: by a message, after `patience` by SIGTERM, after the
    /// same time by SIGKILL. Nothing is restarted from now on.
    pub fn stop_programs(&mut self, patience: Duration) -> Result<Stopped, Refusal> {
        self.is_stopping = true;
        let mut stopped = Stopped::default();
        let mut end = self.programs.len();
        while end > 0 {
            let role = self.programs.get(end - 1).map(|running| running.program.role.clone());
            let has_role = |running: &Running| Some(&running.program.role) == role.as_ref();
            let count = self.programs.iter().take(end).rev().take_while(|running| has_role(running)).count();
            let group: Vec<usize> = (end - count..end).collect();
            end -= count;
            for step in [None, Some(Signal::TERM), Some(Signal::KILL)] {
                let before = self.alive(&group);
                for at in &group {
                    self.ask(*at, step);
                }
                self.turn_until_ended(&group, patience)?;
                let ended = before - self.alive(&group);
                match step {
                    None => stopped.asked += ended,
                    Some(Signal::KILL) => stopped.killed += ended,
                    Some(_) => stopped.terminated += ended,
                }
                if self.alive(&group) == 0 {
                    break;
                }
            }
        }
        Ok(stopped)
    }

    fn alive(&self, group: &[usize]) -> u64 {
        let alive = group.iter().filter_map(|at| self.programs.get(*at)?.child.as_ref());
        u64::try_from(alive.count()).unwrap_or(0)
    }

    fn ask(&mut self, at: usize, signal: Option<Signal>) {
        let Some(running) = self.programs.get(at) else { return };
        let (name, Some(child)) = (running.program.name.clone(), &running.child) else { return };
        match signal {
            // A process that has not joined gets no message, and is sent SIGTERM next.
            None => _ = self.stop_node(&name).ok(),
            Some(signal) => _ = kill_process(Pid::from_child(child), signal).ok(),
        }
    }

    fn turn_until_ended(&mut self, group: &[usize], patience: Duration) -> Result<(), Refusal> {
        let until_ns = now_ns() + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 2);
        while self.alive(group) > 0 && now_ns() < until_ns {
            let happened = self.turn(Duration::from_millis(20))?;
            self.kept.extend(happened);
        }
        Ok(())
    }

    /// Waits for the processes among these, which have ended, and for others that the kernel does not report. Restarts them
    /// where due.
    pub(super) fn reap(&mut self, ready: &[EventTag]) {
        for at in 0..self.programs.len() {
            let Some(running) = self.programs.get_mut(at) else { return };
            let Some(child) = &mut running.child else { continue };
            let pid = child.id();
            if running.pidfd.is_some() && !ready.contains(&EventTag::Program(pid)) {
                continue;
            }
            let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let Ok(Some(_)) = waitid(WaitId::Pid(Pid::from_child(child)), flags) else { continue };
            // The kernel drops the counters once the process is waited for.
            let used = Use::of(pid);
            let Ok(status) = child.wait() else { continue };
            running.keep(pid, used);
            (running.child, running.pidfd) = (None, None);
            let name = running.program.name.clone();
            let is_over = self.is_stopping || status.success();
            self.bury_process(pid, &format!("its process ended: {status}"));
            self.happened.push(Happened::Ended {
                name: name.clone(),
                reason: status.to_string(),
                code: status.code(),
                is_failure: !is_over,
            });
            if !is_over {
                self.start_again(at);
            }
        }
    }

    fn start_again(&mut self, at: usize) {
        let now_ns = now_ns();
        let Some(running) = self.programs.get_mut(at) else { return };
        let Program { backs_off, restarts_max, .. } = running.program;
        let is_well = backs_off && now_ns.saturating_sub(running.started_ns) >= MINUTE_NS;
        let counts = |then: &u64| !is_well && (backs_off || now_ns.saturating_sub(*then) < MINUTE_NS);
        running.restarts_ns.retain(counts);
        let count = running.restarts_ns.len();
        if count >= usize::try_from(restarts_max).unwrap_or(usize::MAX) {
            if restarts_max > 0 {
                let within = if backs_off { "in a row" } else { "within a minute" };
                self.abandon(at, format!("it was restarted {restarts_max} times {within}; giving up"));
            }
            return;
        }
        running.due_ns = Some(now_ns.saturating_add(if backs_off { back_off_ns(count) } else { 0 }));
        self.start_due(now_ns);
    }

    fn abandon(&mut self, at: usize, reason: String) {
        let Some(running) = self.programs.get_mut(at) else { return };
        running.is_abandoned = true;
        self.happened.push(Happened::Abandoned { name: running.program.name.clone(), reason });
    }

    /// Starts programs again whose time has come.
    pub(super) fn start_due(&mut self, now_ns: u64) {
        for at in 0..self.programs.len() {
            let Some(running) = self.programs.get_mut(at) else { return };
            if running.due_ns.take_if(|due_ns| *due_ns <= now_ns).is_none() || self.is_stopping {
                continue;
            }
            running.restarts_ns.push_back(now_ns);
            running.restarts += 1;
            running.started_ns = now_ns;
            let program = running.program.clone();
            match self.spawn(&program) {
                Ok((child, pidfd)) => {
                    self.happened.push(Happened::Started { name: program.name, pid: child.id() });
                    if let Some(running) = self.programs.get_mut(at) {
                        (running.child, running.pidfd) = (Some(child), pidfd);
                    }
                }
                Err(_) if program.backs_off => self.start_again(at),
                Err(error) => self.abandon(at, error.to_string()),
            }
        }
    }

    /// Nodes of an ended process whose connections are still open.
    fn bury_process(&mut self, pid: u32, reason: &str) {
        for number in self.numbers(|member| member.is_there() && member.owner.pid == pid) {
            self.hear_out(number);
            self.bury(number, reason, Standing::Dead);
        }
    }

    fn spawn(&self, program: &Program) -> Result<(Child, Option<OwnedFd>), Refusal> {
        let failed = |doing: &'static str, hint: &'static str| {
            move |error: io::Error| {
                let (name, path) = (&program.name, program.program.display());
                Refusal::new(format!("cannot {doing} {name} ({path}): {error}{hint}"))
            }
        };
        let log = self.held.log(&self.options.folder, &program.name)?;
        let errors = log.try_clone().map_err(failed("open the log of", ""))?;
        // Opened here, so that its error does not read like one of the program.
        let silence = File::open("/dev/null").map_err(failed("open /dev/null for", ""))?;
        let cpus = cpu_set(&program.cpus).map_err(failed("pin", ""))?.or(self.cpus);
        let master = std::process::id();
        let mut command = Command::new(&program.program);
        command.args(&program.arguments).envs(program.environment.iter().cloned());
        // systemd hears of a run from its master only.
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
        // A separate process group: Ctrl-C in a terminal reaches only the master, which then stops them in
        // order.
        command.process_group(0).stdin(silence).stdout(log).stderr(errors);
        let prepare = move || {
            // Nothing is left behind, however this process ends.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().cast_unsigned() != master) {
                return Err(io::Error::other("the master has ended"));
            }
            cpus.map_or(Ok(()), |cpus| sched_setaffinity(None, &cpus))?;
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, on values that were created before the fork
        // and are copied into the closure; nothing there takes a lock. The error for an ended parent allocates,
        // in a process that ends with it.
        let command = unsafe { command.pre_exec(prepare) };
        let doing = if program.cpus.is_empty() { "start" } else { "start with its CPUs" };
        let child =
            command.spawn().map_err(failed(doing, "\nhint: name a program that this user can execute"))?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let pidfd = self.ready_list.add_process(pidfd, EventTag::Program(child.id()));
        Ok((child, pidfd))
    }

    /// Kills a started process, which is then restarted.
    pub(super) fn kill_program(&self, name: &str) {
        let child = self.programs.iter().find(|running| running.program.name == name);
        if let Some(child) = child.and_then(|running| running.child.as_ref()) {
            kill_process(Pid::from_child(child), Signal::KILL).ok();
        }
    }

    /// Kills the remaining processes at once.
    pub(super) fn kill_programs(&mut self) {
        for child in self.programs.iter_mut().filter_map(|running| running.child.as_mut()) {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_off_doubles_up_to_a_minute() {
        let waits_s: Vec<u64> = (0..8).map(|count| back_off_ns(count) / BACK_OFF_NS).collect();
        assert_eq!(waits_s, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(back_off_ns(usize::MAX), MINUTE_NS);
    }
}

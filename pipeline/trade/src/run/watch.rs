//! Watches a run in progress.

use super::{
    LOG_LINES, Phase, Progress, outcome,
    plan::{MASTER, OWN, is_beside, moved_out},
    uses::{self, Idle, Private, Uses},
};
use crate::{
    master::{Happened, Master, Options, Program, Stopped, Visitors},
    roles::{STAGES_AREA, host::MOVE_OUT, md::LEAD_NS},
    scenario::Speed,
    stages::{Stage, StageRecorder},
};
use lowlat_host::statistics::carries_quantile;
use lowlat_node::{
    Refusal,
    address::RunFolder,
    clock::{Pace, now_ns},
    control::WithoutMaster,
};
use lowlat_pipeline::{
    PipelineOptions, PipelineParameters, PipelineRecord, ProcessRole, QuoteOverrun, ReplayedRecording,
};
use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const SECOND_NS: u64 = 1_000_000_000;
/// Time for processes to join, in addition to some time per process.
const JOIN_NS_MAX: u64 = 30 * SECOND_NS;
const JOIN_NS_EACH: u64 = SECOND_NS / 4;
/// Time for md beyond its schedule.
const OVERTIME_NS_MAX: u64 = 30 * SECOND_NS;
/// Orders and answers have come to rest if nothing was counted for this long.
const REST_NS: u64 = SECOND_NS / 5;
/// The same while quotes or answers have not arrived: a busy machine may leave a strategy without a turn.
const REST_BEHIND_NS: u64 = 2 * SECOND_NS;
/// Longest wait until they have.
const REST_NS_MAX: u64 = 10 * SECOND_NS;
/// Time for a process to end on request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes read of a log.
const LOG_BYTES_MAX: u64 = 64 << 10;
/// Maximum incidents in a run's record.
const INCIDENTS_MAX: usize = 100;
/// Time for nodes that the run did not start.
const PATIENCE_VISITORS: Duration = Duration::from_secs(2);
const TURN: Duration = Duration::from_millis(50);

/// Facts at the end of a run.
pub(super) struct EndedRun<'a> {
    pub(super) watch: Watch<'a>,
    /// From the begin message to md's end.
    pub(super) elapsed_ns: u64,
    /// Time between the two readings of resource use.
    pub(super) uses_ns: u64,
    pub(super) before: Uses,
    pub(super) after: Uses,
    /// Idle time of the machine at the same two moments.
    pub(super) idle: [Idle; 2],
    pub(super) private: Private,
    pub(super) swapped_pages: Option<u64>,
    pub(super) stopped: Stopped,
    pub(super) is_interrupted: bool,
}

pub(super) struct Watch<'a> {
    pub(super) master: Master,
    names: BTreeSet<String>,
    /// Strategies of the user that the run starts: the run goes on without them.
    pub(super) own: BTreeSet<String>,
    /// Those of them that have not joined or ended yet.
    starting: BTreeSet<String>,
    /// Nodes of other programs that must have joined before the begin.
    awaited: BTreeSet<String>,
    parameters: &'a PipelineParameters,
    options: &'a PipelineOptions,
    /// Programs whose strategies may get separate processes, as they were started.
    hosts: Vec<Program>,
    /// Strategies that have left their host.
    pub(super) moved_out: BTreeSet<u32>,
    joined: BTreeSet<String>,
    /// md has ended without a failure.
    is_published: bool,
    begun_ns: Option<u64>,
    /// From the first start of a process until all had joined.
    pub(super) ready_ns: u64,
    told_ns: u64,
    progress: &'a mut dyn FnMut(&Progress),
    stop: &'a AtomicBool,
    /// Another process of the user asked for its end.
    is_asked: bool,
    /// Descriptions of incidents from which the run recovered.
    pub(super) incidents: Vec<String>,
    /// Auxiliary processes that failed, and processes that failed at their end.
    pub(super) failed: BTreeSet<String>,
}

pub(super) fn watch(
    parameters: &PipelineParameters,
    programs: Vec<Program>,
    folder: RunFolder,
    asked: &PipelineOptions,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<PipelineRecord, Refusal> {
    let mut options = Options::new(folder);
    options.may_use_huge_pages = parameters.may_use_huge_pages;
    options.without_master = WithoutMaster::Stop;
    options.group = asked.group;
    options.areas = crate::roles::areas();
    let has_wire = asked.feed.is_some() || asked.gateway.is_some();
    for stages in options.areas.iter_mut().filter(|area| has_wire && area.name == STAGES_AREA) {
        stages.bytes = StageRecorder::<lowlat_ipc::region::Heap>::WIRE_BYTES;
    }
    options.strategies_reserved = parameters.strategies;
    options.clock = asked.replay.as_ref().map(clock);
    if asked.is_stepped() {
        // Its latencies would be those of the recording's time, which stands while nodes work.
        options.areas.retain(|area| area.name != STAGES_AREA);
    }
    options.memory_bytes_max = asked.memory_bytes_max;
    let (own, names): (Vec<_>, Vec<_>) = programs.iter().partition(|program| program.role == OWN);
    let names_of = |programs: Vec<&Program>| programs.iter().map(|program| program.name.clone()).collect();
    let own: BTreeSet<String> = names_of(own);
    let mut watch = Watch {
        master: Master::open(options)?,
        names: names_of(names),
        starting: own.clone(),
        own,
        awaited: asked.replay.iter().flat_map(|replay| replay.awaited.clone()).collect(),
        parameters,
        options: asked,
        hosts: Vec::new(),
        moved_out: BTreeSet::new(),
        joined: BTreeSet::new(),
        is_published: false,
        begun_ns: None,
        ready_ns: 0,
        told_ns: 0,
        progress,
        stop,
        is_asked: false,
        incidents: Vec::new(),
        failed: BTreeSet::new(),
    };
    let interval = Duration::from_millis(asked.start_interval_ms.into());
    watch.start(programs, parameters, interval)?;
    watch.publish(parameters, asked)
}

impl Watch<'_> {
    fn is_stopped(&self) -> bool {
        // Relaxed: it does not order other memory.
        self.is_asked || self.stop.load(Ordering::Relaxed)
    }

    /// Starts all processes, strategies with an interval between them, and waits until they have joined.
    fn start(
        &mut self,
        programs: Vec<Program>,
        parameters: &PipelineParameters,
        interval: Duration,
    ) -> Result<(), Refusal> {
        let started_ns = now_ns();
        let socket = self.master.folder().socket().display().to_string();
        for mut program in programs {
            for argument in program.arguments.iter_mut().filter(|argument| *argument == MASTER) {
                argument.clone_from(&socket);
            }
            for (_, value) in &mut program.environment {
                *value = value.replace(MASTER, &socket);
            }
            if program.role == ProcessRole::Host.name() {
                self.hosts.push(program.clone());
            }
            // A process costs least to start before the master has the memory of others.
            let until = Instant::now()
                + if program.role == ProcessRole::Strategies.name() { interval } else { Duration::ZERO };
            let name = program.name.clone();
            self.master.start(program)?;
            // In a stepped run the numbers of nodes are the same each time.
            let is_early = |watch: &Self| {
                let is_missing = watch.starting.contains(&name)
                    || (watch.names.contains(&name) && !watch.joined.contains(&name));
                watch.options.is_stepped() && is_missing
            };
            while (Instant::now() < until || is_early(self)) && !self.is_stopped() {
                self.turn(TURN.min(interval.max(Duration::from_millis(1))))?;
                self.tell(Phase::Joining, false);
            }
        }
        self.master.pin_this_thread(parameters.pins.get(&ProcessRole::Master).map_or(&[], Vec::as_slice))?;
        let count = u64::try_from(self.names.len() + self.own.len()).unwrap_or(u64::MAX);
        let limit_ns = JOIN_NS_MAX + JOIN_NS_EACH * count;
        let until_ns = now_ns() + limit_ns;
        while !self.names.is_subset(&self.joined) && !self.is_stopped() {
            self.turn(TURN)?;
            self.tell(Phase::Joining, false);
            if now_ns() > until_ns {
                let missing: Vec<&str> = self.names.difference(&self.joined).map(String::as_str).collect();
                let words = missing.first().map_or_else(String::new, |name| self.last_words(name));
                let missing = missing.join(", ");
                let seconds = limit_ns / SECOND_NS;
                return Err(Refusal::new(format!(
                    "{missing} did not join within {seconds} s{words}\nhint: check whether the host has enough CPU time and memory"
                )));
            }
        }
        self.ready_ns = now_ns() - started_ns;
        while !self.starting.is_empty() && !self.is_stopped() && now_ns() <= until_ns {
            self.turn(TURN)?;
            self.tell(Phase::Joining, false);
        }
        for name in std::mem::take(&mut self.starting) {
            self.note(format!("{name} had not joined when the first quote was published"));
        }
        // As long as their user takes to start them.
        while !self.awaited.is_subset(&self.joined) && !self.is_stopped() {
            self.turn(TURN)?;
            self.tell(Phase::Joining, false);
        }
        Ok(())
    }

    /// Lets md publish, waits for its end, and stops everything.
    fn publish(
        mut self,
        parameters: &PipelineParameters,
        asked: &PipelineOptions,
    ) -> Result<PipelineRecord, Refusal> {
        let (before, before_ns) = (uses::read(&self.master), now_ns());
        let idle_before = uses::machine_idle();
        let swapped_before = uses::swapped_pages();
        let begun_ns = now_ns();
        self.begun_ns = Some(begun_ns);
        if !self.is_stopped() {
            self.master.begin();
            self.tell(Phase::Publishing, true);
        }
        // A stepped run takes as long as its nodes do.
        let times = asked.replay.as_ref().map_or(Some(1.0), times);
        let times = times.filter(|_| !self.parameters.is_endless());
        let schedule_ns = times.map_or(u64::MAX, |times| nanoseconds(parameters.duration_s / times));
        let until_ns = begun_ns.saturating_add(schedule_ns).saturating_add(OVERTIME_NS_MAX);
        while !self.is_published && !self.is_stopped() {
            self.turn(TURN)?;
            self.tell(Phase::Publishing, false);
            if now_ns() > until_ns {
                let seconds = OVERTIME_NS_MAX / SECOND_NS;
                return Err(Refusal::new(format!(
                    "md has not ended {seconds} s after the end of its schedule\nhint: run fewer ticks per second"
                )));
            }
        }
        // md ends as if it had published everything when it is stopped.
        let is_interrupted = !self.is_published && !self.parameters.is_endless();
        if !self.is_published {
            // A process that has not joined, or has just ended, gets SIGTERM instead.
            self.master.stop_node("md").ok();
        }
        let elapsed_ns = now_ns() - begun_ns;
        self.rest(asked.overrun)?;
        let (after, uses_ns) = (uses::read(&self.master), now_ns() - before_ns);
        let idle = [idle_before, uses::machine_idle()];
        let private = uses::private(&self.master);
        let swapped_pages = swapped_before.zip(uses::swapped_pages()).map(|(before, after)| after - before);
        self.tell(Phase::Ending, true);
        // td answers pending orders of visiting strategies, and visiting readers read its last answers.
        self.master.stop_visitors(Visitors::Writers, PATIENCE_VISITORS)?;
        let stopped = self.master.stop_programs(PATIENCE)?;
        self.master.stop_visitors(Visitors::All, PATIENCE_VISITORS)?;
        self.hear_last_words()?;
        let ended = EndedRun {
            watch: self,
            elapsed_ns,
            uses_ns,
            before,
            after,
            idle,
            private,
            swapped_pages,
            stopped,
            is_interrupted,
        };
        Ok(outcome::record(parameters, asked, &ended))
    }

    /// Waits until nothing is counted any more, and no order waits for td, whose successor may be joining.
    fn rest(&mut self, overrun: QuoteOverrun) -> Result<(), Refusal> {
        let until_ns = now_ns() + REST_NS_MAX;
        let mut last = (self.counted(), now_ns());
        let rests = |master: &Master, since_ns| {
            let rest_ns = if outcome::has_arrived(master, overrun) { REST_NS } else { REST_BEHIND_NS };
            now_ns() - since_ns >= rest_ns && master.waiting("td") == 0
        };
        while now_ns() < until_ns && !rests(&self.master, last.1) {
            self.turn(Duration::from_millis(20))?;
            self.tell(Phase::Ending, false);
            let counted = self.counted();
            if counted != last.0 {
                last = (counted, now_ns());
            }
        }
        Ok(())
    }

    /// Processes that reported a failure when they were stopped, and auxiliary ones that had to be killed.
    fn hear_last_words(&mut self) -> Result<(), Refusal> {
        for happened in self.master.turn(Duration::ZERO)? {
            let Happened::Ended { name, reason, code, is_failure, .. } = happened else { continue };
            if is_beside(&name) && code != Some(0) {
                self.lose(&name, &reason);
            } else if let Some(code) = code.filter(|code| *code != 0 && !is_failure) {
                self.note(format!("{name} ended with exit status {code}{}", self.last_words(&name)));
            }
        }
        Ok(())
    }

    /// Continues without an auxiliary process, or without a strategy.
    fn lose(&mut self, name: &str, reason: &str) {
        self.note(format!("{name} ended: {reason}{}", self.last_words(name)));
        self.failed.insert(name.to_owned());
    }

    fn counted(&self) -> u64 {
        self.master.nodes().iter().map(|node| node.figures.published + node.figures.read).sum()
    }

    fn turn(&mut self, longest: Duration) -> Result<(), Refusal> {
        for happened in self.master.turn(longest)? {
            if let Happened::Joined { name, .. } | Happened::Ended { name, .. } = &happened {
                self.starting.remove(name);
            }
            match happened {
                Happened::Joined { name, .. }
                    if self.names.contains(&name) || self.awaited.contains(&name) =>
                {
                    self.joined.insert(name);
                }
                Happened::AskedToStop => {
                    if !self.parameters.is_endless() {
                        self.note("its user ended it (lowlat pipeline stop)".to_owned());
                    }
                    self.is_asked = true;
                }
                Happened::Ended { name, is_failure: false, .. } if name == "md" => self.is_published = true,
                // In one process with td it leaves, and the process continues.
                Happened::Left { name } if name == "md" && !self.names.contains(&name) => {
                    self.is_published = true;
                }
                Happened::Ended { name, reason, is_failure, .. }
                    if self.own.contains(&name) && !self.options.is_stepped() =>
                {
                    let then = if is_failure { "; it is restarted" } else { "" };
                    self.note(format!("{name} ended ({reason}){then}"));
                }
                Happened::Ended { name, reason, is_failure, .. } => {
                    if !is_failure && self.begun_ns.is_some() && is_beside(&name) {
                        self.lose(&name, &reason);
                        continue;
                    }
                    // If an essential process ends, the run cannot continue without it; before the begin
                    // nothing is restarted: a failing start fails again.
                    if !is_failure || self.begun_ns.is_none() || self.options.is_stepped() {
                        return Err(self.ended(&name, &reason));
                    }
                    self.note(format!("{name} ended ({reason}) and was restarted"));
                }
                Happened::Abandoned { name, reason } if self.own.contains(&name) => self.lose(&name, &reason),
                Happened::Abandoned { name, reason }
                    if self.begun_ns.is_some() && (is_beside(&name) || self.is_strategy(&name)) =>
                {
                    self.lose(&name, &reason);
                }
                Happened::Abandoned { name, reason } => return Err(self.ended(&name, &reason)),
                Happened::Silent { name, reason } => self.note(format!("{name}: {reason}")),
                Happened::Refused { name, reason } => {
                    self.note(format!("{name} was refused: {}", reason.replace('\n', "; ")));
                }
                Happened::Strained { reason } => self.note(reason.replace('\n', "; ")),
                Happened::Said { name, text } => self.hear(&name, &text)?,
                Happened::Died { name, reason } if self.options.is_stepped() && self.begun_ns.is_some() => {
                    return Err(Refusal::new(format!(
                        "cannot continue at full speed without node {name}: {reason}\nhint: correct that program, and run again"
                    )));
                }
                Happened::Died { name, reason } if !self.master.has_program(&name) => {
                    self.note(format!("{name}, which the run did not start, died: {reason}"));
                }
                Happened::Joined { .. }
                | Happened::Died { .. }
                | Happened::Left { .. }
                | Happened::Back { .. }
                | Happened::Started { .. } => {}
            }
        }
        Ok(())
    }

    /// The refusal for a process that ended and was not restarted.
    fn ended(&self, name: &str, reason: &str) -> Refusal {
        Refusal::new(format!("process {name} ended: {reason}{}", self.last_words(name)))
    }

    /// True for the node of one strategy, without which the others continue.
    fn is_strategy(&self, name: &str) -> bool {
        self.master
            .nodes()
            .iter()
            .any(|node| node.name == name && node.is_sender && node.role != ProcessRole::Host.name())
    }

    /// Keeps a sentence for the record, once, up to a limit.
    fn note(&mut self, incident: String) {
        if self.incidents.contains(&incident) {
            return;
        }
        match self.incidents.len().cmp(&INCIDENTS_MAX) {
            std::cmp::Ordering::Less => self.incidents.push(incident),
            std::cmp::Ordering::Equal => self.incidents.push("further incidents are not listed".to_owned()),
            std::cmp::Ordering::Greater => {}
        }
    }

    /// Messages of nodes: a host reports a strategy that delays the others; others are kept for the record.
    fn hear(&mut self, name: &str, text: &str) -> Result<(), Refusal> {
        let Some(number) = text.strip_prefix(MOVE_OUT).and_then(|number| number.parse::<u32>().ok()) else {
            self.note(format!("{name}: {text}"));
            return Ok(());
        };
        let host = self.hosts.iter().find(|host| host.name == name);
        // Once per strategy: a host that repeats its message starts no second process.
        if let Some(program) = host.map(|host| moved_out(host, number))
            && number < self.parameters.strategies
            && self.moved_out.insert(number)
        {
            self.note(format!(
                "strategy {number} took too long in {name} and was moved to a separate process"
            ));
            self.master.start(program)?;
        }
        Ok(())
    }

    fn tell(&mut self, phase: Phase, is_due: bool) {
        let now_ns = now_ns();
        if !is_due && now_ns - self.told_ns < SECOND_NS {
            return;
        }
        self.told_ns = now_ns;
        let nodes = self.master.nodes();
        let stages = self.master.area(STAGES_AREA).cloned().and_then(StageRecorder::new);
        let t2o = stages.map(|stages| stages.histogram(Stage::T2o));
        let t2o = t2o.filter(|histogram| carries_quantile(histogram.len(), 0.5));
        let md = nodes.iter().find(|node| node.name == "md");
        let count = |set: &BTreeSet<String>| u32::try_from(set.len()).unwrap_or(u32::MAX);
        (self.progress)(&Progress {
            phase,
            joined: count(&self.joined),
            processes: count(&self.names),
            elapsed_s: self.begun_ns.map_or(0.0, |begun| (now_ns - begun) as f64 / SECOND_NS as f64),
            ticks_published: md.map_or(0, |md| md.figures.published),
            orders: outcome::totals(&self.master).answered,
            lost: nodes.iter().map(|node| node.figures.lost).sum(),
            t2o_p50_ns: t2o.map(|histogram| histogram.value_at_percentile(50.0)),
        });
    }

    /// The last output of a process, as the end of a sentence: the folder with its log is removed.
    fn last_words(&self, name: &str) -> String {
        let text = end_of(&self.master.folder().log(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        // A restarted process repeats itself.
        lines.dedup();
        let from = lines.len().saturating_sub(LOG_LINES);
        let words = lines.get(from..).unwrap_or_default().join("\n  ");
        if words.is_empty() {
            "; it wrote no output".to_owned()
        } else {
            format!("; its last output:\n  {words}")
        }
    }
}

/// The end of a file, however long the file is.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
    let mut text = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Multiple of the recorded speed of a run over a recording; `None` if it is stepped.
fn times(replay: &ReplayedRecording) -> Option<f64> {
    replay.speed.as_deref().and_then(Speed::parse).map(Speed::times)
}

/// Clock of a run over a recording: md has time to hear that it may publish.
fn clock(replay: &ReplayedRecording) -> (Pace, u64) {
    let times = times(replay);
    let lead_ns = nanoseconds(LEAD_NS as f64 / 1e9 * times.unwrap_or(1.0));
    (times.map_or(Pace::Stepped, Pace::Times), replay.first_ns.saturating_sub(lead_ns))
}

/// Seconds as nanoseconds, at most a year.
fn nanoseconds(seconds: f64) -> u64 {
    u64::try_from(Duration::try_from_secs_f64(seconds.min(31e6)).unwrap_or_default().as_nanos())
        .unwrap_or(u64::MAX / 4)
}

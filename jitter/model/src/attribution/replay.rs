//! Analysis of one interruption: replays the kernel's nesting of activities from its events.

use super::engine::Sleep;
use super::{
    keys::{KeyId, KeyTable},
    nesting::{can_run_on, ends, gives_way_to, has_value},
    parts::Parts,
    senders::{SenderId, SenderParts},
    timeline::Timeline,
};
use crate::{CauseKind, TimelineChange};
use lowlat_trace::{Activity, Hold, TraceStep, Vector};

/// Maximum nesting depth. The kernel nests a thread, a work function, a softirq, a timer, an interrupt, its
/// timer's function and an NMI: seven. Deeper activities count for what they run on.
const DEPTH_MAX: usize = 24;

/// An activity that has started and not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    key: KeyId,
    /// Its entry into the kernel, while nothing has ended in it.
    entry: Option<u64>,
    sender: Option<SenderId>,
    activity: Activity,
    began: i64,
    /// Its own ticks since it started, or since its last inner activity ended. They go to an inner activity
    /// with an end event but no start event.
    unclaimed: u64,
    /// The time when `unclaimed` started to count, and the next step's index then.
    known_until: i64,
    known_place: usize,
}

/// A cause, and its sender on another CPU.
type Owner = (KeyId, Option<SenderId>);

/// Replays events onto one interruption after another. Every tick of an interruption is assigned to exactly
/// one cause.
#[derive(Debug, Default)]
pub(super) struct EventReplay {
    sampler_tid: i32,
    sleep: Sleep,
    /// The thread on the CPU of one that a timer wakes. It is charged only with delay beyond entry, exit and switch.
    runner: Option<KeyId>,
    /// The limit of the thread's own class or group, once it has been reached.
    limit: Option<Hold>,
    /// Maximum part of a gap that counts as entry to or exit from an activity.
    gap_ticks_max: u64,
    length: u64,
    /// Ticks of the interruption processed so far, including those in `gap`.
    cursor: u64,
    /// Ticks since the stack was last empty that have no cause yet.
    gap: u64,
    pub(super) has_event: bool,
    has_lost: bool,
    /// The gap follows a loss, so anything may have run in it.
    is_after_loss: bool,
    /// Unexplained ticks before the kernel's first event and after its last, when the kernel was not seen to
    /// run.
    outside: u64,
    /// The activity that ended last and left the stack empty.
    last_base: Option<Owner>,
    /// A signal of the sampler whose handling was interrupted by another thread.
    set_aside: Option<Activity>,
    pub(super) stack: Vec<Frame>,
    pub(super) parts: Parts,
    pub(super) senders: SenderParts,
    pub(super) timeline: Timeline,
}

impl EventReplay {
    pub(super) fn new(sampler_tid: i32, sleep: Sleep, gap_ticks_max: u64) -> Self {
        let stack = Vec::with_capacity(DEPTH_MAX);
        Self { sampler_tid, sleep, gap_ticks_max, stack, ..Self::default() }
    }

    /// Starts an interruption of this many ticks. The sampler ran in user mode right before, so nothing else
    /// is running.
    pub(super) fn begin(&mut self, length: u64, wants_timeline: bool) {
        (self.length, self.cursor, self.gap, self.outside) = (length, 0, 0, 0);
        (self.has_event, self.has_lost, self.is_after_loss) = (false, false, false);
        (self.last_base, self.set_aside, self.runner) = (None, None, None);
        self.stack.clear();
        self.parts.clear();
        self.senders.clear();
        self.timeline.clear(wants_timeline);
    }

    /// States that the events so far are stamped before the interruption: only what they left running counts.
    pub(super) fn enter(&mut self) {
        let wants_timeline = self.timeline.is_wanted;
        self.timeline.clear(wants_timeline);
        self.parts.clear();
        self.senders.clear();
        self.has_event = !self.stack.is_empty();
        (self.has_lost, self.is_after_loss, self.last_base) = (false, false, None);
        for (depth, frame) in self.stack.iter_mut().enumerate() {
            self.parts.begin(frame.key);
            self.senders.add(frame.sender, 0);
            self.timeline.add_sent(frame.began, depth, TimelineChange::Begins, frame.key, frame.sender);
            (frame.known_until, frame.known_place) = (frame.began, self.timeline.place());
        }
    }

    /// True if an event stamped after the interruption ends an activity that still runs, and so belongs to it.
    pub(super) fn is_continued_by(&self, step: TraceStep) -> bool {
        match step {
            TraceStep::Exit(activity) => self.find(activity).is_some(),
            TraceStep::Switch { from, to, .. } => {
                to == self.sampler_tid
                    && (self.is_held()
                        || self.stack.first().is_some_and(|base| base.activity == Activity::Thread(from)))
            }
            _ => false,
        }
    }

    /// Returns the time before the kernel's first event and after its last, in ticks, without entry and exit.
    pub(super) fn outside(&self) -> u64 {
        if self.has_lost { 0 } else { self.outside }
    }

    /// Replays one event, stamped this many ticks after the start of the interruption. Stamps outside it, and
    /// stamps before the previous event, are moved to the nearest possible moment.
    /// `sender`: its sender on another CPU.
    pub(super) fn step(
        &mut self,
        offset: i64,
        step: TraceStep,
        sender: Option<SenderId>,
        keys: &mut KeyTable,
    ) {
        let at = u64::try_from(offset).unwrap_or(0).clamp(self.cursor, self.length);
        // The timeline shows a stamp outside the interruption unchanged, and one out of order where it was
        // counted.
        let is_outside = (offset < 0 && self.cursor == 0) || at == self.length;
        let offset = if is_outside { offset } else { signed(at) };
        match step {
            TraceStep::Lost(_) => return self.lose(at, offset),
            TraceStep::Wakes(_) => return,
            _ => {}
        }
        self.has_event = true;
        // Other activity is irrelevant to a thread that could not run anyway.
        let returns = matches!(step, TraceStep::Switch { to, .. } if to == self.sampler_tid);
        if self.is_held() && !returns {
            return self.advance(at);
        }
        if let TraceStep::Took(activity, ticks) = step {
            return self.cut_out(activity, ticks, at, offset, keys);
        }
        self.advance(at);
        match step {
            TraceStep::Enter(activity) => self.enter_activity(activity, sender, offset, keys),
            TraceStep::Called { function, .. } => {
                self.enter_activity(Activity::CallFunction(function), sender, offset, keys);
            }
            TraceStep::Exit(activity) => self.exit_activity(activity, offset, keys),
            TraceStep::Point(activity) => self.begin_point(activity, offset, keys),
            TraceStep::Switch { from, to, hold } => self.switch([from, to], hold, offset, keys),
            TraceStep::Took(..) | TraceStep::Lost(_) | TraceStep::Wakes(_) => {}
        }
    }

    /// Ends the interruption. `is_lost_ahead`: the next event in the buffer says that events before it are
    /// missing, so what followed the last one here is unknown.
    pub(super) fn finish(&mut self, is_lost_ahead: bool) {
        if is_lost_ahead {
            self.lose(self.length, signed(self.length));
        }
        self.advance(self.length);
        // The sampler runs at the end, whether its return was reported or not.
        self.doubt_unless_by(self.sampler_tid, signed(self.length));
        if self.has_event || self.has_lost {
            self.outside += self.gap.saturating_sub(self.gap_ticks_max);
            self.close_gap(self.last_base);
        } else {
            self.parts.add_kind(CauseKind::Unexplained, std::mem::take(&mut self.gap));
        }
    }

    /// Assigns the time until `at` to the running activity.
    fn advance(&mut self, at: u64) {
        let ticks = at - self.cursor;
        self.cursor = at;
        match self.stack.last_mut() {
            Some(top) => {
                top.unclaimed += ticks;
                self.parts.add(top.key, ticks);
                self.senders.add(top.sender, ticks);
            }
            None => self.gap += ticks,
        }
    }

    /// Ends a gap. Up to a limit it was the entry to or exit from its owner; without an owner, it counts as
    /// entry and exit.
    /// Returns how much that was.
    fn close_gap(&mut self, owner: Option<Owner>) -> u64 {
        let gap = std::mem::take(&mut self.gap);
        if std::mem::take(&mut self.is_after_loss) {
            self.parts.add_kind(CauseKind::NotTraced, gap);
            return 0;
        }
        let explained = gap.min(self.gap_ticks_max);
        if gap == self.cursor && self.cursor < self.length {
            self.outside += gap - explained;
        }
        let (key, sender) = owner.unwrap_or((KeyId::of_kind(CauseKind::EntryExit), None));
        self.parts.add_entry_exit(key, explained);
        self.senders.add(sender, explained);
        let unknown = if self.has_lost { CauseKind::NotTraced } else { CauseKind::Unexplained };
        if gap > explained {
            self.parts.add(self.runner.unwrap_or(KeyId::of_kind(unknown)), gap - explained);
        }
        explained
    }

    fn push(&mut self, activity: Activity, sender: Option<SenderId>, offset: i64, keys: &mut KeyTable) {
        if self.stack.len() >= DEPTH_MAX {
            return;
        }
        let key = keys.id(activity);
        let mut entry = 0;
        if self.stack.is_empty() {
            // The scheduler ran for the thread that it chose; otherwise the previous activity is still
            // exiting.
            let is_chosen = matches!(activity, Activity::Thread(_));
            let exiting = self.last_base.filter(|_| !is_chosen);
            let explained = self.close_gap(exiting.or(Some((key, sender))));
            entry = if exiting.is_none() { explained } else { 0 };
        } else {
            self.name_timer(activity, keys);
        }
        self.parts.begin(key);
        self.senders.add(sender, 0);
        self.timeline.add_sent(offset, self.stack.len(), TimelineChange::Begins, key, sender);
        let known_place = self.timeline.place();
        self.stack.push(Frame {
            key,
            entry: Some(entry),
            sender,
            activity,
            began: offset,
            unclaimed: 0,
            known_until: offset,
            known_place,
        });
    }

    /// Names the interrupt of a timer after the first function that it runs: the timer was set for that.
    fn name_timer(&mut self, activity: Activity, keys: &mut KeyTable) {
        let (Some(interrupt), Activity::Hrtimer(function)) = (self.stack.last_mut(), activity) else {
            return;
        };
        let is_timer = matches!(interrupt.activity, Activity::Vector(Vector::LocalTimer) | Activity::Irq(_));
        if let Some(entry) = interrupt.entry.take().filter(|_| is_timer) {
            let key = keys.id(Activity::TimerInterrupt(function));
            self.parts.hand_over(interrupt.key, key, interrupt.unclaimed + entry, entry);
            self.timeline.rename(interrupt.known_place, key);
            interrupt.key = key;
        }
    }

    fn pop(&mut self, offset: i64) {
        let Some(over) = self.stack.pop() else { return };
        self.timeline.add(offset, self.stack.len(), TimelineChange::Ends, over.key);
        let is_interrupt = matches!(over.activity, Activity::Irq(_) | Activity::Vector(_) | Activity::Nmi);
        if self.stack.is_empty() {
            self.last_base = Some((over.key, over.sender));
        }
        if let Some(below) = self.stack.last_mut().filter(|_| !is_interrupt) {
            (below.unclaimed, below.entry) = (0, None);
            (below.known_until, below.known_place) = (offset, self.timeline.place());
        }
    }

    fn pop_to(&mut self, depth: usize, offset: i64) {
        while self.stack.len() > depth {
            self.pop(offset);
        }
    }

    /// Ends activities that must have ended, although their end event is missing, because this activity
    /// cannot run on top of them.
    fn pop_what_cannot_be_below(&mut self, activity: Activity, offset: i64) {
        while self.stack.last().is_some_and(|top| !can_run_on(activity, top.activity)) {
            self.pop(offset);
        }
    }

    fn enter_activity(
        &mut self,
        activity: Activity,
        sender: Option<SenderId>,
        offset: i64,
        keys: &mut KeyTable,
    ) {
        self.pop_what_cannot_be_below(activity, offset);
        self.push(activity, sender, offset, keys);
    }

    /// The depth of the activity that an exit event ends: the innermost with its name, otherwise the
    /// innermost of its kind if it has no name.
    fn find(&self, activity: Activity) -> Option<usize> {
        let exact = self.stack.iter().rposition(|frame| frame.activity == activity);
        exact.or_else(|| self.stack.iter().rposition(|frame| ends(activity, frame.activity)))
    }

    fn exit_activity(&mut self, activity: Activity, offset: i64, keys: &mut KeyTable) {
        if let Some(depth) = self.find(activity) {
            return self.pop_to(depth, offset);
        }
        self.pop_what_cannot_be_below(activity, offset);
        self.claim(activity, offset, keys);
    }

    /// Ends an activity whose start was not seen: it has run since the start of what it runs on, or of the
    /// interruption.
    fn claim(&mut self, activity: Activity, offset: i64, keys: &mut KeyTable) {
        let key = keys.id(activity);
        match self.stack.last_mut() {
            None => {
                (self.is_after_loss, self.last_base) = (false, Some((key, None)));
                let gap = std::mem::take(&mut self.gap);
                self.parts.add(key, gap);
                self.timeline.add(signed(self.cursor - gap), 0, TimelineChange::Begins, key);
            }
            // Without a name, the time stays with what it ran on.
            Some(_) if !has_value(activity) => return,
            Some(below) => {
                let ticks = std::mem::take(&mut below.unclaimed);
                let (from, place, began) = (below.key, below.known_place, below.known_until);
                self.senders.remove(below.sender, ticks);
                self.parts.give(from, key, ticks);
                self.timeline.insert_begin(place, began, self.stack.len(), key);
            }
        }
        self.timeline.add(offset, self.stack.len(), TimelineChange::Ends, key);
        if let Some(below) = self.stack.last_mut() {
            below.entry = None;
            (below.known_until, below.known_place) = (offset, self.timeline.place());
        }
    }

    /// An activity that reports its length when it ends. Nothing else was traced while it ran, so it cannot
    /// be longer than the time since the previous event.
    fn cut_out(&mut self, activity: Activity, ticks: u64, at: u64, offset: i64, keys: &mut KeyTable) {
        let taken = ticks.min(at - self.cursor);
        self.advance(at - taken);
        let key = keys.id(activity);
        if self.stack.is_empty() {
            self.close_gap(self.last_base.or(Some((key, None))));
            self.last_base = Some((key, None));
        }
        self.cursor = at;
        self.parts.add(key, taken);
        let began = offset.saturating_sub_unsigned(taken);
        self.timeline.add(began, self.stack.len(), TimelineChange::Begins, key);
        self.timeline.add(offset, self.stack.len(), TimelineChange::Ends, key);
    }

    /// A page fault of the sampler, or a signal to it. The kernel does not report its end, so it gets the
    /// time that nothing on top of it takes until the next one comes, the interruption ends or, for a fault,
    /// the scheduler switches. Faults and signals in an interrupt or another thread are part of that, and a
    /// fault in a signal's handler is part of the signal.
    fn begin_point(&mut self, activity: Activity, offset: i64, keys: &mut KeyTable) {
        if let [base] = self.stack.as_slice()
            && gives_way_to(base.activity, activity)
        {
            self.pop(offset);
        }
        if self.stack.is_empty() {
            self.push(activity, None, offset, keys);
        } else {
            self.timeline.add(offset, self.stack.len(), TimelineChange::Happens, keys.id(activity));
        }
    }

    /// The scheduler switches. It never does so in an interrupt, so everything that seemed to run has ended
    /// or is set aside. Work that was set aside is not resumed with its thread, and counts as that thread
    /// until it ends. Only a signal of the sampler continues when the sampler does: the remaining exit time
    /// is then the entry to its handler, or the handler itself.
    fn switch(&mut self, [from, to]: [i32; 2], hold: Option<Hold>, offset: i64, keys: &mut KeyTable) {
        if self.sleep == Sleep::Timer {
            return self.change_runner(to, offset, keys);
        }
        if self.stack.is_empty() && from != self.sampler_tid {
            self.claim(Activity::Thread(from), offset, keys);
        }
        if !self.is_held() {
            self.doubt_unless_by(from, offset);
        }
        let signal = self.stack.first().map(|base| base.activity);
        self.set_aside = signal.filter(|base| matches!(base, Activity::Signal(_))).or(self.set_aside);
        self.pop_to(0, offset);
        if to == self.sampler_tid {
            self.timeline.add(offset, 0, TimelineChange::Returns, KeyId::of_kind(CauseKind::EntryExit));
            if let Some(signal) = self.set_aside.take() {
                self.push(signal, None, offset, keys);
            }
        } else {
            let own = hold.filter(|_| from == self.sampler_tid);
            self.limit = own.filter(|hold| matches!(hold, Hold::Limit | Hold::Quota)).or(self.limit);
            // The CPU idles although the thread could run: its time was used up. Threads in between hid that.
            let hold = own
                .or(self.limit.filter(|_| from != self.sampler_tid && to == 0 && self.sleep == Sleep::Never));
            self.push(hold.map_or(Activity::Thread(to), Activity::Held), None, offset, keys);
        }
    }

    /// Another thread, or the measured one, runs from now on.
    fn change_runner(&mut self, to: i32, offset: i64, keys: &mut KeyTable) {
        self.pop_to(0, offset);
        self.close_gap(self.last_base);
        self.runner = (to != self.sampler_tid).then(|| keys.id(Activity::Thread(to)));
        let (change, key) = match self.runner {
            Some(runner) => (TimelineChange::Happens, runner),
            None => (TimelineChange::Returns, KeyId::of_kind(CauseKind::EntryExit)),
        };
        self.timeline.add(offset, 0, change, key);
    }

    fn is_held(&self) -> bool {
        self.stack.first().is_some_and(|base| matches!(base.activity, Activity::Held(_)))
    }

    /// If another thread is running than the events so far say, a switch was missed: the time since the last
    /// known moment may belong to either.
    fn doubt_unless_by(&mut self, thread: i32, offset: i64) {
        let Some(base) = self.stack.first_mut() else { return };
        let told = if let Activity::Thread(tid) = base.activity { tid } else { self.sampler_tid };
        if told != thread && base.unclaimed > 0 {
            let (key, ticks) = (base.key, std::mem::take(&mut base.unclaimed));
            let (place, began) = (base.known_place, base.known_until);
            self.senders.remove(base.sender, ticks);
            let not_traced = KeyId::of_kind(CauseKind::NotTraced);
            self.parts.give(key, not_traced, ticks);
            self.pop_to(1, offset);
            self.timeline.insert_begin(place, began, 1, not_traced);
            self.timeline.add(offset, 1, TimelineChange::Ends, not_traced);
        }
    }

    /// Events are missing between the last one and this moment: that time has no cause, and the current
    /// activity is unknown.
    fn lose(&mut self, at: u64, offset: i64) {
        self.close_gap(self.last_base);
        self.pop_to(0, signed(self.cursor));
        self.parts.add_kind(CauseKind::NotTraced, at - self.cursor);
        self.cursor = at;
        (self.has_lost, self.is_after_loss) = (true, true);
        (self.last_base, self.set_aside) = (None, None);
        self.timeline.add(offset, 0, TimelineChange::Lost, KeyId::of_kind(CauseKind::NotTraced));
    }
}

fn signed(ticks: u64) -> i64 {
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

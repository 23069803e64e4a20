"""lowlat killed with SIGKILL at its fsync(2) calls, during apply and during rollback; a rollback is exact each time.

Each step of the undo log is kept, recorded, done and recorded again, and each of these ends in an fsync or a rename:
killed there, the log covers every state that a crash can leave. strace holds the n-th call at its entry."""

import random

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = False
# Without --all, some of the calls, drawn with this seed. With --all, every n-th call with a varying offset: a step makes about
# five, so this covers each step, and all of their moments in turn. The tests of tune/run cover each moment of each step.
SEED, QUICK_COUNT, STRIDE = 20260101, 5, 5
CALLS = "fsync,fdatasync,rename,renameat,renameat2"
# With a filter in the kernel, so that other calls stay fast; it needs -f, and a child has a separate count.
STRACE = "strace -f --seccomp-bpf -qq"

# Under such a filter strace can hold a call at its entry, but send no signal. So it holds the call, and a loop that sees
# lowlat held for a while kills it.
KILL = """
%(strace)s -o /dev/null -e trace=%(call)s -e inject=%(call)s:delay_enter=600s:when=%(n)d \
    lowlat tune %(command)s --yes >/dev/null 2>/lab/killed.err </dev/null &
strace=$!
exec {silence}<> <(:)
until pid=$(pgrep -P $strace -x lowlat); do kill -0 $strace || exit 99; done
held=0
while kill -0 $pid 2>/dev/null && [ $held -lt 5 ]; do
    read -rt 0.2 -u $silence
    read -r _ _ state _ </proc/$pid/stat || break
    if [ "$state" = t ]; then held=$((held + 1)); else held=0; fi
done
if [ $held -eq 5 ]; then
    # lowlat first, so that the call is never made; then strace, which would otherwise wait for the end of its delay.
    kill -KILL $pid $strace
    wait $strace
    while kill -0 $pid 2>/dev/null; do read -rt 0.1 -u $silence; done
    exit 137
fi
wait $strace
"""


def kill_at(command, call, n):
    return KILL % {"strace": STRACE, "command": command, "call": call, "n": n}


def kill(guest, command, call, n):
    if command == "rollback":
        guest.must("lowlat tune apply --yes >/dev/null 2>&1")
    return guest.run(kill_at(command, call, n))


def spread(calls):
    return [call for at, call in enumerate(calls) if at % STRIDE == at // STRIDE % STRIDE]


def calls_of(lab, carry_out):
    """The calls of a whole run: name and number, in order."""
    carry_out(lab, under=f"{STRACE} -o /lab/calls -e trace={CALLS}")
    found, numbers, first = [], {}, None
    for line in (lab.guest.share / "calls").read_text().splitlines():
        process, text = line.split(None, 1)
        first = first or process
        name = text.split("(")[0]
        if process == first and name in CALLS.split(","):
            numbers[name] = numbers.get(name, 0) + 1
            found.append((name, numbers[name]))
    return found


def run(lab):
    guest = lab.guest
    guest.boot()
    before = lab.facts("before")
    # The very first run creates folders and a log, so it makes more calls than later ones.
    tune.apply(lab)
    tune.rollback(lab)
    applying = calls_of(lab, tune.apply)
    rolling_back = calls_of(lab, tune.rollback)
    lab.same(before, lab.facts("whole"), "after a whole apply and rollback in one boot")
    lab.need("apply makes its steps durable", len(applying) > 20, len(applying))
    lab.note(f"{len(applying)} calls in apply, {len(rolling_back)} in rollback")
    chosen = [("apply", *call) for call in spread(applying)]
    chosen += [("rollback", *call) for call in spread(rolling_back)]
    if not lab.is_all:
        draw = random.Random(SEED)
        chosen = [("apply", *call) for call in draw.sample(applying, QUICK_COUNT - 1)]
        chosen += [("rollback", *call) for call in draw.sample(rolling_back, 1)]
    for command, call, n in chosen:
        done = kill(guest, command, call, n)
        while done.status in (0, 1) and n > 1:
            # It ended, with everything in force except what the kernel rejected: an existing log may need fewer
            # calls. The call was then meant to be the last one.
            lab.note(f"{command} made fewer than {n} calls of {call} this time")
            tune.rollback(lab)
            n -= 1
            done = kill(guest, command, call, n)
        when = f"{command} killed at {call} {n}"
        lab.check(f"{when}: it was killed", done.status == 137, repr(done))
        tune.rollback(lab)
        lab.same(before, lab.facts("killed"), when)

"""One virtual server over its boots: a persistent disk, and jobs that run in it as root."""

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time

from . import lost
from . import machine as machines

GUEST = machines.LAB / "guest"
JOB_SECONDS = 1200
BOOT_SECONDS = 1800
# Time limit of an answer from QEMU, which may have to wait for a CPU.
ANSWER_SECONDS = 30
# Maximum number of consecutive boots in which QEMU itself fails.
BOOTS_MAX = 6
# The kernel's message about a hung task, first after 120 seconds.
HANGS = re.compile(r"INFO: task \S+ blocked for more than (\d+) seconds")
HANG_SECONDS = 200
# A kernel whose timers no longer fire repeats only this; one that boots never logs it.
STALLS = re.compile(r"rcu: INFO: rcu_\w+ detected stalls")
STALLS_MAX = 5
# A guest that has to wait for its CPUs while its kernel checks a timer panics: "IO-APIC + timer doesn't work".
PANIC = "Kernel panic - not syncing"

# In an emulated guest, udev still renames NICs long after systemd reports "running".
SETTLE = """
state=$(timeout 1500 systemctl is-system-running --wait)
udevadm settle --timeout=600
/usr/lib/systemd/systemd-networkd-wait-online --timeout=300
echo "$state"
"""


class GuestError(Exception):
    """The guest failed to do something that every scenario needs."""


class Skip(Exception):
    """The scenario cannot be run here, with the reason."""


MACHINES = []
"""Every QEMU that was started. They end with the run, whatever its result."""
GIVEN_UP = threading.Event()
"""Raised when the run is aborted: no more machines are started."""


def give_up():
    """Ends every machine; waiting callers see that it has ended."""
    GIVEN_UP.set()
    for qemu in list(MACHINES):
        qemu.kill()


class Done:
    """Result of a job."""

    def __init__(self, name, status, text):
        self.name, self.status, self.text = name, status, text

    def json(self):
        """Its output as a JSON document; None if it is not one."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    def __repr__(self):
        lines = self.text.strip().splitlines()
        return f"{self.name}: status {self.status}" + (f": {' / '.join(lines[-3:])[:400]}" if lines else "")


class Running:
    """The process of a running machine."""

    def is_running(self):
        return self.process.poll() is None

    def wait(self, seconds):
        """Whether it ended in time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self):
        """Ends it, unless it has ended."""
        self.process.send_signal(signal.SIGKILL)
        self.wait(60)


class Qemu(Running):
    """A running QEMU, and how its guest ended: "guest-reset", "guest-shutdown", or None if it was killed."""

    def __init__(self, arguments, log):
        self.ended_by = None
        self.answers, self.asked = queue.Queue(), 0
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self._send({"execute": "qmp_capabilities"})
        self.reader = threading.Thread(target=self._events, daemon=True)
        self.reader.start()
        MACHINES.append(self)

    def _events(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if message.get("event") == "SHUTDOWN":
                self.ended_by = message["data"]["reason"]
            if "id" in message:
                self.answers.put(message)

    def _send(self, message):
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except OSError:
            # It has ended, which callers check separately.
            pass

    def _ask(self, command, **arguments):
        """The machine's answer; None without one, for example if it ends in the meantime."""
        self.asked += 1
        self._send({"execute": command, "arguments": arguments, "id": self.asked})
        end = time.monotonic() + ANSWER_SECONDS
        while self.is_running() and time.monotonic() < end:
            try:
                answer = self.answers.get(timeout=1)
            except queue.Empty:
                continue
            # Another id is the late answer to a request that timed out.
            if answer["id"] == self.asked:
                return answer.get("return")
        return None

    def cpus(self):
        """The numbers of its CPUs."""
        return [cpu["cpu-index"] for cpu in self._ask("query-cpus-fast") or ()]

    def monitor(self, line, cpu):
        """The human monitor's output for a CPU."""
        return self._ask("human-monitor-command", **{"command-line": line, "cpu-index": cpu}) or ""

    def wait(self, seconds):
        has_ended = super().wait(seconds)
        if has_ended:
            self.reader.join(10)
        return has_ended


class Guest:
    """A machine with a separate disk: an overlay on the disk of lab/disk, kept from boot to boot."""

    def __init__(self, machine, disk, folder, binary, progress):
        self.folder, self.disk, self.binary, self.progress = folder, disk, binary, progress
        self.machine = machines.load(machine, folder / "tables")
        self.overlay = folder / "disk.qcow2"
        self._share()
        subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", disk, self.overlay], check=True
        )

    def _share(self):
        """The folder that it shares with its host."""
        self.share = self.folder / "share"
        self.share.mkdir(parents=True)
        shutil.copy(self.binary, self.share / "lowlat")
        # Most of a binary is debug information, and every byte passes through the emulator.
        if shutil.which("strip"):
            # It leaves a binary for another processor as it is.
            subprocess.run(["strip", "--strip-debug", self.share / "lowlat"], check=False, stderr=subprocess.DEVNULL)
        shutil.copy(GUEST / "facts.py", self.share / "facts.py")
        self.qemu, self.boots, self.jobs = None, 0, 0
        self.lost = None
        """The interrupt that QEMU lost in the last boot."""
        self.boot_id = self.cmdline = ""
        self.boot_seconds = 0
        """Duration of the last boot."""
        self.is_installed = False

    def twin(self, name):
        """Another machine of the same kind with a fresh disk. Its owner ends it."""
        return type(self)(self.machine.name, self.disk, self.folder / name, self.binary, lambda text: self.progress(f"{name}: {text}"))

    def _arguments(self, console):
        # cache=writeback: a power cut keeps what the guest flushed. Other writes that had reached a new cluster are
        # lost, because QEMU keeps the image's tables in memory until a flush.
        return [
            f"qemu-system-{self.machine.arch}", "-accel", f"tcg,thread={self.machine.threads}", "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-boot", "strict=on", "-serial", f"file:{console}", "-qmp", "stdio",
            *self.machine.arguments,
            "-drive", f"if=none,id=root,format=qcow2,cache=writeback,file={self.overlay}",
            "-device", f"{self.machine.disk},bus={self.machine.bus},bootindex=0",
            "-fsdev", f"local,id=lab,path={self.share},security_model=none",
            "-device", f"virtio-9p-pci,fsdev=lab,mount_tag=lab,bus={self.machine.bus}",
        ]  # fmt: skip

    def power_on(self):
        """Starts the machine and returns at once."""
        self._before_boot()
        log = open(self.folder / f"qemu-{self.boots}.log", "w")
        self.qemu = Qemu(self._arguments(self.folder / f"console-{self.boots}.log"), log)
        self._after_start()

    def _before_boot(self):
        self.boots += 1
        (self.share / "go").unlink(missing_ok=True)
        (self.share / "jobs").mkdir(exist_ok=True)
        self.known = set(os.listdir(self.share / "boots")) if (self.share / "boots").exists() else set()

    def _after_start(self):
        self.started = time.monotonic()
        # After the start: of two concurrent checks, at least one sees the other.
        if GIVEN_UP.is_set():
            self.qemu.kill()
            raise GuestError("the run was given up")

    def boot(self, settled=True):
        """Starts the machine and waits until it accepts jobs. QEMU 10 with several CPU threads occasionally aborts in
        the first seconds ("iotlb_to_section: Assertion"), or loses an interrupt: starting it again loses nothing.

        A kernel that hangs otherwise is started again once, with a message: a hang caused by its settings happens again."""
        has_hung = False
        for _ in range(BOOTS_MAX):
            self.power_on()
            if self._await_agent():
                break
            if self.lost or (self._hangs() and not has_hung):
                has_hung |= not self.lost
                why = f"QEMU lost an interrupt ({self.lost})" if self.lost else self._console()
                self.progress(f"boot {self.boots} hangs and is started again; {why}")
                self.qemu.kill()
                continue
            if self.qemu.is_running() or self.qemu.process.returncode != -signal.SIGABRT:
                raise GuestError(f"boot {self.boots}: the guest accepts no jobs; {self._console()}")
        else:
            raise GuestError("QEMU aborts or its guest hangs repeatedly")
        if settled:
            self.settle()
        self.boot_seconds = time.monotonic() - self.started
        self.progress(f"boot {self.boots} of {self.machine.name} took {self.boot_seconds:.0f} s")

    def settle(self):
        """Waits until the system has nothing left to start; returns systemd's name for its state."""
        self.state = self.run(SETTLE, 2400).text.strip().splitlines()[-1:]
        self._install()

    def _install(self):
        if not self.is_installed:
            self.must("install -m 755 /lab/lowlat /usr/local/sbin/lowlat && sync -f /usr/local/sbin/lowlat")
            self.is_installed = True

    def _await_agent(self):
        watch, self.lost = lost.Watch(self.qemu), None
        while time.monotonic() < self.started + BOOT_SECONDS and self.qemu.is_running() and not self._hangs():
            if self._has_booted():
                return True
            self.lost = watch.lost(time.monotonic())
            if self.lost:
                return False
            time.sleep(0.3)
        return False

    def _has_booted(self):
        """Whether a new boot accepts jobs."""
        boots = self.share / "boots"
        new = {name for name in os.listdir(boots) if "." not in name} - self.known if boots.exists() else ()
        for self.boot_id in new:
            self.cmdline = (boots / self.boot_id).read_text().strip()
        return bool(new)

    def _hangs(self):
        """Whether the kernel has panicked, or logged, more than once, a task that waits for minutes, or stalls. Used
        before the agent runs."""
        path = self.folder / f"console-{self.boots}.log"
        console = path.read_text(errors="replace") if path.exists() else ""
        is_waiting = any(int(seconds) > HANG_SECONDS for seconds in HANGS.findall(console))
        return is_waiting or PANIC in console or len(STALLS.findall(console)) > STALLS_MAX

    def _console(self):
        path = self.folder / f"console-{self.boots}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return "the console's last lines: " + " / ".join(lines[-5:])

    def start(self, script):
        """Submits a job and returns its name without waiting for its end."""
        end = time.monotonic() + 60
        while (self.share / "go").exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.jobs += 1
        name = f"{self.jobs:03}"
        (self.share / "jobs" / f"{name}.job").write_text(script)
        part = self.share / "go.part"
        part.write_text(name + "\n")
        part.rename(self.share / "go")
        return name

    def is_done(self, name):
        return (self.share / "jobs" / f"{name}.status").exists()

    def finish(self, name, seconds=JOB_SECONDS):
        """Waits for a job."""
        end = time.monotonic() + seconds
        while not self.is_done(name):
            if not self.qemu.is_running():
                raise GuestError(f"job {name}: the guest ended ({self.qemu.ended_by}); {self._console()}")
            if time.monotonic() > end:
                self._look_around()
                raise GuestError(f"job {name}: not done after {seconds} s: {self._text(name)[-400:]}")
            time.sleep(0.1)
        status = int((self.share / "jobs" / f"{name}.status").read_text())
        return Done(name, status, self._text(name))

    def _look_around(self):
        """Writes what the guest is doing to looked-around.txt, to find out why a job does not end."""
        name = self.start("ps -eo pid,ppid,stat,wchan:24,etimes,args --forest; systemctl list-jobs; journalctl -b -n 200 --no-pager")
        end = time.monotonic() + 120
        while not self.is_done(name) and self.qemu.is_running() and time.monotonic() < end:
            time.sleep(0.3)
        (self.folder / "looked-around.txt").write_text(self._text(name))

    def _text(self, name):
        path = self.share / "jobs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, script, seconds=JOB_SECONDS):
        """Runs a job and waits for it."""
        return self.finish(self.start(script), seconds)

    def must(self, script, seconds=JOB_SECONDS):
        """Runs a job that must end with 0."""
        done = self.run(script, seconds)
        if done.status != 0:
            raise GuestError(f"{script.strip().splitlines()[0]}: {done!r}")
        return done

    def await_end(self, reason, seconds=BOOT_SECONDS):
        """Waits until the guest ends on its own, in this way."""
        if not self.qemu.wait(seconds):
            raise GuestError(f"no {reason} within {seconds} s; {self._console()}")
        if self.qemu.ended_by != reason:
            raise GuestError(f"the guest ended by {self.qemu.ended_by}, expected {reason}; {self._console()}")

    def reboot(self, settled=True):
        """Reboots as an administrator does."""
        self.start("systemctl reboot")
        self.await_end("guest-reset")
        self.boot(settled)

    def give(self, path, name):
        """Puts a file into the shared folder."""
        shutil.copy(path, self.share / name)

    def cut_power(self):
        self.qemu.kill()
        self.progress(f"power cut {time.monotonic() - self.started:.0f} s after the start of boot {self.boots}")

    def off(self):
        """Ends the machine immediately."""
        if self.qemu:
            self.qemu.kill()
        self.overlay.unlink(missing_ok=True)
        (self.share / "lowlat").unlink(missing_ok=True)

"""One server as a container with systemd: it boots in a second, and of the kernel's settings it has those of its network."""

import os
import subprocess
import time

from . import guest, machine

# What systemd-nspawn ends with when the container reboots.
REBOOTED = 133
# Time limit of a boot, which takes a second on a quiet host.
BOOT_SECONDS = 120
# In mounts and processes of its own, which end with it. systemd wants the second version of cgroups alone.
START = """
mkdir -p "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay -o "lowerdir=$tree,upperdir=$folder/upper,workdir=$folder/work" container "$folder/root"
mount -t tmpfs none /run
umount -R /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup
systemd-nspawn -q -b -D "$folder/root" -M "$name" --bind="$share:/lab" --private-network --register=no --keep-unit --console=pipe
"""


class Nspawn(guest.Running):
    """A running container, and how it ended: as in `guest.Qemu`."""

    def __init__(self, environment, log):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "bash", "-c", START],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        guest.MACHINES.append(self)

    @property
    def ended_by(self):
        return {REBOOTED: "guest-reset", 0: "guest-shutdown"}.get(self.process.poll())


class Container(guest.Guest):
    """A container with a separate file system: an overlay on the folder of lab/tree, kept from boot to boot."""

    def __init__(self, machine_name, tree, folder, binary, progress):
        self.folder, self.disk, self.binary, self.progress = folder, tree, binary, progress
        self.machine = machine.Machine(machine_name, machine.arch(machine_name), "", "", "", [])
        self._share()

    def power_on(self):
        """Starts it and returns at once."""
        self._before_boot()
        environment = {"share": str(self.share), "folder": str(self.folder), "tree": self.disk, "name": self.folder.name}
        log = open(self.folder / f"console-{self.boots}.log", "w")
        self.qemu = Nspawn(environment, log)
        self._after_start()

    def _await_agent(self):
        while time.monotonic() < self.started + BOOT_SECONDS and self.qemu.is_running():
            if self._has_booted():
                return True
            time.sleep(0.1)
        return False

    def boot(self, settled=True):
        try:
            super().boot(settled)
        except guest.GuestError as error:
            # Some hosts permit no containers, being one themselves.
            if self.boots == 1 and not self.qemu.is_running():
                raise guest.Skip(f"systemd-nspawn starts no container here: {error}") from error
            raise

    def settle(self):
        """Waits until the system has nothing left to start."""
        self.state = self.run("timeout 120 systemctl is-system-running --wait").text.strip().splitlines()[-1:]
        self._install()

    def off(self):
        """Ends it immediately."""
        if self.qemu:
            self.qemu.kill()
        for part in ("upper", "work", "root", "share/lowlat"):
            subprocess.run(["rm", "-rf", "--one-file-system", self.folder / part], check=False)

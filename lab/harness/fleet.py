"""Several servers that Ansible sets up with the collection of ansible/."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time

from . import tune
from .guest import GuestError
from .machine import LAB

PLAY_SECONDS = 3600


class Keeper:
    """Starts a guest again whenever it resets itself, as a server does, while a playbook runs."""

    def __init__(self, guest):
        self.guest, self.downs, self.error = guest, [], None
        """Pairs of moments: the guest reset itself, it accepted jobs again."""
        self.is_ending = threading.Event()
        self.thread = threading.Thread(target=self._keep, daemon=True)

    def _keep(self):
        while not self.is_ending.is_set():
            if not self.guest.qemu.wait(0.5):
                continue
            down = time.monotonic()
            try:
                if self.guest.qemu.ended_by != "guest-reset":
                    raise GuestError(f"the guest ended by {self.guest.qemu.ended_by}")
                self.guest.boot(settled=False)
            except GuestError as error:
                self.error = error
                return
            self.downs.append((down, time.monotonic()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_ending.set()
        self.thread.join()


class Fleet:
    """Guests by the name of their host in Ansible's inventory."""

    def __init__(self, lab, guests, **variables):
        self.lab, self.guests, self.plays = lab, guests, 0
        self.folder = lab.folder / "ansible"
        collection = self.folder / "ansible_collections/lowlat/lowlat"
        collection.parent.mkdir(parents=True)
        collection.symlink_to(LAB.parent / "ansible")
        hosts = {name: {"lab_guest_share": str(guest.share)} for name, guest in guests.items()}
        shared = {
            "ansible_connection": "lab_guest",
            "ansible_become": False,
            "ansible_python_interpreter": "/usr/bin/python3",
            # Snapshots of the guest include root's home.
            "ansible_remote_tmp": "/tmp/ansible",
            **variables,
        }
        (self.folder / "inventory.json").write_text(json.dumps({"lowlat": {"hosts": hosts, "vars": shared}}, indent=2))

    def play(self, playbook, *arguments, status=0, lost=(), interrupted_when=None, **variables):
        """Runs a playbook of the collection: its output, the number of changed tasks and the keeper of each host. A host
        that is `lost` is not started again when it reboots. `interrupted_when` says when to interrupt the playbook."""
        self.plays += 1
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder),
            "ANSIBLE_CONFIG": str(self.folder / "none.cfg"),
            "ANSIBLE_CONNECTION_PLUGINS": str(LAB / "ansible"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
        }
        command = ["ansible-playbook", "-i", self.folder / "inventory.json", f"lowlat.lowlat.{playbook}", *arguments]
        command += ["-e", json.dumps(variables)] if variables else []
        log = self.folder / f"{self.plays}-{playbook}.txt"
        keepers = {name: Keeper(guest) for name, guest in self.guests.items() if name not in lost}
        with contextlib.ExitStack() as stack:
            for keeper in keepers.values():
                stack.enter_context(keeper)
            out = stack.enter_context(open(log, "w"))
            play = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
            if interrupted_when:
                while play.poll() is None and not interrupted_when():
                    time.sleep(0.05)
                # To all of its processes, as by a terminal's Ctrl-C.
                os.killpg(play.pid, signal.SIGINT)
            try:
                ended = play.wait(PLAY_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(play.pid, signal.SIGKILL)
                raise
        for name, keeper in keepers.items():
            if keeper.error:
                raise GuestError(f"{name}: {keeper.error}")
        text = log.read_text()
        recap = text.rpartition("PLAY RECAP")[2]
        changed = {name: int(count) for name, count in re.findall(r"^(\S+) .*changed=(\d+)", recap, re.M)}
        self.lab.note(f"$ ansible-playbook lowlat.lowlat.{playbook} {' '.join(arguments)}   status {ended}, changed {changed}")
        is_right = ended == status
        self.lab.need(f"playbook {playbook} {' '.join(arguments)} ends with {status}", is_right, "" if is_right else f"{ended}: {text[-1500:]}")
        return text, changed, keepers


def facts(lab, guests, name, when):
    """A snapshot of one of the guests."""
    lab.guest = guests[name]
    return lab.facts(f"{name}-{when}")


def confirmation(lab, guests, name):
    """How far one of the guests is with the confirmation of its plan."""
    lab.guest = guests[name]
    return tune.known(tune.status(lab)["in_force"])["confirmation"]["kind"]

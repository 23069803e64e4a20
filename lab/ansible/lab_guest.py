"""Ansible's connection to a guest: commands are jobs in its shared folder, which lab/guest/lab-agent runs as root."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import time
import uuid

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: lab_guest
short_description: Runs commands in a guest of the lab
description:
  - Runs commands and copies files by way of the folder that the guest shares with its host.
author: The authors of lowlat
options:
  share:
    description: The shared folder, on the host.
    type: path
    required: true
    vars:
      - name: lab_guest_share
  accept_s:
    description: Time limit of the agent to accept a job, which it looks for every 0.3 seconds.
    type: int
    default: 60
    vars:
      - name: lab_guest_accept_s
"""

# Time limit of a job.
JOB_SECONDS = 1800


class Connection(ConnectionBase):
    """A guest."""

    transport = "lab_guest"
    has_pipelining = True

    def _connect(self):
        self._connected = True
        return self

    def close(self):
        """Disconnects, for which there is nothing to do."""
        self._connected = False

    def reset(self):
        """Reconnects, for which there is nothing to do."""

    def exec_command(self, cmd, in_data=None, sudoable=True):
        """Runs a command, and returns its exit status, stdout and stderr."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        share = pathlib.Path(self.get_option("share"))
        name = f"ansible-{uuid.uuid4().hex[:12]}"
        path = share / "jobs" / name
        path.with_suffix(".in").write_bytes(in_data or b"")
        job = f"/lab/jobs/{name}"
        path.with_suffix(".job").write_text(f"export HOME=/root\ncd\n{cmd} <{job}.in >{job}.out 2>{job}.err\n")
        self._run(share, name)
        status = int(path.with_suffix(".status").read_text())
        return status, path.with_suffix(".out").read_bytes(), path.with_suffix(".err").read_bytes()

    def _run(self, share, name):
        """Submits a job and waits for its end. A job that is lost in a reboot is a failure of the connection."""
        boots = set(os.listdir(share / "boots"))
        go, accept_s = share / "go", self.get_option("accept_s")
        self._wait(lambda: not go.exists(), time.monotonic() + accept_s, "the guest accepts no jobs")
        part = share / f"go.{name}"
        part.write_text(name + "\n")
        part.rename(go)
        try:
            self._wait(lambda: not go.exists(), time.monotonic() + accept_s, "the guest accepts no jobs")
        except AnsibleConnectionFailure:
            go.unlink(missing_ok=True)
            raise
        end = time.monotonic() + JOB_SECONDS
        while not (share / "jobs" / f"{name}.status").exists():
            if {boot for boot in os.listdir(share / "boots") if "." not in boot} - boots:
                raise AnsibleConnectionFailure(f"job {name}: the guest has rebooted")
            if time.monotonic() > end:
                raise AnsibleConnectionFailure(f"job {name}: not done after {JOB_SECONDS} s")
            time.sleep(0.1)

    def _wait(self, is_reached, end, what):
        while not is_reached():
            if time.monotonic() > end:
                raise AnsibleConnectionFailure(what)
            time.sleep(0.05)

    def put_file(self, in_path, out_path):
        """Copies a file into the guest."""
        super().put_file(in_path, out_path)
        name = f"put-{uuid.uuid4().hex[:12]}"
        passed = pathlib.Path(self.get_option("share")) / name
        shutil.copy(in_path, passed)
        self._copy(f"/lab/{name}", out_path)
        passed.unlink()

    def fetch_file(self, in_path, out_path):
        """Copies a file from the guest."""
        super().fetch_file(in_path, out_path)
        name = f"fetch-{uuid.uuid4().hex[:12]}"
        self._copy(in_path, f"/lab/{name}")
        shutil.move(pathlib.Path(self.get_option("share")) / name, out_path)

    def _copy(self, source, target):
        status, _out, said = self.exec_command(f"cp {shlex.quote(source)} {shlex.quote(target)}")
        if status != 0:
            raise AnsibleConnectionFailure(f"cp {source} {target}: {said.decode(errors='replace')}")

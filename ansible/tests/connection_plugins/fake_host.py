"""Connection to a fake host: commands run on this machine, with the fake host's boot id and lowlat's state."""

from __future__ import annotations

import os
import shlex

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: fake_host
short_description: Runs commands on this machine as if it were the host
description:
  - Runs commands on this machine, with the boot id and the state of lowlat from a directory, and its programs first.
  - The host is unreachable if the directory does not exist.
author: The authors of lowlat
extends_documentation_fragment:
  - connection_pipelining
options:
  directory:
    description: Directory of the fake host.
    type: path
    required: true
    vars:
      - name: fake_host_directory
"""


class Connection(LocalConnection):
    """The local connection, except that ansible.builtin.reboot accepts it."""

    transport = "fake_host"

    def exec_command(self, cmd, in_data=None, sudoable=True):
        """Runs a command."""
        folder = self.get_option("directory")
        if not os.path.isdir(folder):
            raise AnsibleConnectionFailure(f"{folder} does not exist")
        cmd = cmd.replace("/proc/sys/kernel/random/boot_id", f"{folder}/boot_id")
        quoted = shlex.quote(folder)
        cmd = f"FAKE_HOST={quoted} PATH={quoted}/bin:$PATH {cmd}"
        return super().exec_command(cmd, in_data=in_data, sudoable=sudoable)

    def reset(self):
        """Reconnects, which needs nothing here."""

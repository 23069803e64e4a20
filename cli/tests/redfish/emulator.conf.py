"""What sushy-emulator reads as its configuration, for the tests of `lowlat bios`.

Its driver without virtual machines has no BIOS; this gives it one, with attributes that its own registry names. The
service around it (routes, documents, log-in, TLS) is the emulator's.
"""

import os

import bcrypt
from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver

_STATE = os.environ["LOWLAT_EMULATOR_STATE"]
_BIOS = {
    "BootMode": "Bios",
    "EmbeddedSata": "Raid",
    "NumCores": "10",
    "ProcTurboMode": "Disabled",
    "QuietBoot": "true",
    "SerialNumber": "QPX12345",
    "SysPassword": "",
}

FakeDriver.get_bios = lambda self, identity: self._get(identity).get("bios", _BIOS)
FakeDriver.set_bios = lambda self, identity, attributes: self._update(
    identity, bios={**self.get_bios(identity), **attributes}
)

SUSHY_EMULATOR_STATE_DIR = _STATE
SUSHY_EMULATOR_AUTH_FILE = os.path.join(_STATE, "users")
with open(SUSHY_EMULATOR_AUTH_FILE, "wb") as users:
    secret = os.environ["LOWLAT_EMULATOR_PASSWORD"].encode()
    users.write(b"operator:" + bcrypt.hashpw(secret, bcrypt.gensalt(4)) + b"\n")

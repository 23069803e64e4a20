"""merged.py PACKAGE HOST VIRTUAL: what TuneD's own modules make of profiles. Each line of the input is a root with
usr/lib/tuned and etc/tuned, a tab, and names of profiles; each line of the output is JSON: the merged profile with
expanded values, or why it is rejected. Functions see the host in the tree HOST; no command runs."""
import json
import logging
import os
import re
import sys

package, host, is_virtual = sys.argv[1:4]
sys.path.insert(0, package + '/usr/lib/python3/dist-packages')
logging.disable(logging.CRITICAL)
import tuned.consts as consts
from tuned.profiles.factory import Factory
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.utils.commands import commands

read_file = commands.read_file
commands.read_file = lambda self, path, *rest, **named: read_file(
    self, host + path if path.startswith(('/proc/', '/sys/')) else path, *rest, **named)
outputs = {'virt-what': 'kvm\n' if is_virtual == 'true' else ''}
commands.execute = lambda self, arguments, *rest, **named: (0, outputs.get(arguments[0], 'output\n'))
if hasattr(consts, 'SYSFS_CPUS_PATH'):
    consts.SYSFS_CPUS_PATH = host + consts.SYSFS_CPUS_PATH
add_from_file = Variables.add_from_file
root = ''
Variables.add_from_file = lambda self, path: add_from_file(self, root + path)


def merged(names):
    folders = [root + folder for folder in ('/usr/lib/tuned', '/usr/lib/tuned/profiles', '/etc/tuned', '/etc/tuned/profiles')]
    variables = Variables()
    profile = Loader(Locator(folders), Factory(), Merger(), None, variables).load(names)
    plain = lambda text: text.replace(root, '')
    # What a later version of TuneD takes out of the options.
    options = lambda unit: {key: plain(variables.expand(value)) for key, value in unit.options.items()
                            if key not in ('script', 'priority')}
    with open(host + '/proc/cpuinfo') as file:
        cpuinfo = file.read()
    units = [{'name': name, 'plugin': unit.type, 'enabled': unit.enabled, 'devices': plain(unit.devices),
              'matches': unit.cpuinfo_regex is None or bool(re.search(unit.cpuinfo_regex, cpuinfo, re.MULTILINE)),
              'options': options(unit)} for name, unit in profile.units.items()]
    return {'units': units, 'variables': {key: plain(value) for key, value in variables.get_env().items()}}


for line in sys.stdin:
    root, names = line.rstrip('\n').split('\t')
    try:
        print(json.dumps(merged(names)))
    except Exception as error:
        print(json.dumps({'error': '%s: %s' % (type(error).__name__, error)}))

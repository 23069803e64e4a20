"""The full cycle on Debian 13 with SELinux enforcing: every file has the context of the policy, also after the rollback."""

from harness import tune

MACHINE = "four-cpus"
SUITE = "trixie"
PACKAGES = ("selinux-basics", "selinux-policy-default", "policycoreutils")
IS_QUICK = False

# Labels every file before the first boot that enforces the policy, in place of a boot that relabels and reboots. The lab's
# agent gets the context of an administrator's shell. Its folder gets those of a mount point and of network files: the policy
# has none for 9p. It also lets GRUB's generator read none of TuneD's files, so that Debian's own update-grub fails.
INSTALL = """
set -e
selinux-activate
chmod -x /etc/grub.d/00_tuned
sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
sed -i 's/security=selinux/security=selinux selinux=1 enforcing=1/' /etc/default/grub
update-grub
rm -f /.autorelabel
mkdir -p /etc/systemd/system/lab-agent.service.d
printf '[Service]\\nSELinuxContext=unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\\n' >/etc/systemd/system/lab-agent.service.d/lab.conf
printf '#!/bin/sh\\nexec mount -i -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,context=system_u:object_r:nfs_t:s0" "$1" "$2"\\n' >/usr/sbin/mount.9p
chmod 755 /usr/sbin/mount.9p
mount --bind / /mnt
chcon system_u:object_r:mnt_t:s0 /mnt/lab
umount /mnt
setfiles -F -e /lab /etc/selinux/default/contexts/files/file_contexts /
sync
"""
TREES = "/etc /boot /opt /root /usr/lib/systemd /usr/lib/tuned /usr/local /var/lib"
# Files with another context than the policy's.
WRONG = f"find {TREES} -xdev -type f -o -type d | restorecon -n -v -f - 2>&1 | grep -v '^$' || true"
CONTEXTS = f"find {TREES} -xdev -printf '%p %Z\\n' | sort"


def contexts(lab):
    """The context of each file by its path, except for lowlat's own state."""
    lines = lab.guest.must(CONTEXTS).text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines)
    return {path: context for path, context in found.items() if not path.startswith("/var/lib/lowlat")}


def differences(before, after):
    return [f"{path}: {before.get(path)} -> {after.get(path)}" for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]


def wrong(lab):
    return set(lab.guest.must(WRONG).text.splitlines())


def denied(lab, when):
    said = lab.guest.run("dmesg | grep 'avc:  denied' | grep -i lowlat").text
    lab.check(f"{when}: the policy denied lowlat nothing", not said, said[-1500:])


def enforce(lab):
    lab.guest.must(INSTALL, 3000)
    lab.guest.reboot()
    mode = lab.guest.run("getenforce; id -Z")
    lab.need("SELinux enforces its policy", mode.text.startswith("Enforcing"), mode)
    shown = tune.known(lab.lowlat("host show --json").json()["kernel"]["selinux"])
    lab.check("lowlat reports it", shown == "enforcing", shown)


def written(lab, before, other):
    """Files that lowlat replaced have the contexts from before, and those that it wrote the policy's."""
    touched = differences(before, contexts(lab))
    lab.note(f"contexts after apply: {touched}")
    changed = [line for line in touched if "None" not in line]
    lab.check("the files that lowlat replaced have the contexts from before", not changed, changed[:20])
    new = wrong(lab) - other
    lab.check("the files that lowlat wrote have the policy's contexts", not new, sorted(new)[:20])


def restored(lab, before, when):
    left = differences(before, contexts(lab))
    lab.check(f"{when}: {len(before)} files have the contexts from before", not left, left[:20])


def run(lab):
    lab.guest.boot()
    enforce(lab)
    facts, before, other = lab.facts("before"), contexts(lab), wrong(lab)
    lab.note(f"other contexts than the policy's: {other}")
    lab.check("the plan isolates CPUs", bool(tune.plan(lab)["isolated"]))
    tune.apply(lab)
    written(lab, before, other)
    lab.guest.reboot()
    tune.verify(lab, "after the reboot")
    denied(lab, "after the reboot")
    tune.rollback(lab)
    restored(lab, before, "after the rollback")
    denied(lab, "after the rollback")
    lab.guest.reboot()
    restored(lab, before, "after the rollback and a reboot")
    lab.same(facts, lab.facts("after"), "after the rollback and a reboot")
    tune.nothing_in_force(lab)

"""A server deployed by ostree: the plan but for its command line, which the printed command sets in a new deployment; then without both."""

import re

from harness import facts, tune

MACHINE = "four-cpus"
SUITE = "trixie"
PACKAGES = ("ostree", "ostree-boot")
IS_QUICK = False

# Debian 13's GRUB does not read the entries that ostree writes: its menu gets the newest one.
MENU = """
entry=$(ls /boot/loader/entries/*.conf | sort -V | tail -n 1)
get() { sed -n "s/^$1 //p" "$entry"; }
cat >/boot/grub/grub.cfg <<END
set timeout=0
search --no-floppy --label lowlat-lab --set=root
menuentry ostree {
    linux $(get linux) $(get options)
    initrd $(get initrd)
}
END
sync
"""
HOOK = """#!/bin/sh
[ "$1" != prereqs ] || exit 0
. /usr/share/initramfs-tools/hook-functions
copy_exec /usr/lib/ostree/ostree-prepare-root
mkdir -p "$DESTDIR/usr/lib/ostree"
cp /usr/lib/ostree/prepare-root.conf "$DESTDIR/usr/lib/ostree/"
"""
PREPARE = """#!/bin/sh
[ "$1" != prereqs ] || exit 0
/usr/lib/ostree/ostree-prepare-root "$rootmnt"
"""
# Makes the system that runs a commit, and deploys it beside itself on the same file system.
DEPLOY = """
set -e
v=$(uname -r)
printf '[composefs]\\nenabled = no\\n' >/usr/lib/ostree/prepare-root.conf
install -m 755 /lab/hook /etc/initramfs-tools/hooks/ostree
install -m 755 /lab/prepare /etc/initramfs-tools/scripts/local-bottom/ostree
update-initramfs -u
tree=/tree
mkdir $tree
cd $tree
cp -al /usr usr
cp -a /etc usr/etc
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
mkdir boot dev home lab mnt opt proc root run srv sys sysroot tmp var
ln -s sysroot/ostree ostree
: >usr/etc/fstab
: >usr/etc/machine-id
cp /boot/vmlinuz-$v usr/lib/modules/$v/vmlinuz
cp /boot/initrd.img-$v usr/lib/modules/$v/initramfs.img
ostree admin init-fs --modern /
ostree admin os-init --sysroot=/ lab
ostree config --repo=/ostree/repo set sysroot.bootloader none
ostree config --repo=/ostree/repo set sysroot.bootprefix true
ostree --repo=/ostree/repo commit --consume -b lab $tree
ostree admin deploy --sysroot=/ --os=lab $(sed 's/^BOOT_IMAGE=[^ ]* //; s/\\<ro\\>/rw/; s/\\S\\+/--karg=&/g' /proc/cmdline) lab
cp -a /var/. /ostree/deploy/lab/var/
"""
COMMAND = re.compile(r"`(ostree admin [^`]*)`")


def deploy(lab):
    for name, text in (("hook", HOOK), ("prepare", PREPARE)):
        (lab.guest.share / name).write_text(text)
    lab.guest.must(DEPLOY + MENU, 6000)
    lab.guest.reboot()
    lab.need("ostree's deployment runs", lab.guest.run("test -e /run/ostree-booted && ostree admin status").status == 0, lab.guest.cmdline)


def content(shown):
    """Kind, owner, mode and content of files that a new deployment keeps; it has other times, and its own files in /boot."""
    kept = {path: entry for path, entry in shown.files.items() if not path.startswith("/boot")}
    return {path: re.sub(r" \d{9,} (?=[0-9a-f]{64}$)| 0 (?=[0-9a-f]{64}$)", " ", entry) for path, entry in kept.items()}


def run(lab):
    guest = lab.guest
    guest.boot()
    deploy(lab)
    # Some services run in a deployment's first boot only.
    guest.reboot()
    before, line = lab.facts("before"), guest.cmdline
    lab.check("the plan isolates CPUs", bool(tune.plan(lab)["isolated"]))
    lab.refused = ("ostree",)
    lab.check("no reboot completes the plan", not tune.apply(lab)["needs_reboot"])
    reasons = [one["reason"] for one in tune.status(lab)["in_force"]["known"]["refused"]]
    commands = {found[1] for why in reasons if (found := COMMAND.search(why))}
    lab.need("status names one command of ostree", len(commands) == 1, reasons)
    guest.must(commands.pop() + MENU)
    guest.reboot()
    lab.refused = ()
    lab.check("after the command and a reboot, the command line is in effect", tune.status(lab)["reboot"] == "done", guest.cmdline)
    tune.verify(lab, "after the command and a reboot")
    tune.rollback(lab)
    tune.nothing_in_force(lab)
    words = [f"--replace={word}" if "=" in word else f"--append={word}" for word in line.split()[1:] if not word.startswith("ostree=")]
    guest.must("ostree admin instutil set-kargs " + " ".join(words) + MENU)
    guest.reboot()
    after = lab.facts("after")
    found = facts.differences(content(before), content(after))
    when = "after the rollback and a deployment without the parameters"
    lab.check(f"{when}: {len(before.files)} files are as before", not found, found[:20])
    for shown in (before, after):
        # Without the deployment's own path; ostree changes the order.
        shown.values["/proc/cmdline"] = sorted(re.sub(r"(BOOT_IMAGE|ostree)=\S+", "", shown.values["/proc/cmdline"]).split())
    lab.same_values(before, after, when)

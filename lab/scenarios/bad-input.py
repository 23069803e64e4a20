"""Hosts that cannot or must not be changed: a clear error, no partial change, an exact rollback."""

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = False

STATE = "/var/lib/lowlat"
LOG = f"{STATE}/undo"
NEWEST = f"$(ls {LOG}/segment-* | tail -n 1)"


def killed_midway(lab, n):
    """Kills apply while it makes its n-th record durable: the record is in the log, and a crash may tear it."""
    lab.guest.must(f"mkdir -p {LOG}; test -e {LOG}/segment-00000001 || (lowlat tune apply --yes; lowlat tune rollback --yes) >/dev/null 2>&1")
    done = lab.guest.run(
        f"strace -qq -o /dev/null -P {NEWEST} -e trace=fsync,fdatasync -e inject=fsync,fdatasync:signal=KILL:when={n} "
        "lowlat tune apply --yes >/dev/null 2>&1 </dev/null"
    )
    lab.check(f"apply was killed at record {n}", done.status == 137, repr(done))


def refused(lab, before, name, prefix, arguments, *words):
    """Expects lowlat to fail with 2 and the reason, without any change. `prefix` runs before it."""
    done = lab.guest.run(f"{prefix} lowlat tune {arguments} </dev/null")
    lab.check(f"{name}: ends with 2", done.status == 2, repr(done))
    for word in words:
        lab.check(f'{name}: says "{word}"', word.lower() in done.text.lower(), done.text[-600:])
    if done.status != 2:
        tune.rollback(lab)
    lab.same(before, lab.facts(name.replace(" ", "-")), name)


def not_permitted(lab, before):
    user = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    refused(lab, before, "an ordinary user", user, "apply --yes", "root")
    refused(lab, before, "root without capabilities", "setpriv --bounding-set -all --inh-caps -all", "apply --yes")
    container = "unshare --mount --pid --fork --mount-proc env container=systemd-nspawn bash -c"
    done = lab.guest.run(f"{container} 'lowlat tune apply --yes; exit $?' </dev/null")
    lab.check("in a container: ends with 2", done.status == 2, repr(done))
    lab.check('in a container: says "container"', "container" in done.text.lower(), done.text[-600:])
    if done.status != 2:
        tune.rollback(lab)
    lab.same(before, lab.facts("container"), "in a container")


def read_only(lab, before):
    for tree, mounts in {"/etc": ["/etc"], "/sys": ["/sys", "/proc/sys"], "/boot": ["/boot"]}.items():
        command = "; ".join(f"mount --bind {one} {one}; mount -o remount,bind,ro {one}" for one in mounts)
        done = lab.guest.run(f"unshare --mount bash -euc '{command}; lowlat tune apply --yes </dev/null'")
        lab.check(f"read-only {tree}: ends with 2", done.status == 2, repr(done))
        lab.check(f'read-only {tree}: says "read-only"', "read-only" in done.text.lower(), done.text[-600:])
        tune.rollback(lab)
        lab.same(before, lab.facts(f"read-only-{tree[1:]}"), f"read-only {tree}, rollback")


def other_plans(lab, before):
    lab.guest.must("lowlat tune plan --root /lab/other.tar.gz --out /lab/other.json >/dev/null; test -s /lab/other.json")
    refused(lab, before, "a plan for another host", "", "apply --yes --plan /lab/other.json", "host")
    refused(lab, before, "a file that is not a plan", "", "apply --yes --plan /etc/hostname", "/etc/hostname")
    refused(lab, before, "a missing plan", "", "apply --yes --plan /nowhere.json", "/nowhere.json")
    tune.plan(lab)
    lab.guest.must("cp -p /proc/sys/vm/swappiness /run/swappiness; echo 33 >/proc/sys/vm/swappiness")
    done = lab.expect("tune apply --yes --plan /lab/plan.json", 2, "swappiness")
    if done.status != 2:
        tune.rollback(lab)
    lab.guest.must("cat /run/swappiness >/proc/sys/vm/swappiness")
    lab.same(before, lab.facts("stale-plan"), "a plan from before a change")


# Fills a file system once its log has grown beyond this many bytes. It must be fast, before apply finishes: free pages
# are taken in one call, and those freed later one by one.
FILL = """
at=/var/lib/lowlat
exec {silence}<> <(:)
until files=($at/undo/segment-*) && size=$(stat -c %%s "${files[0]}" 2>/dev/null) && [ "$size" -ge %d ]; do read -rt 0.02 -u $silence; done
until fallocate -l $(($(stat -fc '%%f * %%S' $at))) $at/filler 2>/dev/null; do :; done
dd if=/dev/zero of=$at/filler2 bs=4k status=none 2>/dev/null
"""
# At these fractions of the log of a whole apply. lowlat.service writes its last part, when everything is done.
PARTS = (0.1, 0.25, 0.4)


def on_small_disk(lab, size):
    lab.guest.must(f"mv {STATE} {STATE}-aside; mkdir {STATE}; mount -t tmpfs -o size={size},mode=700 lab {STATE}")


def on_own_disk(lab):
    lab.guest.must(f"umount {STATE}; rmdir {STATE}; mv {STATE}-aside {STATE}")


def disk_full(lab, before):
    """The undo log's file system full at the start, and at other steps of apply; then the disk itself."""
    on_small_disk(lab, "20m")
    tune.apply(lab)
    log_bytes = int(lab.guest.must(f"cat {LOG}/segment-* | wc -c").text)
    tune.rollback(lab)
    on_own_disk(lab)
    lab.note(f"the log of a whole apply has {log_bytes} bytes")
    for part in (None, *PARTS):
        when = f"undo log's disk full from {part:.0%} of the log on" if part else "undo log's disk too small"
        on_small_disk(lab, "20m" if part else "64k")
        fill = lab.guest.start(FILL % (part * log_bytes)) if part else None
        done = lab.guest.run("lowlat tune apply --yes </dev/null")
        if fill:
            lab.guest.finish(fill)
        lab.check(f"{when}: apply ends with 2", done.status == 2, repr(done))
        lab.check(f'{when}: says "space"', "space" in done.text.lower(), done.text[-600:])
        done = lab.guest.run("lowlat tune rollback --yes </dev/null")
        lab.note(f"rollback on the full file system: {done!r}")
        if done.status != 0:
            lab.guest.must(f"rm -f {STATE}/filler*")
            tune.rollback(lab)
        lab.same(before, lab.facts(f"full-{part}"), f"{when}, rollback")
        on_own_disk(lab)

    # The last page of the log always has some free bytes, so strace simulates the full disk here.
    tune.apply(lab)
    done = lab.guest.run(
        f"strace -qq -o /dev/null -P {NEWEST} -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC lowlat tune rollback --yes </dev/null"
    )
    lab.check("undo log's disk full at the rollback: it ends with 0", done.status == 0, repr(done))
    lab.check("undo log's disk full at the rollback: it reports what was not recorded", "not recorded" in done.text, done.text[-600:])
    lab.same(before, lab.facts("full-rollback"), "undo log's disk full at the rollback")
    tune.apply(lab)
    tune.rollback(lab)
    lab.same(before, lab.facts("full-space"), "space available again, apply, rollback")
    lab.guest.must("dd if=/dev/zero of=/var/filler bs=1M status=none 2>/dev/null; dd if=/dev/zero of=/var/filler2 bs=4k status=none 2>/dev/null; sync; true")
    done = lab.guest.run("lowlat tune apply --yes </dev/null")
    lab.check("disk full: apply ends with 2", done.status == 2, repr(done))
    lab.check('disk full: says "space"', "space" in done.text.lower(), done.text[-600:])
    done = lab.guest.run("lowlat tune rollback --yes </dev/null")
    lab.check("disk full: rollback ends with 0", done.status == 0, repr(done))
    lab.guest.must("rm -f /var/filler /var/filler2")
    lab.same(before, lab.facts("disk-full"), "disk full, rollback")


def damaged_log(lab, before):
    killed_midway(lab, 30)
    lab.guest.must(f"truncate -s -7 {NEWEST}")
    tune.rollback(lab)
    lab.same(before, lab.facts("torn-tail"), "a torn tail, rollback")

    tune.apply(lab)
    # One bit in one of the last records; a copy of the whole log is kept.
    lab.guest.must(
        f"cp -a {LOG} /var/lab-undo; f={NEWEST}; n=$(($(stat -c %s $f) * 9 / 10)); "
        "byte=$(od -An -tu1 -j $n -N 1 $f); printf \"\\\\x$(printf %02x $((byte ^ 4)))\" | dd of=$f bs=1 seek=$n conv=notrunc status=none"
    )
    done = lab.lowlat("tune apply --yes")
    lab.check("a flipped bit: apply ends with 2", done.status == 2, f"{done.status}: {done.said[-300:]}")
    lab.check('a flipped bit: it says "damage" and names the file', "damage" in done.said.lower() and "segment-" in done.said, done.said[-600:])
    done = lab.lowlat("tune status")
    lab.check("a flipped bit: status reports it", "damage" in f"{done.text}{done.said}".lower(), (done.text + done.said)[-400:])
    lab.guest.must(f"rm -r {LOG}; mv /var/lab-undo {LOG}")
    tune.rollback(lab)
    lab.same(before, lab.facts("flipped-bit"), "the log restored, rollback")


def half_finished(lab, before):
    killed_midway(lab, 40)
    tune.apply(lab)
    tune.rollback(lab)
    lab.same(before, lab.facts("half-finished"), "a half-finished apply, finished, rollback")


def locked_down(lab, _before):
    """As under Secure Boot: debugfs is inaccessible, also to root, until the next boot. Last, because it cannot be reverted."""
    lab.guest.must("mountpoint -q /sys/kernel/security || mount -t securityfs securityfs /sys/kernel/security; echo integrity >/sys/kernel/security/lockdown")
    lab.need("the kernel is locked down", "[integrity]" in lab.text("/sys/kernel/security/lockdown"))
    before = lab.facts("locked-before")
    done = lab.lowlat("tune apply --yes")
    lab.check("locked down: apply ends with 0, 1 or 2", done.status in (0, 1, 2), f"{done.status}: {done.said[-400:]}")
    lab.check("locked down: nothing panics", "panicked" not in done.said, done.said[-400:])
    tune.rollback(lab)
    lab.same(before, lab.facts("locked-after"), "locked down, rollback")


def run(lab):
    guest = lab.guest
    guest.give(lab.fixture("epyc-7f32-stock"), "other.tar.gz")
    guest.boot()
    before = lab.facts("before")
    for step in (not_permitted, other_plans, half_finished, damaged_log, read_only, disk_full, locked_down):
        lab.note(step.__name__)
        step(lab, before)

"""The Debian package: installed, upgraded under a plan in force, removed and purged."""

import hashlib
import shutil
import subprocess

from . import tune
from .machine import LAB
from .scenario import Skip

DIST = LAB.parent / "target/dist"
# What the package must bring.
FILES = ("/usr/bin/lowlat", "/usr/share/man/man1/lowlat.1.gz", "/usr/share/bash-completion/completions/lowlat", "/usr/share/doc/lowlat/copyright")


def newest():
    """The package of `cargo xtask dist --packages`; None if there is none."""
    return max(DIST.glob("lowlat_*.deb"), default=None)


def made(lab):
    """The package of `cargo xtask dist --packages` and one of a later version, in the guest's /lab."""
    package = newest()
    if not package:
        raise Skip("target/dist has no Debian package: run cargo xtask dist --packages")
    lab.guest.give(package, "lowlat.deb")
    tree = lab.folder / "later"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN/control"
    text = control.read_text()
    version = next(line.split()[1] for line in text.splitlines() if line.startswith("Version:"))
    control.write_text(text.replace(f"Version: {version}", f"Version: {version}+later"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, lab.guest.share / "later.deb"], check=True, capture_output=True)
    return version


def files(tree):
    """The files of an unpacked package: path to mode and content, without its documentation, which each system puts elsewhere."""
    paths = [path for path in tree.rglob("*") if path.is_file() and "DEBIAN" not in path.parts and "doc" not in path.parts and "licenses" not in path.parts]
    names = {path: str(path.relative_to(tree)).removesuffix(".gz").replace("vendor-completions", "site-functions") for path in paths}
    content = {path: subprocess.run(["zcat", path], check=True, capture_output=True).stdout if path.suffix == ".gz" else path.read_bytes() for path in paths}
    return {names[path]: (path.stat().st_mode & 0o777, hashlib.sha256(content[path]).hexdigest()) for path in paths}


def rpm(lab):
    """Compares the RPM package with Debian's, and gives its script before removal to the guest."""
    packages = sorted(DIST.glob("lowlat-*.rpm"))
    if not packages or not shutil.which("rpm2cpio") or not shutil.which("cpio"):
        lab.note("skipped: the RPM package: it is not in target/dist, or rpm2cpio or cpio is not installed")
        return False
    tree = lab.folder / "rpm"
    tree.mkdir()
    archive = subprocess.run(["rpm2cpio", packages[-1]], check=True, capture_output=True).stdout
    subprocess.run(["cpio", "--quiet", "-idm"], input=archive, cwd=tree, check=True)
    deb, own = files(lab.folder / "later"), files(tree)
    differing = sorted(name for name in {*deb, *own} if deb.get(name) != own.get(name))
    lab.check(f"the RPM package has the {len(deb)} files of Debian's", not differing, differing)
    script = subprocess.run(["rpm", "-qp", "--nosignature", "--qf", "%{PREUN}", packages[-1]], check=True, capture_output=True, text=True).stdout
    (lab.guest.share / "preun").write_text(script)
    return True


def dpkg(lab, arguments):
    """Runs dpkg in the guest."""
    done = lab.guest.run(f"DEBIAN_FRONTEND=noninteractive dpkg {arguments} 2>&1")
    lab.note(f"$ dpkg {arguments}   status {done.status}")
    return done


def state(lab):
    """The package's version and state; empty if dpkg does not know it."""
    return lab.guest.run("dpkg-query -W -f '${db:Status-Abbrev}${Version}' lowlat 2>/dev/null").text.strip()


def lifetime(lab):
    guest = lab.guest
    guest.boot()
    version = made(lab)
    has_rpm = rpm(lab)
    guest.must("rm /usr/local/sbin/lowlat; hash -r")
    before = lab.facts("before")
    done = dpkg(lab, "-i /lab/lowlat.deb")
    lab.need("the package installs", done.status == 0, done)
    lab.check("dpkg lists it as installed", state(lab) == f"ii {version}", state(lab))
    missing = [path for path in FILES if guest.run(f"test -s {path}").status != 0]
    lab.check("its files are there", not missing, missing)
    lab.check("its man page is readable", "lowlat" in guest.run("zcat /usr/share/man/man1/lowlat.1.gz | head -5").text)
    tune.plan(lab)
    tune.apply(lab)
    units = guest.run("grep -h ^ExecStart= /etc/systemd/system/lowlat*.service").text
    lab.check("units start the package's binary", "/usr/bin/lowlat" in units, units)
    refused = dpkg(lab, "-r lowlat")
    lab.check("it cannot be removed while a plan is in force", refused.status != 0 and "lowlat tune rollback" in refused.text, refused.text[-300:])
    # The first letter is what was asked for.
    lab.check("after the refusal it is installed", state(lab)[1:] == f"i {version}", state(lab))
    if has_rpm:
        removal, upgrade = (guest.run(f"sh /lab/preun {left}") for left in (0, 1))
        lab.check("nor could the RPM package be", removal.status != 0 and "lowlat tune rollback" in removal.text, removal)
        lab.check("it could be upgraded", upgrade.status == 0, upgrade)
    done = dpkg(lab, "-i /lab/later.deb")
    lab.need("a later version installs under the plan", done.status == 0, done)
    lab.check("dpkg lists the later version", state(lab) == f"ii {version}+later", state(lab))
    guest.reboot()
    tune.verify(lab, "after the upgrade and a reboot")
    tune.rollback(lab)
    guest.reboot()
    tune.nothing_in_force(lab)
    done = dpkg(lab, "-r lowlat")
    lab.check("without a plan it is removed", done.status == 0, done)
    lab.check("its binary is gone", guest.run("command -v lowlat").status != 0)
    done = dpkg(lab, "-P lowlat")
    lab.check("it is purged", done.status == 0 and state(lab)[:2] in ("", "un"), f"{done}, {state(lab)}")
    lab.check("its state is gone", guest.run("test -e /var/lib/lowlat").status != 0)
    lab.same(before, lab.facts("after"), "after the purge")

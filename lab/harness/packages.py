"""The Debian package: installed, upgraded under a plan in force, removed and purged."""

import hashlib
import shutil
import subprocess

from . import tune
from .machine import LAB
from .scenario import Skip

DIST = LAB.parent / "target/dist"
HINT = "run cargo xtask dist --packages, then lab/run --lowlat target/dist/lowlat"
# What the package must bring.
FILES = ("/usr/bin/lowlat", "/usr/share/man/man1/lowlat.1.gz", "/usr/share/bash-completion/completions/lowlat", "/usr/share/doc/lowlat/copyright")


def deb(lab, tree):
    """The Debian package of `cargo xtask dist --packages`, unpacked into the new folder `tree`."""
    return unpacked(lab, tree, "lowlat_*.deb", lambda package: subprocess.run(["dpkg-deb", "-R", package, tree], check=True))


def unpacked(lab, tree, pattern, unpack):
    """The newest package of target/dist with such a name, which `unpack` puts into `tree`. It must contain the binary that
    the guest has."""
    package = max(DIST.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)
    if not package:
        raise Skip(f"target/dist has no {pattern}: {HINT}")
    unpack(package)
    if digest((tree / "usr/bin/lowlat").read_bytes()) != digest(lab.guest.binary.read_bytes()):
        raise Skip(f"{package.name} does not contain {lab.guest.binary}: {HINT}")
    return package


def digest(content):
    return hashlib.sha256(content).hexdigest()


def made(lab):
    """The package of `cargo xtask dist --packages` and one of a later version, in the guest's /lab."""
    tree = lab.folder / "later"
    lab.guest.give(deb(lab, tree), "lowlat.deb")
    control = tree / "DEBIAN/control"
    text = control.read_text()
    version = next(line.split()[1] for line in text.splitlines() if line.startswith("Version:"))
    control.write_text(text.replace(f"Version: {version}", f"Version: {version}+later"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, lab.guest.share / "later.deb"], check=True, capture_output=True)
    return version


def files(tree):
    """The files of an unpacked package: path to mode and content, without its documentation, which each system puts elsewhere."""
    paths = [path for path in tree.rglob("*") if path.is_file() and "DEBIAN" not in path.parts and not {"doc", "licenses", "lintian"} & {*path.parts}]
    names = {path: str(path.relative_to(tree)).removesuffix(".gz").replace("vendor-completions", "site-functions") for path in paths}
    content = {path: subprocess.run(["zcat", path], check=True, capture_output=True).stdout if path.suffix == ".gz" else path.read_bytes() for path in paths}
    return {names[path]: (path.stat().st_mode & 0o777, digest(content[path])) for path in paths}


def rpm(lab):
    """Compares the RPM package with Debian's, and gives its script before removal to the guest."""
    tree = lab.folder / "rpm"
    tree.mkdir()

    def unpack(package):
        archive = subprocess.run(["rpm2cpio", package], check=True, capture_output=True).stdout
        subprocess.run(["cpio", "--quiet", "-idm"], input=archive, cwd=tree, check=True)

    try:
        if missing := [name for name in ("rpm", "rpm2cpio", "cpio") if not shutil.which(name)]:
            raise Skip(f"{', '.join(missing)} not installed")
        package = unpacked(lab, tree, "lowlat-*.rpm", unpack)
    except Skip as reason:
        lab.skip("the RPM package", reason)
        return False
    debian, own = files(lab.folder / "later"), files(tree)
    differing = sorted(name for name in {*debian, *own} if debian.get(name) != own.get(name))
    lab.check(f"the RPM package has the {len(debian)} files of Debian's", not differing, differing)
    script = subprocess.run(["rpm", "-qp", "--nosignature", "--qf", "%{PREUN}", package], check=True, capture_output=True, text=True).stdout
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

"""Newer kernels of Debian for a guest, from the archive that this host uses."""

import pathlib
import shutil
import subprocess

# Everything that finds the root disk and the shared folder, and what those need: the emulator unpacks the rest slowly.
MODULES = (
    "arch", "block", "crypto", "drivers/block/virtio_blk.ko", "drivers/net/net_failover.ko", "drivers/net/virtio_net.ko",
    "drivers/nvme/common", "drivers/nvme/host", "drivers/virtio", "fs/9p", "fs/ext4", "fs/jbd2", "fs/mbcache.ko", "fs/netfs",
    "lib", "net/9p", "net/core",
)
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
META = "linux-image-amd64"

INSTALL = """
set -e
tar -xf /lab/kernel.tar -C /
depmod {release}
printf '9p\\n9pnet_virtio\\n' >>/etc/initramfs-tools/modules
update-initramfs -c -k {release}
update-grub
sync
"""


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def mirror():
    """The package source of this host's own release."""
    for line in run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages").splitlines():
        site, release = line.split()
        if release == "bookworm":
            return site
    raise RuntimeError("cannot find this host's package source for bookworm")


def fetch(suite, folder, meta=META):
    """Downloads the suite's kernel, by its metapackage; returns the tree with its files and its release."""
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "archives/partial", "tree"):
        (folder / name).mkdir(parents=True)
    (folder / "sources").write_text(f"deb [signed-by={KEYS}] {mirror()} {suite} main\n")
    apt = ["-o", f"Dir::Etc::sourcelist={folder}/sources", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=root"]
    run("apt-get", *apt, "-q", "update")
    image = next(name for name in depends(apt, meta) if name.startswith("linux-image-"))
    # Newer packages are split: the image package depends on those with the kernel and with its modules.
    packages = [image, *(name for name in depends(apt, image) if name.endswith(image.removeprefix("linux-image-")))]
    run("apt-get", *apt, "-q", "download", *packages, cwd=folder)
    for package in folder.glob("linux-*.deb"):
        run("dpkg-deb", "-x", package, folder / "tree")
    return folder / "tree", image.removeprefix("linux-image-")


def depends(apt, package):
    """The packages that a package needs."""
    said = run("apt-cache", *apt, "depends", "--no-recommends", "--no-suggests", package)
    return [line.split()[-1] for line in said.splitlines() if line.strip().startswith("Depends:")]


def install(lab, suite):
    """Installs the kernel of a Debian suite in the running guest, whose next boot uses it."""
    tree, release = fetch(suite, lab.folder / "kernel")
    modules = next(path for path in (tree / "usr/lib/modules" / release, tree / "lib/modules" / release) if path.is_dir())
    boot = tree / "boot"
    boot.mkdir(exist_ok=True)
    for name in ("vmlinuz", "config", "System.map"):
        if (modules / name).exists():
            shutil.copy(modules / name, boot / f"{name}-{release}")
    for part in MODULES:
        # Debian 12's tools expect modules without compression.
        packed = modules / "kernel" / f"{part}.xz"
        found = [packed] if packed.exists() else list((modules / "kernel" / part).rglob("*.ko.xz"))
        if found:
            run("unxz", *found)
    parts = [modules / "kernel" / part for part in MODULES] + [*modules.glob("modules.*"), *boot.iterdir()]
    names = [path.relative_to(tree) for path in parts if path.exists()]
    run("tar", "-cf", lab.guest.share / "kernel.tar", "-C", tree, "--transform", "s,^usr/lib/modules,lib/modules,", *names)
    lab.guest.must(INSTALL.format(release=release), 3000)
    (lab.guest.share / "kernel.tar").unlink()
    shutil.rmtree(lab.folder / "kernel")
    lab.note(f"kernel {release} of {suite}")
    return release

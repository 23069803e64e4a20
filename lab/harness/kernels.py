"""Other kernels for a guest, from the archive that this host uses: newer ones of Debian, and its source built with other options."""

import os
import pathlib
import shutil
import subprocess

from .machine import LAB

# Everything that finds the root disk and the shared folder, and what those need: the emulator unpacks the rest slowly.
MODULES = (
    "arch", "block", "crypto", "drivers/block/virtio_blk.ko", "drivers/net/net_failover.ko", "drivers/net/virtio_net.ko",
    "drivers/nvme/common", "drivers/nvme/host", "drivers/virtio", "fs/9p", "fs/ext4", "fs/jbd2", "fs/mbcache.ko", "fs/netfs",
    "lib", "net/9p", "net/core",
)
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
META = "linux-image-amd64"
# For the build of a kernel on a Debian host.
BUILD_PACKAGES = ("bc", "bison", "flex", "gcc", "libelf-dev", "libssl-dev", "make", "xz-utils")
# Options of a kernel that is built: what the guest needs is part of it, and many drivers are left out.
ON = (
    "9P_FS BLK_CGROUP BLK_DEV_NVME CFS_BANDWIDTH CGROUP_PIDS CPUSETS CPU_ISOLATION DEVTMPFS EXT4_FS FUSE_FS HUGETLBFS IKCONFIG_PROC MEMCG NET_9P NET_9P_VIRTIO"
    " NO_HZ_FULL RCU_EXPERT RCU_NOCB_CPU TMPFS_POSIX_ACL TRANSPARENT_HUGEPAGE VIRTIO_BLK VIRTIO_NET VIRTIO_PCI"
).split()
OFF = (
    "AGP ATA AUDIT CFG80211 DEBUG_INFO DRM HID_SUPPORT I2C IPV6 MD NETFILTER NFS_FS PCCARD RFKILL SCSI SECURITY_SELINUX SOUND USB_SUPPORT WIRELESS WLAN"
).split()

INSTALL = """
set -e
tar -xf /lab/kernel.tar -C /
depmod {release}
printf '9p\\n9pnet_virtio\\n' >>/etc/initramfs-tools/modules
update-initramfs -c -k {release}
update-grub
sync
"""

# It has no modules, and finds its disk itself.
INSTALL_BUILT = """
set -e
rm -f /boot/vmlinuz-* /boot/initrd.img-* /vmlinuz* /initrd.img*
mv /lab/vmlinuz /boot/vmlinuz-{release}
mv /lab/config /boot/config-{release}
mkdir -p /lib/modules/{release}
echo GRUB_DISABLE_LINUX_UUID=true >>/etc/default/grub
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


def fetch(suite, folder, meta=META, kind="linux-image-"):
    """Downloads the suite's kernel, or its source, by its metapackage; returns the tree with its files and its release."""
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "archives/partial", "tree"):
        (folder / name).mkdir(parents=True)
    (folder / "sources").write_text(f"deb [signed-by={KEYS}] {mirror()} {suite} main\n")
    apt = ["-o", f"Dir::Etc::sourcelist={folder}/sources", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=root"]
    run("apt-get", *apt, "-q", "update")
    image = next(name for name in depends(apt, meta) if name.startswith(kind))
    # Newer packages are split: the image package depends on those with the kernel and with its modules.
    packages = [image, *(name for name in depends(apt, image) if name.endswith(image.removeprefix(kind)))]
    run("apt-get", *apt, "-q", "download", *packages, cwd=folder)
    for package in folder.glob("linux-*.deb"):
        run("dpkg-deb", "-x", package, folder / "tree")
    return folder / "tree", image.removeprefix(kind)


def depends(apt, package):
    """The packages that a package needs."""
    said = run("apt-cache", *apt, "depends", "--no-recommends", "--no-suggests", package)
    return [line.split()[-1] for line in said.splitlines() if line.strip().startswith("Depends:")]


def source(suite, folder):
    """The suite's kernel source, configured for a virtual server."""
    if (folder / ".config").exists():
        return
    run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *BUILD_PACKAGES, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    tree, _ = fetch(suite, folder.parent / "kernel-source", "linux-source", "linux-source-")
    archive, = (tree / "usr/src").glob("linux-source-*.tar.xz")
    folder.mkdir(parents=True, exist_ok=True)
    run("tar", "-xf", archive, "-C", folder, "--strip-components=1")
    shutil.rmtree(tree.parent)
    run("make", "-s", "defconfig", "kvm_guest.config", cwd=folder)
    configure(folder, *(f"-{way}={name}" for way, names in (("e", ON), ("d", OFF)) for name in names), "--set-str=LOCALVERSION=-lab")


def configure(folder, *options):
    """Changes a configuration, in the words of the kernel's scripts/config, each with `=` for a space."""
    run("scripts/config", *(word for option in options for word in option.split("=", 2)), cwd=folder)
    run("make", "-s", "olddefconfig", cwd=folder)


def install_built(lab, suite, *options):
    """Builds the suite's kernel with further options, and makes it the only one of the running guest. A first build takes some
    ten minutes on two CPUs, and another one a minute."""
    folder = LAB.parent / "target/lab" / f"linux-{suite}"
    source(suite, folder)
    configure(folder, *options)
    run("make", "-s", f"-j{os.cpu_count()}", "bzImage", cwd=folder)
    release = run("make", "-s", "kernelrelease", cwd=folder).strip()
    shutil.copy(folder / "arch/x86/boot/bzImage", lab.guest.share / "vmlinuz")
    shutil.copy(folder / ".config", lab.guest.share / "config")
    lab.guest.must(INSTALL_BUILT.format(release=release), 3000)
    lab.note(f"kernel {release} with {options}")
    return release


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

# shellcheck shell=bash disable=SC2154 # the sourcing script sets out, tree and prefix
# Sourced by lab/image and lab/disk: Debian in a folder. `out` is their output folder. `arch` is the
# guest's processor, as printed by `uname -m`; `suite` is the guest's release of Debian; `flavour` is empty or, for the
# real-time kernel, `rt-`.

arch=x86_64
suite=bookworm
flavour=

say() { printf '%s: %s\n' "lab/$(basename "$0")" "$*" >&2; }

# locked COMMAND [ARGUMENT...]: runs it while no other build of an image runs. Its processes do not inherit the lock, so a
# killed build blocks no other. The file contains the owner's process id.
locked() {
    exec 9>>"$out/image.lock"
    if ! flock -n 9; then
        say "waiting for process $(cat "$out/image.lock"), which holds $out/image.lock"
        flock 9
    fi
    echo $$ >"$out/image.lock"
    "$@" 9>&-
    exec 9>&-
}

# The package source this machine already uses for its own Debian release.
mirror() {
    apt-get indextargets --format "\$(SITE) \$(RELEASE)" 'Created-By: Packages' |
        awk '$2 == "bookworm" { print $1; exit }'
}

# Packages for the host: debootstrap, mke2fs, qemu-img and QEMU 10 (7.2 knows neither modules nor smp-cache).
host_packages() {
    local major
    major=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p' || true)
    if [[ ${major:-0} -ge 10 ]] && command -v debootstrap >/dev/null && command -v mke2fs >/dev/null &&
        command -v qemu-img >/dev/null; then
        return
    fi
    say 'installing debootstrap, e2fsprogs and QEMU 10'
    apt-get update -qq >&2
    if [[ -z $(apt-get indextargets --format "\$(RELEASE)" 'Created-By: Packages' |
        grep -x bookworm-backports || true) ]]; then
        printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' \
            "$(mirror)" /usr/share/keyrings/debian-archive-keyring.gpg \
            >/etc/apt/sources.list.d/lowlat-lab.sources
        apt-get update -qq >&2
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -qq -y --no-install-recommends debootstrap e2fsprogs >&2
    apt-get install -qq -y --no-install-recommends -t bookworm-backports \
        qemu-system-x86 qemu-utils seabios ipxe-qemu >&2
}

# Additional packages for a guest with UEFI: its firmware, and what writes its partition table.
efi_packages() {
    if [[ -e /usr/share/OVMF/OVMF_CODE_4M.fd ]] && command -v sfdisk >/dev/null; then
        return
    fi
    say 'installing OVMF and fdisk'
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ovmf fdisk >&2
}

# Additional packages for a guest with another processor: its emulator, its firmware, and support for running its programs
# while the image is built.
foreign_packages() {
    local format=/proc/sys/fs/binfmt_misc
    if ! command -v "qemu-system-$arch" >/dev/null || ! command -v "qemu-$arch-static" >/dev/null ||
        [[ ! -e /usr/share/AAVMF/AAVMF_CODE.fd ]]; then
        say "installing QEMU and firmware for $arch"
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends -t bookworm-backports \
            qemu-system-arm qemu-user-static qemu-efi-aarch64 >&2
    fi
    # Without systemd, which does this at boot, as in a container.
    [[ -e $format/register ]] || mount -t binfmt_misc binfmt_misc "$format"
    [[ -e $format/qemu-$arch ]] || tr -d '\n' <"/usr/lib/binfmt.d/qemu-$arch.conf" >"$format/register"
}

# Debian's name for the processor.
debian_arch() { case $arch in x86_64) echo amd64 ;; aarch64) echo arm64 ;; esac; }

in_guest() { chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }

# Removes `tree`. A debootstrap that was killed leaves its /proc mounted there.
remove_tree() {
    umount -q "$tree/proc" "$tree/sys" 2>/dev/null || true
    rm -rf --one-file-system "$tree"
}

# base_tree: Debian in `tree`, without a kernel.
base_tree() {
    say "debootstrap into $tree"
    debootstrap --arch="$(debian_arch)" --variant=minbase \
        --include=systemd,systemd-sysv,libpam-systemd,dbus,udev,kmod,procps,iproute2,ethtool,pciutils \
        "$suite" "$tree" "$(mirror)" >"$out/debootstrap.log" 2>&1 ||
        { tail -n 20 "$out/debootstrap.log" >&2; return 1; }
    patience
}

# Emulated CPUs on a busy host overrun systemd's limits of 90 s and 3 min. NICs get addresses.
patience() {
    echo lowlat-lab >"$tree/etc/hostname"
    printf '127.0.0.1 localhost lowlat-lab\n' >"$tree/etc/hosts"
    printf 'LABEL=lowlat-lab / ext4 errors=remount-ro 0 1\n' >"$tree/etc/fstab"
    printf '[Match]\nName=en*\n[Network]\nDHCP=ipv4\n' \
        >"$tree/etc/systemd/network/lab.network"
    mkdir -p "$tree/etc/systemd/system.conf.d" "$tree/etc/systemd/system/systemd-.service.d"
    printf '[Manager]\nDefaultTimeoutStartSec=900\nDefaultDeviceTimeoutSec=900\n' \
        >"$tree/etc/systemd/system.conf.d/lab.conf"
    printf '[Service]\nWatchdogSec=0\n' >"$tree/etc/systemd/system/systemd-.service.d/lab.conf"
    printf 'event_timeout=900\n' >>"$tree/etc/udev/udev.conf"
}

# Adds the suite's backports to the guest's package sources.
backports() {
    printf 'deb %s %s-backports main\n' "$(mirror)" "$suite" >>"$tree/etc/apt/sources.list"
    in_guest apt-get update -qq >>"$out/debootstrap.log" 2>&1
}

# guest_packages [APT_OPTION...] PACKAGE...
guest_packages() { in_guest apt-get install -qq -y --no-install-recommends "$@" >>"$out/debootstrap.log" 2>&1; }

# kernel_packages [APT_OPTION...]: tuned, irqbalance and the kernel, with an initial ramdisk that contains only what
# finds the root disk, because a guest without KVM unpacks it slowly.
kernel_packages() {
    mkdir -p "$tree/etc/initramfs-tools/conf.d"
    printf 'MODULES=list\n' >"$tree/etc/initramfs-tools/conf.d/lab"
    guest_packages initramfs-tools
    printf '%s\n' virtio_pci virtio_blk nvme ext4 crc32c_generic >>"$tree/etc/initramfs-tools/modules"
    guest_packages tuned irqbalance numactl
    guest_packages "$@" "linux-image-$flavour$(debian_arch)"
    in_guest systemctl -q enable systemd-networkd tuned irqbalance
    in_guest systemctl -q disable systemd-networkd-wait-online apt-daily.timer apt-daily-upgrade.timer
}

# Prepares the tree for a first boot; prints the kernel's release.
finish_tree() {
    local kernel
    in_guest apt-get clean
    rm -rf "$tree"/var/lib/apt/lists/* "$tree"/etc/machine-id
    echo uninitialized >"$tree/etc/machine-id"
    kernel=$(basename "$(find "$tree/boot" -name 'vmlinuz-*')")
    cp "$tree/boot/$kernel" "$prefix.vmlinuz"
    cp "$tree/boot/initrd.img-${kernel#vmlinuz-}" "$prefix.initrd"
    echo "${kernel#vmlinuz-}"
}

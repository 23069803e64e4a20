# shellcheck shell=bash disable=SC2034,SC2154 # read and set by the sourcing script
# Sourced by lab/boot and lab/harness/machine.py: converts the file of `machine` to QEMU's arguments. They set `lab`
# (its folder), `machine` and `tables` (a folder for SMBIOS records, which QEMU reads at its start).

# shellcheck disable=SC2317  # this one and the two below are called by machine files
byte() { local n; for n in "$@"; do printf '%b' "\\x$(printf %02x "$n")"; done; }
# shellcheck disable=SC2317
word() { local n; for n in "$@"; do byte $((n & 255)) $((n >> 8 & 255)); done; }

# dimms PER_SOCKET SOCKETS MIB SPEED MANUFACTURER PART: appends one SMBIOS type 17 record per module to
# `qemu`. QEMU's own -smbios type=17 makes one record per 16 GiB of guest memory, so a small guest would
# show one module; whole records from files show the server's real ones.
# shellcheck disable=SC2317
dimms() {
    local per=$1 sockets=$2 mib=$3 speed=$4 manufacturer=$5 part=$6 socket slot file n=0
    for ((socket = 1; socket <= sockets; socket++)); do
        for ((slot = 1; slot <= per; slot++, n++)); do
            file=$tables/dimm$n
            {
                byte 17 40 && word $((0x1100 + n)) 0x1000 0xfffe 72 64 0x7fff # size: see the extended one
                byte 9 0 1 2 26 && word 0x2080 "$speed"                      # DIMM, DDR4, registered
                byte 3 4 5 6 2 && word $((mib & 65535)) $((mib >> 16)) "$speed" 1200 1200 1200
                printf '%s\0' "PROC $socket DIMM $slot" "Bank $n" "$manufacturer" \
                    "$(printf 'LAB%05d' "$n")" 'Not Specified' "$part"
                byte 0
            } >"$file"
            qemu+=(-smbios "file=$file")
        done
    done
}

# A machine file sets `qemu` (hardware) and may set `cmdline` (the kernel's, after root and console),
# `arch` (the processor, as printed by `uname -m`), `root` (nvme or virtio: the root disk's controller),
# `bus` (for the lab's own devices),
# `threads` (multi: a host thread per emulated CPU; single: one for all, faster if CPUs poll, because each passes
# on to the next at its pause instruction), `seconds` (time limit of a slow machine) and `fixture=no`
# (lab/capture leaves it out).
qemu=() cmdline='quiet' arch=x86_64 root=nvme bus=pcie.0 threads=multi seconds=600
# shellcheck source=/dev/null
source "$lab/machines/$machine"

case $arch in
    x86_64) console=ttyS0 ;;
    aarch64) console=ttyAMA0 ;;
esac
case $root in
    nvme) disk="nvme,drive=root,serial=lab0" ;;
    virtio) disk="virtio-blk-pci,drive=root" ;;
esac


# ---- The kernel's command line: a drop-in of GRUB (Debian, Ubuntu), or grubby (Red Hat family) ----------------------

on_line() { # TOKEN
    if ! present "$root/proc/cmdline"; then return 1; fi
    case " $line " in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

# The function grub_drop_in prints the drop-in.
boot_parameters() { # "TOKENS" "NAMES whose old value is removed" "OLD TOKENS"
    number=$((number + 1))
    if [ "$mode" = show ]; then
        for token in $1; do
            if on_line "$token"; then say "held    $token"; else say "change  $token: from the next boot on"; fi
        done
    fi
    if program update-grub; then
        new=$(grub_drop_in && printf .)
        new=${new%.}
        install_file /etc/default/grub.d/zz-lowlat.cfg update-grub
    elif program grubby; then
        by_grubby "$@"
    else
        trouble "neither update-grub nor grubby is installed; set these boot parameters manually: $1"
    fi
}

by_grubby() { # "TOKENS" "NAMES" "OLD TOKENS"
    if ! run grubby --info=DEFAULT; then
        trouble "grubby: $said"
        return 0
    fi
    missing=
    for token in $1; do
        case "$said" in
        *[\"\ ]"$token"[\"\ ]*) ;;
        *) missing="$missing $token" ;;
        esac
    done
    if [ -z "$missing" ] || [ "$mode" = show ]; then return 0; fi
    remember files '' grubby "$1" "$3" "$1" '' || return 0
    if run grubby --update-kernel=ALL --remove-args="$2" --args="$1"; then
        say "set     boot parameters with grubby: $1"
        settle_boot
    else
        trouble "grubby: $said"
    fi
}

restore_grubby() { # KIND TOKENS OLD
    run grubby --update-kernel=ALL --remove-args="$2" --args="$3" || {
        trouble "grubby: $said"
        return 1
    }
    say "removed boot parameters with grubby"
    settle_boot
}

# GRUB reads ext4 and XFS without their journals, which the kernel writes back some seconds after sync: after
# a power cut in between, the host may boot an older menu, or none. Freezing writes them back at once. It is
# done only if /boot is a separate file system, because this shell could block itself while the root is
# frozen.
settle_boot() {
    run findmnt -n -o MAJ:MIN,FSTYPE,TARGET -T "$root/boot" || said=
    read -r device type target << END
$said
END
    run findmnt -n -o MAJ:MIN -T / || said=
    read -r root_device << END
$said
END
    case $type:$target in
    "ext3:$root/boot" | "ext4:$root/boot" | "xfs:$root/boot")
        # A part of the root file system may be mounted there too.
        if [ -n "$root_device" ] && [ "$device" != "$root_device" ] && freeze_and_thaw "$target"; then return 0; fi
        ;;
    esac
    # -f came with coreutils 8.24.
    if program sync && ! run sync -f "$root/boot" && ! run sync; then trouble "$root/boot: $said"; fi
}

# Both run in a separate process that ignores termination signals, so the file system is always thawed.
freeze_and_thaw() { # DIRECTORY
    program fsfreeze || return 1
    said=$(
        trap '' HUP INT TERM
        "$program" --freeze "$1" 2>&1 9>&- || exit 3
        exec "$program" --unfreeze "$1" 2>&1 9>&-
    )
    case $? in
    0) return 0 ;;
    # Not frozen: unsupported, or already frozen by another process, which must thaw it.
    3) return 1 ;;
    esac
    trouble "$1 may still be frozen: $said; thaw it with \`fsfreeze --unfreeze $1\`"
}


# ---- The kernel's command line: a drop-in of GRUB (Debian, Ubuntu), or grubby (Red Hat and kin) -------------------------

on_line() { # TOKEN
    if ! present "$root/proc/cmdline"; then return 1; fi
    case " $line " in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

# The drop-in itself is what the function grub_drop_in prints.
boot_parameters() { # "TOKENS" "NAMES that lose their old value" "OLD TOKENS"
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
        trouble "neither update-grub nor grubby is here: set these boot parameters by hand: $1"
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
        say "set     boot parameters, by grubby: $1"
    else
        trouble "grubby: $said"
    fi
}

restore_grubby() { # KIND TOKENS OLD
    run grubby --update-kernel=ALL --remove-args="$2" --args="$3" || {
        trouble "grubby: $said"
        return 1
    }
    say "took the boot parameters off, by grubby"
}

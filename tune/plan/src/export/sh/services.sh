
# ---- systemd units --------------------------------------------------------------------------------------------------

is_active() {
    case $(unit_state is-active "$1") in
    active | activating | reloading) return 0 ;;
    esac
    return 1
}

unit_state() { # is-active|is-enabled UNIT
    run systemctl "$1" "$2"
    printf '%s' "${said:-unknown}"
}

# Stops a unit; with "disabled" it also no longer starts at boot.
service() { # UNIT ENABLEMENT
    number=$((number + 1))
    if ! program systemctl; then
        trouble "$1: systemctl is not installed"
        return 0
    fi
    was=$(unit_state is-active "$1")
    boot=$(unit_state is-enabled "$1")
    if ! is_active "$1" && { [ "$2" != disabled ] || [ "$boot" != enabled ]; }; then
        if [ "$mode" = show ]; then say "held    $1 is $was, $boot"; fi
        return 0
    fi
    if [ "$mode" = show ]; then
        say "change  $1: $was, $boot -> stopped${2:+, $2}"
        return 0
    fi
    remember files '' service "$1" "$was $boot" "inactive $2" '' || return 0
    if [ "$2" = disabled ] && [ "$boot" = enabled ]; then run systemctl disable "$1" || trouble "$1: $said"; fi
    if run systemctl stop "$1"; then say "stopped $1"; else trouble "$1: $said"; fi
}

restore_service() { # KIND WHAT OLD NEW
    boot=${3#* }
    if [ "${4#* }" = disabled ] && [ "$boot" = enabled ]; then
        run systemctl enable "$2" || {
            trouble "$2: $said"
            return 1
        }
    fi
    case $3 in
    active* | activating* | reloading*)
        run systemctl start "$2" || {
            trouble "$2: $said"
            return 1
        }
        say "started $2"
        ;;
    esac
}

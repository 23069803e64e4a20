
# ---- Functions of the steps -----------------------------------------------------------------------------------------

note() { printf 'note    %s\n' "$*"; }

check_tuned() { # PROFILE, or '' for any
    if ! program tuned-adm; then return 0; fi
    if ! is_active tuned.service; then
        note "TuneD is installed but not running; its profile is rolled back"
        return 0
    fi
    run tuned-adm active || true
    case $said in
    *"$1"*) ;;
    *) note "the profile ${1:-} is not active: $said" ;;
    esac
}

governors() { # GOVERNOR
    number=$((number + 1))
    for file in "$root"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
        if [ ! -e "$file" ]; then continue; fi
        path=${file#"$root"}
        cpu=${path#/sys/devices/system/cpu/cpu}
        change value "$path" "$1" ".${cpu%%/*}" "$path"
    done
}

# Takes CPUs offline and online, one after the other; only once until `stop`.
cycle_cpus() { # CPULIST
    if [ "$mode" = show ]; then
        say "change  CPUs $1: offline and online again"
        return 0
    fi
    if [ -e "$state/cycled" ]; then return 0; fi
    : > "$state/cycled"
    expand "$1"
    for cpu in $cpus; do
        file=$root/sys/devices/system/cpu/cpu$cpu/online
        if [ ! -e "$file" ]; then
            note "CPU $cpu cannot be taken offline"
        elif ! put "$file" 0; then
            trouble "CPU $cpu: $said"
        elif ! put "$file" 1; then
            trouble "CPU $cpu IS OFFLINE AND DOES NOT COME BACK: $said"
        fi
    done
}

flush_filter() { # iptables|ip6tables
    number=$((number + 1))
    if ! program "$1" || ! run "$1-save" -t filter; then
        note "$1: nothing to flush (${said:-not installed})"
        return 0
    fi
    case $said in
    *" DROP ["*)
        trouble "$1: not flushed: a chain has the policy DROP, so flushing would block all connections"
        return 0
        ;;
    *"
-A "*) ;;
    *) return 0 ;;
    esac
    if [ "$mode" = show ]; then
        say "change  $1: all rules of the table filter flushed"
        return 0
    fi
    printf '%s\n' "$said" > "$state/files/$(printf '%05d' "$number").old" || {
        trouble "$1: not flushed: cannot save the rules"
        return 0
    }
    remember files '' filter "$1" '' '' '' || return 0
    if ! run "$1" -F || ! run "$1" -X; then trouble "$1: $said"; fi
}

restore_filter() { # KIND iptables|ip6tables
    if ! program "$2-restore" || ! said=$("$program" < "$record.old" 2>&1); then
        trouble "$2: rules not restored (${said:-no $2-restore}); they are in $record.old"
        return 1
    fi
    say "restored the rules of $2"
}

# Whether each CPU of a list is in another.
is_within() { # CPULIST CPULIST
    expand "$2"
    within=" $cpus "
    expand "$1"
    for cpu in $cpus; do
        case $within in
        *" $cpu "*) ;;
        *) return 1 ;;
        esac
    done
}

all_irqs() { # CPULIST
    number=$((number + 1))
    refused=
    for directory in "$root"/proc/irq/[0-9]*; do
        irq=${directory##*/}
        file=$directory/smp_affinity_list
        if ! present "$file" || is_within "$now" "$1"; then continue; fi
        if [ "$mode" = show ]; then
            say "change  interrupt $irq: $now -> $1"
        elif remember run ".$irq" value "/proc/irq/$irq/smp_affinity_list" "$now" "$1" "$line"; then
            put "$file" "$1" || {
                rm -f "$record"
                refused="$refused $irq ($said)"
            }
        fi
    done
    if [ -n "$refused" ]; then note "interrupts that the kernel does not allow moving:$refused"; fi
}

check_irqbalance() { # CPULIST
    if ! is_active irqbalance.service; then return 0; fi
    run systemctl show --property=Environment irqbalance.service
    case $said in
    *IRQBALANCE_BANNED_CPU*) return 0 ;;
    esac
    for file in "$root/etc/default/irqbalance" "$root/etc/sysconfig/irqbalance"; do
        if [ ! -r "$file" ]; then continue; fi
        while IFS= read -r line; do
            case $line in
            IRQBALANCE_BANNED_CPU*=?*) return 0 ;;
            esac
        done < "$file"
    done
    trouble "irqbalance is running and moves interrupts back; install its drop-in, which sets \
         IRQBALANCE_BANNED_CPULIST=$1"
}

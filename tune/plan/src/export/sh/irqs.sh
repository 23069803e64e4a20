
# ---- Interrupts: found by name, since numbers change between boots --------------------------------------------------

# Lines "NUMBER NAMES" in $irqs. The names follow the last two spaces of a line of /proc/interrupts.
read_irqs() {
    irqs=
    while IFS= read -r line; do
        irq=${line%%:*}
        irq=${irq##* }
        case $irq in
        '' | *[!0-9]*) ;;
        *) irqs="$irqs$irq ${line##*  }
" ;;
        esac
    done < "$root/proc/interrupts"
}

# Sets $irq to the present number: the plan's if it still has the names, otherwise the NTH with these names.
find_irq() { # NUMBER NTH NAMES
    irq=
    nth=0
    while read -r candidate names; do
        if [ "$names" != "$3" ]; then continue; fi
        nth=$((nth + 1))
        if [ "$candidate" = "$1" ]; then
            irq=$candidate
            return 0
        fi
        if [ "$nth" = "$2" ]; then irq=$candidate; fi
    done << END
$irqs
END
    [ -n "$irq" ]
}

irq() { # NUMBER NTH NAMES CPULIST
    number=$((number + 1))
    if [ -z "${irqs:-}" ]; then read_irqs; fi
    if ! find_irq "$1" "$2" "$3"; then
        # A missing interrupt needs no change; fewer queues remove some.
        say "none    interrupt $3"
        return 0
    fi
    change irq "/proc/irq/$irq/smp_affinity_list" "$4" '' "interrupt $irq $3"
}

# A removed interrupt needs no restore, and irqbalance keeps those that it has moved since.
restore_irq() { # KIND WHAT OLD NEW LINE
    if ! present "$root$2"; then return 0; fi
    found=$now
    if [ "$found" != "$3" ] && [ "$found" != "$4" ]; then
        run systemctl is-active irqbalance.service
        if [ "$said" = active ]; then
            say "moved by irqbalance: $2, now $found"
            return 0
        fi
    fi
    restore_value "$@"
}

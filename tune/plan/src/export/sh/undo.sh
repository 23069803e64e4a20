
# ---- Apply and undo -------------------------------------------------------------------------------------------------

# The boot to which records of run-time values belong.
this_boot() {
    if present "$root/proc/sys/kernel/random/boot_id"; then printf '%s' "$now"; else printf 'unknown'; fi
}

check_host() {
    if [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then refuse "run it as root"; fi
    if ! present "$root/sys/devices/system/cpu/online"; then refuse "cannot read which CPUs are online"; fi
    if [ "$now" != "$online_cpus" ]; then
        refuse "this script is for a host with online CPUs $online_cpus, and this one has $now; export again on \
             this host"
    fi
}

open_state() {
    umask 022
    made=
    make_directory "$state" || refuse "$state: $said"
    if [ -n "$made" ]; then
        chmod 700 "$state"
        printf '%s' "$made" > "$state/made"
    fi
    exec 9> "$state/lock" || refuse "cannot write to $state"
    if [ -z "$root" ] || command -v flock > /dev/null; then
        flock -n 9 || refuse "this script is already running"
    fi
    said=$(mkdir -p "$state/run" "$state/files" "$state/tell" 2>&1) || refuse "cannot write to $state: $said"
    if ! present "$state/plan"; then
        keep "$state/plan" "$plan_id" || refuse "cannot write to $state: $said"
    elif [ "$now" != "$plan_id" ]; then
        refuse "$state contains records of plan $now; run undo of that plan's script first"
    fi
    boot=$(this_boot)
    # A reboot has reset values of an earlier boot, and their numbers may now mean others.
    if present "$state/boot" && [ "$now" != "$boot" ]; then forget_boot; fi
    keep "$state/boot" "$boot" || refuse "cannot write to $state: $said"
}

forget_boot() {
    for record in "$state/run"/*; do rm -f "$record"; done
}

undo_all() {
    if [ ! -e "$state/plan" ]; then
        say "Nothing to undo."
        return 0
    fi
    open_state
    undo_part files
    undo_part run
    tell_all
    if [ "$left" -ne 0 ]; then return 0; fi
    made=
    if [ -r "$state/made" ]; then made=$(cat "$state/made"); fi
    rm -rf "$state/run" "$state/files" "$state/tell"
    rm -f "$state/plan" "$state/boot" "$state/lock" "$state/made" "$state/cycled"
    remove_directories "$made"
}

# Notifies all readers of changed files, including those of an earlier run. Failures stay recorded.
tell_all() {
    for whom in "$state/tell"/*; do
        if [ ! -e "$whom" ]; then continue; fi
        if [ "$mode" = show ]; then
            say "change  ${whom##*/}: to be notified of changed files"
        elif tell "${whom##*/}"; then
            rm -f "$whom"
        fi
    done
}

# Undoes the records of a part, the last one first.
undo_part() { # run|files
    records=
    for record in "$state/$1"/*; do
        case $record in
        *.old | *.made | *.lowlat-new | *'/*') ;;
        *) records="$record
$records" ;;
        esac
    done
    while IFS= read -r record; do
        if [ -n "$record" ]; then undo_record; fi
    done << END
$records
END
}

undo_record() {
    what=
    end=
    {
        read -r kind
        IFS= read -r what
        IFS= read -r old
        IFS= read -r new
        IFS= read -r old_line
        read -r end
    } < "$record"
    # Records are written atomically, so this one was truncated later, and its change may have been made.
    if [ "$end" != end ]; then
        old=
        if [ -e "$record.old" ]; then old=" the old file is $record.old;"; fi
        trouble "$record${what:+ ($what)}: not undone: \"end\" is missing;$old undo it manually, then remove $record"
        return 0
    fi
    case $kind in
    value | mask) restore=restore_value ;;
    twin) restore=restore_twin ;;
    irq) restore=restore_irq ;;
    thread | policy) restore=restore_thread ;;
    service) restore=restore_service ;;
    file) restore=restore_file ;;
    grubby) restore=restore_grubby ;;
    filter) restore=restore_filter ;;
    nic-*) restore=restore_nic ;;
    *)
        trouble "$record: unknown kind $kind"
        return 0
        ;;
    esac
    "$restore" "$kind" "$what" "$old" "$new" "$old_line" || return 0
    rm -f "$record" "$record.old" "$record.made"
}

summary() {
    if [ "$left" -ne 0 ]; then
        printf '%s: %s changes not done; see the lines LEFT above\n' "${0##*/}" "$left" >&2
        exit 1
    fi
}


# ---- Kernel threads: found by name among threads of the kernel, never among programs --------------------------------

# Lines "PID BOUND POLICY PRIORITY NAME" in $threads. From /proc/PID/stat: field 9 contains PF_KTHREAD
# (0x200000) and PF_NO_SETAFFINITY (0x4000000: the kernel does not allow moving it), fields 40 and 41
# priority and policy.
read_threads() {
    threads=
    for stat in "$root"/proc/[0-9]*/stat; do
        # A process may have ended. Reading byte by byte is safe here and avoids a program for each of many
        # files.
        if ! { IFS= read -r line; } 2> /dev/null < "$stat"; then continue; fi
        pid=${stat%/stat}
        pid=${pid##*/}
        name=${line#*\(}
        name=${name%\)*}
        # shellcheck disable=SC2086 # fields, parted by blanks
        set -- ${line##*\) }
        if [ "$#" -lt 39 ] || [ $(($7 & 2097152)) -eq 0 ]; then continue; fi
        threads="$threads$pid $(($7 & 67108864)) ${39} ${38} $name
"
    done
}

# Reads the CPUs of a thread into $now.
allowed() { # PID
    now=
    if [ ! -r "$root/proc/$1/status" ]; then return 1; fi
    while read -r key rest; do
        if [ "$key" = Cpus_allowed_list: ]; then
            now=$rest
            return 0
        fi
    done < "$root/proc/$1/status"
    return 1
}

# Calls "$1 PID BOUND POLICY PRIORITY NAME" with the rest of the arguments for each thread whose name is the pattern $2.
each_thread() {
    action=$1 pattern=$2 wanted=$3 label=$4
    if [ -z "${threads:-}" ]; then read_threads; fi
    found=
    while read -r pid bound policy priority name; do
        # shellcheck disable=SC2254 # a pattern is meant
        case $name in
        $pattern) ;;
        *) continue ;;
        esac
        found=1
        "$action"
    done << END
$threads
END
    if [ -z "$found" ] && [ "$label" = required ]; then trouble "kernel thread $pattern: no thread has this name"; fi
}

move_thread() {
    if ! allowed "$pid"; then return 0; fi
    if [ "$now" = "$wanted" ]; then
        if [ "$mode" = show ]; then say "held    $name ($pid) runs on $wanted"; fi
    elif [ "$bound" -ne 0 ]; then
        if [ "$label" = required ]; then trouble "$name ($pid): bound to $now by the kernel"; fi
    elif [ "$mode" = show ]; then
        say "change  $name ($pid) runs on: $now -> $wanted"
    elif remember run ".$pid" thread "$pid $name" "$now" "$wanted" ''; then
        if run taskset -pc "$wanted" "$pid"; then
            say "set     $name ($pid) runs on $wanted"
        else
            trouble "$name ($pid): $said"
        fi
    fi
}

thread() { # NAME CPULIST
    number=$((number + 1))
    each_thread move_thread "$1" "$2" required
}

# As thread, for threads that may be missing.
any_thread() { # PATTERN CPULIST
    number=$((number + 1))
    each_thread move_thread "$1" "$2" optional
}

schedule_thread() {
    if [ "$policy $priority" = "$wanted" ]; then
        if [ "$mode" = show ]; then say "held    $name ($pid) policy and priority $wanted"; fi
    elif [ "$mode" = show ]; then
        say "change  $name ($pid) policy and priority: $policy $priority -> $wanted"
    elif remember run ".$pid" policy "$pid $name" "$policy $priority" "$wanted" ''; then
        schedule "$pid" "$wanted" || trouble "$name ($pid): $said"
    fi
}

# Sets policy and priority, both as numbers of sched(7).
schedule() { # PID "POLICY PRIORITY"
    case $2 in
    "0 "*) flag=-o ;;
    "1 "*) flag=-f ;;
    "2 "*) flag=-r ;;
    "3 "*) flag=-b ;;
    "5 "*) flag=-i ;;
    *)
        said="policy $2 is not one that chrt sets by priority alone"
        return 1
        ;;
    esac
    run chrt "$flag" -p "${2#* }" "$1"
}

thread_policy() { # NAME "POLICY PRIORITY"
    number=$((number + 1))
    each_thread schedule_thread "$1" "$2" required
}

# Whether a recorded thread is still the same: process IDs are reused.
is_thread() { # "PID NAME"
    if ! present "$root/proc/${1%% *}/stat"; then return 1; fi
    name=${line#*\(}
    [ "${name%\)*}" = "${1#* }" ]
}

restore_thread() { # KIND WHAT OLD NEW
    if ! is_thread "$2"; then return 0; fi
    pid=${2%% *}
    if [ "$1" = thread ]; then
        allowed "$pid" || return 0
        if [ "$now" = "$3" ]; then return 0; fi
        if [ "$now" != "$4" ]; then
            trouble "$2: not restored: its CPUs were $3, this script set $4, and something changed them to $now"
            return 1
        fi
        run taskset -pc "$3" "$pid" || {
            trouble "$2: $said"
            return 1
        }
    else
        schedule "$pid" "$3" || {
            trouble "$2: $said"
            return 1
        }
    fi
    say "restored $2: $4 -> $3"
}

# ---- Functions. Nothing below depends on this host. -----------------------------------------------------------------
# Every old value is recorded in $state before the new one is written. Records of run-time values belong to
# one boot; records of files survive a reboot. A record has six lines: kind, target, old value, new value,
# old line, "end". LOWLAT_ROOT names a copied tree for a trial instead of /: then no programs of this host
# are run, only those in usr/bin and usr/sbin of the tree.

# Output of programs is parsed here, so it must be in one language. update-grub and ethtool are often not in
# a user's PATH.
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL PATH

root=${LOWLAT_ROOT:-}
state=${LOWLAT_STATE:-$root$state_below_root}
number=0
left=0
made=

say() { printf '%s\n' "$*"; }

section() {
    if [ "$mode" = show ]; then printf '\n%s\n' "$1"; fi
}

# Reports and counts a failure; the script continues.
trouble() {
    printf 'LEFT    %s\n' "$*" >&2
    left=$((left + 1))
}

refuse() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 2
}

# Finds a program: sets $program, or fails.
program() {
    if [ -z "$root" ]; then
        program=$(command -v "$1") && return 0
    else
        for program in "$root/usr/bin/$1" "$root/usr/sbin/$1"; do
            if [ -x "$program" ]; then return 0; fi
        done
    fi
    program=
    return 1
}

# Runs a program and keeps its output in $said. It does not inherit the lock, which must end with this script.
run() {
    if ! program "$1"; then
        said="$1 is not installed"
        return 1
    fi
    shift
    said=$("$program" "$@" 2>&1 < /dev/null 9>&-)
}

# Reads the first line of a file into $line, unchanged, and its value into $now: for a choice such as "always
# [never]" the word in brackets. It uses head, which reads the file at once: dash reads byte by byte, and the
# kernel returns nothing after the first read of a file below /proc/sys.
present() {
    line=''
    now=''
    if [ ! -r "$1" ]; then return 1; fi
    line=$(head -n 1 "$1" 2> /dev/null && printf .) || return 1
    line=${line%.}
    if [ -z "$line" ]; then return 1; fi
    line=${line%"
"}
    now=$line
    case $now in
    *\[*\]*)
        now=${now#*\[}
        now=${now%%\]*}
        ;;
    esac
}

# Writes a line to a file of the kernel; an error is in $said. It does not use the shell's printf: dash
# reports every error as an I/O error.
put() {
    said=$({ env printf '%s\n' "$2" > "$1"; } 2>&1) || {
        said=${said##*: }
        return 1
    }
}

# Leading zeros and commas do not change a mask.
plain_mask() {
    plain=
    mask_rest=$1
    while [ -n "$mask_rest" ]; do
        plain=$plain${mask_rest%%,*}
        case $mask_rest in
        *,*) mask_rest=${mask_rest#*,} ;;
        *) mask_rest= ;;
        esac
    done
    while :; do
        case $plain in
        0?*) plain=${plain#0} ;;
        *) break ;;
        esac
    done
}

same() { # KIND ONE OTHER
    if [ "$1" != mask ]; then
        [ "$2" = "$3" ]
        return
    fi
    plain_mask "$2"
    same_one=$plain
    plain_mask "$3"
    [ "$same_one" = "$plain" ]
}

# Creates a directory and its parents; adds the created ones to $made, deepest first.
make_directory() {
    if [ -d "$1" ]; then return 0; fi
    make_directory "${1%/*}" || return 1
    said=$(mkdir "$1" 2>&1) || return 1
    made="$1
$made"
}

# Removes directories that are empty.
remove_directories() {
    while IFS= read -r directory; do
        if [ -n "$directory" ]; then rmdir "$directory" 2> /dev/null; fi
    done << END
$1
END
    return 0
}

# Syncs files and directories to the disk. Run-time records need no sync, nor does a copied tree without that
# program.
durably() { # PATH...
    case $1 in
    "$state/run" | "$state/run"/*) return 0 ;;
    esac
    run sync "$@" || { [ -n "$root" ] && [ -z "$program" ]; }
}

# Renames the file NAME.lowlat-new to NAME: after a power cut one of the two is complete.
put_in_place() { # NAME
    durably "$1.lowlat-new" && said=$(mv -f "$1.lowlat-new" "$1" 2>&1) && durably "${1%/*}"
}

# Writes lines to a file of $state.
keep() { # FILE LINE...
    kept=$1
    shift
    if said=$({ printf '%s\n' "$@" > "$kept.lowlat-new"; } 2>&1) && put_in_place "$kept"; then return 0; fi
    rm -f "$kept.lowlat-new"
    return 1
}

# Records a change, unless it is already recorded: undo restores the value from before the first apply. The
# record is on the disk before the change is made, because a power cut could otherwise leave the new file
# with an empty record.
remember() { # run|files PART KIND WHAT OLD NEW LINE
    record=$state/$1/$(printf '%05d%s' "$number" "$2")
    shift 2
    if [ -e "$record" ]; then return 0; fi
    keep "$record" "$@" end || {
        trouble "$2: not changed: cannot write $record ($said)"
        return 1
    }
}

# Either dirty_ratio or dirty_bytes is in effect: writing one makes the kernel set the other to 0. The same
# applies to the background pair. Sets $twin to the path of the other, or fails.
twin() { # PATH
    case $1 in
    /proc/sys/vm/dirty_ratio | /proc/sys/vm/dirty_background_ratio) twin=${1%ratio}bytes ;;
    /proc/sys/vm/dirty_bytes | /proc/sys/vm/dirty_background_bytes) twin=${1%bytes}ratio ;;
    *) return 1 ;;
    esac
}

# Changes one value of the kernel.
change() { # KIND PATH VALUE PART LABEL
    file=$root$2
    if [ ! -e "$file" ]; then
        trouble "$5: this host has no $2"
        return 0
    fi
    if ! present "$file"; then
        trouble "$5: cannot read $2"
        return 0
    fi
    if same "$1" "$now" "$3"; then
        if [ "$mode" = show ]; then say "held    $5 = $3"; fi
        return 0
    fi
    if [ "$mode" = show ]; then
        say "change  $5: $now -> $3"
        return 0
    fi
    kind=$1
    old=$now
    old_line=$line
    # If its twin is in effect, undo must write that one.
    if [ "$old" = 0 ] && twin "$2" && present "$root$twin" && [ "$now" != 0 ]; then
        kind=twin
        old_line=$now
    fi
    remember run "$4" "$kind" "$2" "$old" "$3" "$old_line" || return 0
    if ! put "$file" "$3"; then
        trouble "$5: $said (still $old)"
        return 0
    fi
    # An interrupt that is being moved still shows its previous CPUs.
    if ! present "$file" || ! same "$1" "$now" "$3"; then
        sleep 1
        present "$file" || :
    fi
    if [ -z "$now" ]; then
        trouble "$5: written, but cannot be read back"
    elif ! same "$1" "$now" "$3"; then
        # Undo must find the value that the kernel made of it.
        keep "$record" "$kind" "$2" "$old" "$now" "$old_line" end || trouble "$5: cannot write $record: $said"
        trouble "$5: wrote $3, reads back $now"
    else
        say "set     $5: $old -> $3"
    fi
}

value() { # PATH VALUE
    number=$((number + 1))
    change value "$1" "$2" '' "$1"
}

mask() { # PATH MASK
    number=$((number + 1))
    change mask "$1" "$2" '' "$1"
}

# The CPUs of a list such as 1-3,8: one word each in $cpus.
expand() {
    cpus=
    list_rest=$1
    while [ -n "$list_rest" ]; do
        range=${list_rest%%,*}
        case $list_rest in
        *,*) list_rest=${list_rest#*,} ;;
        *) list_rest= ;;
        esac
        cpu=${range%-*}
        while [ "$cpu" -le "${range#*-}" ]; do
            cpus="$cpus $cpu"
            cpu=$((cpu + 1))
        done
    done
}

# Numbers of idle states differ between CPUs, so they are found by name.
idle_state() { # NAME CPULIST VALUE
    number=$((number + 1))
    expand "$2"
    for cpu in $cpus; do
        for directory in "$root/sys/devices/system/cpu/cpu$cpu/cpuidle"/state*; do
            if present "$directory/name" && [ "$now" = "$1" ]; then
                change value "${directory#"$root"}/disable" "$3" ".$cpu" "CPU $cpu idle state $1, disable"
            fi
        done
    done
}

restore_value() { # KIND WHAT OLD NEW LINE
    file=$root$2
    if ! present "$file"; then
        trouble "$2: not restored to $3: cannot be read"
        return 1
    fi
    if same "$1" "$now" "$3"; then return 0; fi
    if ! same "$1" "$now" "$4"; then
        trouble "$2: not restored: it was $3, this script set $4, and something changed it to $now"
        return 1
    fi
    # In a copied tree files are ordinary and get their old line back unchanged.
    old=$3
    if [ -n "$root" ]; then old=$5; fi
    if ! put "$file" "$old"; then
        trouble "$2: $said (still $4)"
        return 1
    fi
    say "restored $2: $4 -> $3"
}

# Restores the twin, which makes the kernel set this one to 0. It never writes that 0: with both at 0 every
# writer would wait for the disk.
restore_twin() { # KIND WHAT 0 NEW OLD_OF_TWIN
    twin "$2"
    if ! present "$root$2" || ! same value "$now" "$4"; then
        restore_value value "$2" "$3" "$4" "$3" || return 1
        if present "$root$twin" && [ "$now" = "$5" ]; then return 0; fi
        trouble "$twin: not restored: it was $5, this script set $2 to $4, and something changed it to $now"
        return 1
    fi
    if ! put "$root$twin" "$5"; then
        trouble "$twin: $said ($2 is still $4)"
        return 1
    fi
    say "restored $twin: $5"
    # Files of a copied tree are ordinary and do not affect each other.
    if [ -n "$root" ]; then restore_value value "$2" "$3" "$4" "$3"; fi
}

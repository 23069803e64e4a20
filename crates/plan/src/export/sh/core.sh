# ---- The machinery. Nothing below is particular to this host. ------------------------------------------------------
#
# Every old value is on record in $state before the new one is written. Records of run-time values belong to one boot;
# records of files outlive it. A record is five lines: kind, what, old value, new value, old line as it stood; then "end".
# LOWLAT_ROOT names another root than /, a copied tree for a trial: no program of this host is called then, only those
# that the tree has below usr/bin or usr/sbin.

# What programs say is read here, so they say it in one language; update-grub and ethtool are often not on a user's path.
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

# What could not be done is told, counted, and no reason to give the rest up.
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

# Runs a program, keeps what it says in $said. It does not get the lock: whoever outlives this script must not hold it.
run() {
    if ! program "$1"; then
        said="there is no program $1"
        return 1
    fi
    shift
    said=$("$program" "$@" 2>&1 < /dev/null 9>&-)
}

# Reads the first line of a file into $line, as it stands, and into $now; of a choice such as "always [never]" the word
# in brackets. By head, which takes it in one piece: dash reads byte by byte, and of a file below /proc/sys the kernel
# gives nothing after the first read.
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

# Writes a line to a file of the kernel; what it answers is in $said. Not by the printf of the shell: that of dash calls
# every error an I/O error.
put() {
    said=$({ env printf '%s\n' "$2" > "$1"; } 2>&1) || {
        said=${said##*: }
        return 1
    }
}

# Masks are the same whatever zeros stand before them and commas within.
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

# Makes a directory and those above it; adds what was made to $made, deepest first.
make_directory() {
    if [ -d "$1" ]; then return 0; fi
    make_directory "${1%/*}" || return 1
    said=$(mkdir "$1" 2>&1) || return 1
    made="$1
$made"
}

# Takes directories away again, those that are empty.
remove_directories() {
    while IFS= read -r directory; do
        if [ -n "$directory" ]; then rmdir "$directory" 2> /dev/null; fi
    done << END
$1
END
    return 0
}

# Has files and directories on the disk before it returns. What ends with the boot needs no disk, nor does a copied tree
# that has no such program.
durably() { # PATH...
    case $1 in
    "$state/run" | "$state/run"/*) return 0 ;;
    esac
    run sync "$@" || { [ -n "$root" ] && [ -z "$program" ]; }
}

# Renames the file NAME.lowlat-new to NAME: a power cut leaves the one or the other, whole.
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

# Puts a change on record, unless it is: what stood there before the first apply is what undo restores. The record is on
# the disk before the change is made, else a power cut could leave the new file and of its record the name only.
remember() { # run|files PART KIND WHAT OLD NEW LINE
    record=$state/$1/$(printf '%05d%s' "$number" "$2")
    shift 2
    if [ -e "$record" ]; then return 0; fi
    keep "$record" "$@" end || {
        trouble "$2: cannot write $record ($said), so nothing is changed"
        return 1
    }
}

# Of dirty_ratio and dirty_bytes one rules, and the kernel sets the other to 0 when it is written; the same goes for the two
# of the background. Sets $twin to the path of the other, or fails.
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
        trouble "$5: $2 cannot be read"
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
    # Where its twin rules, that is what undo has to write.
    if [ "$old" = 0 ] && twin "$2" && present "$root$twin" && [ "$now" != 0 ]; then
        kind=twin
        old_line=$now
    fi
    remember run "$4" "$kind" "$2" "$old" "$3" "$old_line" || return 0
    if ! put "$file" "$3"; then
        trouble "$5: $said (still $old)"
        return 0
    fi
    # An interrupt that moves at this very moment still shows the CPUs that it had.
    if ! present "$file" || ! same "$1" "$now" "$3"; then
        sleep 1
        present "$file" || :
    fi
    if [ -z "$now" ]; then
        trouble "$5: written, and cannot be read back"
    elif ! same "$1" "$now" "$3"; then
        # What the kernel made of it is what undo has to find.
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

# An idle state has another number on other CPUs, so it is found by its name.
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
        trouble "$2: cannot be read, so $3 is not restored"
        return 1
    fi
    if same "$1" "$now" "$3"; then return 0; fi
    if ! same "$1" "$now" "$4"; then
        trouble "$2: was $3, this script set $4, now it is $now: somebody else changed it, so it stays"
        return 1
    fi
    # Below another root files are plain ones and get their old line back as it stood.
    old=$3
    if [ -n "$root" ]; then old=$5; fi
    if ! put "$file" "$old"; then
        trouble "$2: $said (still $4)"
        return 1
    fi
    say "restored $2: $4 -> $3"
}

# Gives the word back to the twin, with which the kernel sets this one to 0. Never by writing that 0: with both at 0 every
# writer waits for the disk.
restore_twin() { # KIND WHAT 0 NEW OLD_OF_TWIN
    twin "$2"
    if ! present "$root$2" || ! same value "$now" "$4"; then
        restore_value value "$2" "$3" "$4" "$3" || return 1
        if present "$root$twin" && [ "$now" = "$5" ]; then return 0; fi
        trouble "$twin: was $5, this script set $2 to $4, now it is $now: somebody else changed it, so it stays"
        return 1
    fi
    if ! put "$root$twin" "$5"; then
        trouble "$twin: $said ($2 is still $4)"
        return 1
    fi
    say "restored $twin: $5"
    # Files of a copied tree are plain ones and know nothing of each other.
    if [ -n "$root" ]; then restore_value value "$2" "$3" "$4" "$3"; fi
}

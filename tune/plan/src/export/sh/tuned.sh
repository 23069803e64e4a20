
written_in() {
    case $1 in
    housekeeping) printf '%s' @HOUSE@ ;;
    isolated | nobalance) printf '%s' @ISOLATED@ ;;
    # No mask, because they are bound to their CPUs.
    ksoftirqd) printf '%s' '0:f:2:*:ksoftirqd.*' ;;
    rcub) printf '%s' @RCUB@ ;;
    *)
        printf '%s: %s is none of housekeeping, isolated, nobalance, ksoftirqd, rcub\n' "$0" "$1" >&2
        exit 2
        ;;
    esac
}

# The CPUs that lowlat chooses on this host now.
by_lowlat() {
    case $1 in
    ksoftirqd) return 1 ;;
    rcub) set -- housekeeping --rcub ;;
    *) set -- "$1" ;;
    esac
    role=${0%/*}/role.toml
    if [ -r "$role" ]; then set -- "$@" --role "$role"; fi
    command -v lowlat > /dev/null && timeout 30 lowlat cpus "$@" 2> /dev/null
}

numbers=$(written_in "${1:-}") || exit
chosen=$(by_lowlat "$1") || chosen=
if [ -n "$chosen" ] && [ "$chosen" != "$numbers" ]; then
    printf '%s %s: exported %s, but lowlat now chooses %s\n' "$0" "$1" "$numbers" "$chosen" >&2
    numbers=$chosen
fi
printf '%s' "$numbers"

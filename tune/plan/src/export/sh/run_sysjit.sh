
if [ "$#" -ne 2 ]; then
    printf 'usage: %s THRESHOLD_NS SECONDS    (the guide: 100 610)\n' "${0##*/}" >&2
    exit 2
fi
threshold_ns=$1
seconds=$2
for number in "$threshold_ns" "$seconds"; do
    case $number in
    '' | *[!0-9]*)
        printf '%s: %s is not a whole number\n' "${0##*/}" "$number" >&2
        exit 2
        ;;
    esac
done

# The guide's names: sysjitter.HOST.DATE.NN, one file a CPU, beside .txt and .tab.
host=$(uname -n)
date=$(date +%Y%m%d%H%M%S%Z)
directory=/lowlatency/$date
prefix=$directory/sysjitter.${host%%.*}.$date
mkdir -p "$directory" || exit

printf 'load average: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
printf 'measuring CPUs %s for %s s into %s\n' "$cpus" "$seconds" "$directory"
if command -v lowlat > /dev/null; then
    # Waits until the host is quiet.
    lowlat jitter --cpus "$cpus" --threshold "${threshold_ns}ns" --duration "${seconds}s" --when-quiet --format sysjitter \
        --raw "$prefix" --result "$prefix.json" > "$prefix.txt"
elif command -v sysjitter > /dev/null; then
    # The thread that waits for the samplers must not run on their CPUs.
    taskset -c "$housekeeping" sysjitter --raw "$prefix" --runtime "$seconds" --cores "$cpus_one_by_one" \
        "$threshold_ns" > "$prefix.txt"
else
    printf '%s: neither lowlat nor sysjitter is installed\n' "${0##*/}" >&2
    exit 2
fi || exit
if command -v column > /dev/null; then column -t "$prefix.txt" | tee "$prefix.tab"; else cat "$prefix.txt"; fi

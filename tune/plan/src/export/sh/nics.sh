
# ---- Network interfaces, if ethtool is installed --------------------------------------------------------------------

# Reads a parameter of an interface into $now.
nic_now() { # -L|-C|-K|--set-eee... NIC FIELD
    now=
    # The lower-case letter shows what the upper-case one sets.
    run ethtool "$(printf %s "$1" | sed 's/^--set/--show/' | tr '[:upper:]' '[:lower:]')" "$2" || return 1
    # ethtool prints maxima first, then the present values; two names differ from those of its options.
    nic_field=$3
    if [ "$3" = rx-lro ]; then nic_field=large-receive-offload; fi
    said=${said##*Current hardware settings:}
    while read -r key first rest; do
        case "$nic_field $key $first" in
        "adaptive-rx Adaptive RX:") now=${rest%% *} ;;
        "adaptive-tx Adaptive RX:") now=${rest##* } ;;
        "autoneg Autonegotiate: $first") now=$first ;;
        "eee EEE status:") if [ "${rest%% *}" = disabled ]; then now=off; else now=on; fi ;;
        "encoding Configured FEC") now=$(printf %s "${rest#*:}" | tr -s '[:blank:]' , | tr '[:upper:]' '[:lower:]') && now=${now#,} ;;
        "combined Combined: $first" | "rx RX: $first" | "tx TX: $first" | "$nic_field $nic_field: $first") now=$first ;;
        esac
    done << END
$said
END
    [ -n "$now" ]
}

nic() { # -L|-C|-K... NIC FIELD VALUE
    number=$((number + 1))
    if ! nic_now "$1" "$2" "$3"; then
        trouble "$2 $3: ethtool does not report it${said:+ ($said)}"
    elif [ "$now" = "$4" ]; then
        if [ "$mode" = show ]; then say "held    $2 $3 = $4"; fi
    elif [ "$mode" = show ]; then
        say "change  $2 $3: $now -> $4"
    elif remember run '' "nic$1" "$2 $3" "$now" "$4" ''; then
        # Several encodings of error correction have commas between; ethtool takes words.
        # shellcheck disable=SC2046
        if run ethtool "$1" "$2" "$3" $(printf %s "$4" | tr , ' '); then say "set     $2 $3: $now -> $4"; else trouble "$2 $3: $said"; fi
    fi
}

restore_nic() { # nic-L|nic-C|nic-K... "NIC FIELD" OLD NEW
    nic_now "${1#nic}" "${2%% *}" "${2#* }" || {
        trouble "$2: ethtool does not report it"
        return 1
    }
    if [ "$now" = "$3" ]; then return 0; fi
    if [ "$now" != "$4" ]; then
        trouble "$2: not restored: it was $3, this script set $4, and something changed it to $now"
        return 1
    fi
    # shellcheck disable=SC2046
    run ethtool "${1#nic}" "${2%% *}" "${2#* }" $(printf %s "$3" | tr , ' ') || {
        trouble "$2: $said"
        return 1
    }
    say "restored $2: $4 -> $3"
}

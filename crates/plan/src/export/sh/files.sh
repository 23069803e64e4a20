
# ---- Files ----------------------------------------------------------------------------------------------------------

# A checksum tells whether a file is what it was.
sum() {
    if [ -e "$1" ]; then sha256sum < "$1"; else printf 'absent'; fi
}

# Takes the new content from stdin.
whole_file() { # PATH [what is to be told: a unit, or update-grub]
    number=$((number + 1))
    new=$(cat && printf .)
    new=${new%.}
    install_file "$1" "${2:-}"
}

# Puts $new into a file. The old file is kept as a copy; the new one comes into its place by a rename.
install_file() { # PATH WHOM
    file=$root$1
    new_sum=$(printf '%s' "$new" | sha256sum)
    if [ "$(sum "$file")" = "$new_sum" ]; then
        if [ "$mode" = show ]; then say "held    $1"; fi
        return 0
    fi
    if [ "$mode" = show ]; then
        say "change  $1: to hold"
        printf '%s' "$new" | while IFS= read -r line; do say "          $line"; done
        return 0
    fi
    record=$state/files/$(printf '%05d' "$number")
    if [ ! -e "$record" ] && [ -e "$file" ]; then
        if ! said=$(cp -p "$file" "$record.old" 2>&1) || ! durably "$record.old"; then
            trouble "$1: cannot keep a copy in $state ($said), so it stays as it is"
            return 0
        fi
    fi
    made=
    make_directory "${file%/*}" || {
        trouble "$1: $said"
        return 0
    }
    if [ -n "$made" ] && ! keep "$record.made" "$made"; then
        trouble "$1: cannot write $record.made ($said), so nothing is changed"
        return 0
    fi
    remember files '' file "$1" "$(sum "$file")" "$new_sum" "$2" || return 0
    owe "$2" || return 0
    if [ -e "$file" ]; then said=$(cp -p "$file" "$file.lowlat-new" 2>&1); fi
    if said=$({ printf '%s' "$new" > "$file.lowlat-new"; } 2>&1) && put_in_place "$file"; then
        say "wrote   $1"
    else
        rm -f "$file.lowlat-new"
        trouble "$1: $said"
    fi
}

# Sets one KEY=VALUE line of a file that is not lowlat's and takes no drop-in; all other lines stay.
key_in_file() { # PATH KEY VALUE
    number=$((number + 1))
    if [ ! -r "$root$1" ]; then
        trouble "$1: cannot be read, so $2 is not set"
        return 0
    fi
    new=$(with_key "$root$1" "$2" "$3" && printf .)
    new=${new%.}
    if [ "$mode" = show ] && [ "$(sum "$root$1")" != "$(printf '%s' "$new" | sha256sum)" ]; then
        say "change  $1: the line $2 = $3"
    else
        install_file "$1" ''
    fi
}

with_key() { # FILE KEY VALUE
    seen=
    while IFS= read -r line || [ -n "$line" ]; do
        name=${line%%=*}
        name=${name%"${name##*[! ]}"}
        case $line in
        *=*) ;;
        *) name= ;;
        esac
        if [ "$name" != "$2" ]; then
            printf '%s\n' "$line"
        elif [ -z "$seen" ]; then
            seen=1
            printf '%s = %s\n' "$2" "$3"
        fi
    done < "$1"
    if [ -z "$seen" ]; then printf '%s = %s\n' "$2" "$3"; fi
}

restore_file() { # KIND WHAT OLD NEW UNIT
    file=$root$2
    case $(sum "$file") in
    "$3") owe "$5" || return 1 ;;
    "$4")
        owe "$5" || return 1
        # On the disk before the record and the copy are removed.
        if [ "$3" = absent ]; then
            said=$(rm -f "$file" 2>&1) && durably "${file%/*}"
        else
            said=$(cp -p "$record.old" "$file.lowlat-new" 2>&1) && put_in_place "$file"
        fi || {
            trouble "$2: $said"
            return 1
        }
        say "restored $2"
        ;;
    *)
        trouble "$2: somebody else changed it since, so it stays; the old one is $record.old"
        return 1
        ;;
    esac
    if [ -r "$record.made" ]; then remove_directories "$(cat "$record.made")"; fi
}

# Puts on record who is to be told of a file, before it is changed: the telling may fail, or this script end before it.
owe() { # UNIT|update-grub|''
    if [ -z "$1" ]; then return 0; fi
    if said=$({ : > "$state/tell/$1"; } 2>&1) && durably "$state/tell/$1" "$state/tell"; then return 0; fi
    trouble "$1: cannot write $state/tell/$1 ($said), so the file that it reads stays as it is"
    return 1
}

# Tells who reads a file that it was changed.
tell() { # UNIT|update-grub
    again="the next run of this script tries it again"
    if [ "$1" = update-grub ]; then
        run update-grub || {
            trouble "update-grub: $said; $again"
            return 1
        }
        say "ran     update-grub"
        settle_boot
    elif program systemctl; then
        run systemctl daemon-reload || {
            trouble "systemctl daemon-reload: $said; $again"
            return 1
        }
        run systemctl try-restart "$1" || case $said in
        # A unit that was taken off the host reads nothing any more.
        *" not found"*) ;;
        *)
            trouble "$1: $said; $again"
            return 1
            ;;
        esac
    fi
}

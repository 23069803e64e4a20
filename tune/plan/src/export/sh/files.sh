
# ---- Files ----------------------------------------------------------------------------------------------------------

# A checksum detects changes of a file.
sum() {
    if [ -e "$1" ]; then sha256sum < "$1"; else printf 'absent'; fi
}

# Takes the new content from stdin.
whole_file() { # PATH [what reads it: a unit, or update-grub]
    number=$((number + 1))
    new=$(cat && printf .)
    new=${new%.}
    install_file "$1" "${2:-}"
}

# Writes $new to a file. The old file is copied first; the new one replaces it by a rename.
install_file() { # PATH READER
    file=$root$1
    new_sum=$(printf '%s' "$new" | sha256sum)
    if [ "$(sum "$file")" = "$new_sum" ]; then
        if [ "$mode" = show ]; then say "held    $1"; fi
        return 0
    fi
    if [ "$mode" = show ]; then
        say "change  $1: new content"
        printf '%s' "$new" | while IFS= read -r line; do say "          $line"; done
        return 0
    fi
    record=$state/files/$(printf '%05d' "$number")
    if [ ! -e "$record" ] && [ -e "$file" ]; then
        if ! said=$(cp -p "$file" "$record.old" 2>&1) || ! durably "$record.old"; then
            trouble "$1: not changed: cannot copy it to $state ($said)"
            return 0
        fi
    fi
    made=
    make_directory "${file%/*}" || {
        trouble "$1: $said"
        return 0
    }
    if [ -n "$made" ] && ! keep "$record.made" "$made"; then
        trouble "$1: not changed: cannot write $record.made ($said)"
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

# Sets one KEY=VALUE line of a file of another package that supports no drop-ins; other lines stay.
key_in_file() { # PATH KEY VALUE
    number=$((number + 1))
    if [ ! -r "$root$1" ]; then
        trouble "$1: cannot set $2: the file cannot be read"
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
        # Synced to the disk before the record and the copy are removed.
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
        trouble "$2: not restored: it was changed since; the old file is $record.old"
        return 1
        ;;
    esac
    if [ -r "$record.made" ]; then remove_directories "$(cat "$record.made")"; fi
}

# Records which reader of a file must be notified, before the file changes: the notification may fail, or
# this script end before it.
owe() { # UNIT|update-grub|''
    if [ -z "$1" ]; then return 0; fi
    if said=$({ : > "$state/tell/$1"; } 2>&1) && durably "$state/tell/$1" "$state/tell"; then return 0; fi
    trouble "$1: its file was not changed: cannot write $state/tell/$1 ($said)"
    return 1
}

# Notifies the reader of a changed file.
tell() { # UNIT|update-grub
    again="the next run of this script retries"
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
        # An uninstalled unit reads no files.
        *" not found"*) ;;
        *)
            trouble "$1: $said; $again"
            return 1
            ;;
        esac
    fi
}

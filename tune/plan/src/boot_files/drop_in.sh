#
# grub-mkconfig reads this file after /etc/default/grub and after every other file of this directory, because its name
# sorts last. The parameters above are removed from GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT, since most may
# occur only once. lowlat's parameters are added to GRUB_CMDLINE_LINUX_DEFAULT, which recovery entries do not use.

# Prints the words of $1 without those parameters, then $2, then the parameters of init (after a lone --).
lowlat_line() (
    left=$1 words= init= word= quote= is_of_init=
    while :; do
        rest=${left#?}
        letter=${left%"$rest"}
        left=$rest
        is_end=
        case $letter in
            '') is_end=1 ;;
            ' ' | '	' | '
') if [ -z "$quote" ]; then is_end=1; fi ;;
            '"' | "'")
                if [ -z "$quote" ]; then quote=$letter
                elif [ "$quote" = "$letter" ]; then quote=
                fi ;;
            \\)
                if [ "$quote" != "'" ]; then
                    rest=${left#?}
                    letter=$letter${left%"$rest"}
                    left=$rest
                fi ;;
        esac
        if [ -z "$is_end" ]; then
            word=$word$letter
            continue
        fi
        # The kernel treats dashes and underscores in names as equal.
        name=${word%%=*}
        while :; do
            case $name in
                *-*) name=${name%%-*}_${name#*-} ;;
                '"'*) name=${name#'"'} ;;
                *'"') name=${name%'"'} ;;
                *) break ;;
            esac
        done
        if [ "$word" = -- ]; then is_of_init=1; fi
        case $is_of_init:$name in
@PARAMETERS@
            *)
                # An unclosed quote would include everything after it, so such a word goes last.
                if [ -z "$word" ]; then :
                elif [ -n "$is_of_init$quote" ]; then init="$init $word"
                else words="$words $word"
                fi ;;
        esac
        word=
        if [ -z "$letter" ]; then break; fi
    done
    printf '%s' "$words$2$init"
)

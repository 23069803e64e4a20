lowlat_without() {
    set -f
    lowlat_kept=
    for lowlat_word in $1; do
        case ${lowlat_word%%=*} in
        PATTERNS) ;;
        *) lowlat_kept="${lowlat_kept:+$lowlat_kept }$lowlat_word" ;;
        esac
    done
    set +f
}
lowlat_without "${GRUB_CMDLINE_LINUX:-}"
GRUB_CMDLINE_LINUX=$lowlat_kept
lowlat_without "${GRUB_CMDLINE_LINUX_DEFAULT:-}"
GRUB_CMDLINE_LINUX_DEFAULT=$lowlat_kept

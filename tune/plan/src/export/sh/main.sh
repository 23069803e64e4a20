
mode=${1:-help}
case $mode in
apply)
    check_host
    open_state
    plan_run_time
    plan_files
    plan_boot
    tell_all
    say "Applied. A reboot resets values of the kernel: apply them again after each one. Boot parameters take \
         effect at the next boot."
    summary
    ;;
show)
    plan_run_time
    plan_files
    plan_boot
    tell_all
    summary
    ;;
undo)
    if [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then refuse "run it as root"; fi
    undo_all
    summary
    ;;
help | -h | --help)
    say "usage: ${0##*/} show    show the changes without making them"
    say "       ${0##*/} apply   apply them, and save the old values in $state"
    say "       ${0##*/} undo    restore the old values, except those changed since"
    ;;
*) refuse "no such command: $mode (show, apply or undo)" ;;
esac


mode=${1:-help}
case $mode in
apply)
    check_host
    open_state
    plan_run_time
    plan_files
    plan_boot
    tell_all
    say "Applied. Values of the kernel do not outlive a boot: apply again after each. Boot parameters: after a reboot."
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
    say "usage: ${0##*/} show    what would be changed; changes nothing"
    say "       ${0##*/} apply   changes it, and keeps the old values in $state"
    say "       ${0##*/} undo    restores them, but for what others have changed since"
    ;;
*) refuse "no such command: $mode (show, apply or undo)" ;;
esac

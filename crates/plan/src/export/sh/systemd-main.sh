
mode=${1:-help}
case $mode in
start)
    mode=apply
    check_host
    open_state
    all_steps
    summary
    ;;
show)
    all_steps
    summary
    ;;
stop)
    # At shutdown nothing is worth restoring, and services must not be started again.
    if program systemctl && run systemctl is-system-running; then :; fi
    if [ "${said:-}" = stopping ]; then exit 0; fi
    undo_all
    summary
    ;;
help | -h | --help)
    say "usage: ${0##*/} show    what would be changed; changes nothing"
    say "       ${0##*/} start   changes it, and keeps the old values in $state"
    say "       ${0##*/} stop    restores them, but for what others have changed since"
    ;;
*) refuse "no such command: $mode (show, start or stop)" ;;
esac


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
    # At shutdown nothing is restored, and services must not be started again.
    if program systemctl && run systemctl is-system-running; then :; fi
    if [ "${said:-}" = stopping ]; then exit 0; fi
    undo_all
    summary
    ;;
help | -h | --help)
    say "usage: ${0##*/} show    show the changes without making them"
    say "       ${0##*/} start   apply them, and save the old values in $state"
    say "       ${0##*/} stop    restore the old values, except those changed since"
    ;;
*) refuse "no such command: $mode (show, start or stop)" ;;
esac

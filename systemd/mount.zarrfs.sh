#!/bin/sh
# mount(8) runs this for the type zarrfs; written by zarrfs setup.
helper=/usr/local/bin/mount.zarrfs
package=

refuse() {
    echo "mount.zarrfs: $(id -un 2>/dev/null || id -u) cannot use $1, which zarrfs needs: $2" >&2
    exit 32
}

closed="make it readable for all users, or install zarrfs in another place and run zarrfs setup"
[ -e "$helper" ] || [ "$(id -u)" != 0 ] ||
    refuse "$helper" "it is missing; install zarrfs and run zarrfs setup again"
[ -r "$helper" ] && [ -x "$helper" ] || refuse "$helper" "$closed"
# Without this, the kernel or Python says something that helps nobody.
{ read -r first && read -r second; } <"$helper"
interpreter=${first#??}
interpreter=${interpreter%% *}
if [ "$interpreter" = /bin/sh ]; then
    # pip writes this if a path is too long for the kernel: '''exec' "PYTHON" "$0" "$@"
    case $second in
        "'''exec' "*)
            interpreter=${second#"'''exec' "}
            case $interpreter in
                \"*) interpreter=${interpreter#\"} interpreter=${interpreter%%\"*} ;;
                *) interpreter=${interpreter%% *} ;;
            esac
            ;;
    esac
fi
[ -x "$interpreter" ] || refuse "$interpreter" "$closed"
[ -z "$package" ] || [ -r "$package" ] || refuse "$package" "$closed"
exec "$helper" "$@"

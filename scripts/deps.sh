#!/bin/bash
# Install the Debian packages of the lists scripts/packages/NAME.txt that are not there yet; with
# --check only say which. Nothing is downloaded when all are there, and no service is started.
#
# usage: deps.sh [--check] NAME...
set -euo pipefail

here=$(cd "$(dirname "$0")/packages" && pwd)
policy=/usr/sbin/policy-rc.d
log=

die()
{
    printf './run deps: %s\n' "$*" >&2
    exit 1
}

cleanup()
{
    [ -z "$log" ] || rm -f "$log"
    ! grep -qs '^# made by muster' "$policy" || rm -f "$policy"
}

# The wanted packages, alternatives and all; a list that is not there (yet) is a mistake.
wanted()
{
    local name
    for name in "$@"; do
        [ -f "$here/$name.txt" ] || die "there is no list '$here/$name.txt'"
        sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$here/$name.txt"
    done | sort -u
}

# Those of the lines on stdin of which no alternative is installed.
missing()
{
    # shellcheck disable=SC2016 # dpkg's variables, not the shell's
    awk -F'|' '
        NR == FNR { split($0, have, " "); if (have[2] == "installed") installed[have[1]] = 1; next }
        { for (i = 1; i <= NF; i++) if ($i in installed) next; print }' \
        <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null) -
}

# The first alternative that apt knows.
choose()
{
    local one
    for one in ${1//|/ }; do
        if [ -n "$(apt-cache madison "$one" 2>/dev/null)" ]; then
            echo "$one"
            return
        fi
    done
    die "this system's package sources have no '${1//|/ or }'; supported are Debian 12 and later and Ubuntu 24.04"
}

apt()
{
    if ! DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        return 1
    fi
}

check_only=
[ "${1:-}" != --check ] || { check_only=1; shift; }
[ $# -gt 0 ] || die "usage: deps.sh [--check] NAME..."
command -v dpkg-query >/dev/null || die "needs a Debian or Ubuntu system (no dpkg here)"

list=$(wanted "$@")
need=$(missing <<<"$list")
[ -n "$need" ] || exit 0
if [ -n "$check_only" ]; then
    printf '%s\n' "$need"
    exit 1
fi
[ "$(id -u)" -eq 0 ] ||
    die "these packages are missing, and installing them needs root: $(tr '\n' ' ' <<<"$need")
try: sudo ./run deps"

log=$(mktemp)
trap cleanup EXIT
echo "deps: installing $(wc -l <<<"$need") packages: $(tr '\n' ' ' <<<"$need")"
apt update ||
    die "cannot read the package lists: is there a network, and do /etc/apt's sources (and a proxy, if you need one) work?"
chosen=()
for line in $need; do
    one=$(choose "$line")
    chosen+=("$one")
done
# No package may start a service here: this is a build and test machine, perhaps a container.
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\n# made by muster: no services while it installs\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
apt install -y --no-install-recommends "${chosen[@]}" ||
    die "cannot install: ${chosen[*]}"
echo "deps: done"

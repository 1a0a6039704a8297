#!/bin/bash
# Install the Debian packages of the lists scripts/packages/NAME.txt that are not there yet; with
# --check only say which. Nothing is downloaded when all are there, and no service is started.
#
# A line "unpack:NAME" is for a program whose package would start a service with the next boot: where
# NAME is not installed, it is unpacked in $MUSTER_CACHE/packages/NAME instead.
#
# usage: deps.sh [--check] NAME...
set -euo pipefail

here=$(cd "$(dirname "$0")/packages" && pwd)
policy=/usr/sbin/policy-rc.d
unpacked=${MUSTER_CACHE:-/var/cache/muster}/packages
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
        { line = $0
          for (i = 1; i <= NF; i++) { sub("^unpack:", "", $i); if ($i in installed) next }
          print line }' \
        <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null
          [ ! -d "$unpacked" ] || find "$unpacked" -mindepth 1 -maxdepth 1 ! -name '*.new' -printf '%f installed\n') -
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

# One package, beside the system.
unpack()
{
    local new=$unpacked/$1.new
    rm -rf "$new" && mkdir -p "$new/deb"
    (cd "$new/deb" && apt download "$1") || return 1
    dpkg-deb -x "$new"/deb/*.deb "$new" && rm -r "$new/deb" && mv "$new" "$unpacked/$1"
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
beside=()
for line in $need; do
    case $line in
    unpack:*) beside+=("${line#unpack:}") ;;
    *)
        one=$(choose "$line")
        chosen+=("$one")
        ;;
    esac
done
# No package may start a service here: this is a build and test machine, perhaps a container.
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\n# made by muster: no services while it installs\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
[ ${#chosen[@]} -eq 0 ] || apt install -y --no-install-recommends "${chosen[@]}" ||
    die "cannot install: ${chosen[*]}"
for one in "${beside[@]}"; do
    unpack "$one" || die "cannot unpack: $one"
done
echo "deps: done"

#!/bin/sh
# Build an image from Debian packages: build.sh NAME OUT. README.md here tells what a recipe is.
set -eu
umask 022

die()
{
    echo "images: $*" >&2
    exit 1
}

[ $# -eq 2 ] || die "usage: build.sh NAME OUT (an OCI layout: a folder, or a file if it ends in .tar)"
name=$1
out=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache=${MUSTER_CACHE:-/var/cache/muster}/images
[ -f "$here/$name/config.json" ] || die "there is no recipe '$name' here"
missing=
for pair in mmdebstrap:mmdebstrap musl-gcc:musl-tools tar:tar; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
[ -x /usr/bin/python3 ] || missing="$missing python3"
[ -z "$missing" ] || die "needs$missing: run ./run deps"

# Files newer than this get this time, so that a recipe gives the same image twice.
: "${SOURCE_DATE_EPOCH:=1735689600}"
export SOURCE_DATE_EPOCH

# The distribution's own tools, whatever else somebody has put in front of them.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

# shellcheck source=/dev/null
. /etc/os-release
codename=${VERSION_CODENAME:?this release of the system has no code name}
work=

# Everything that the image NAME depends on, but for the state of the package mirror.
recipe_hash()
{
    (
        cd "$here"
        sha256sum build.sh ./*.py
        find "$1" -type f -exec sha256sum {} + | sort -k 2
        echo "$codename $(uname -m) $SOURCE_DATE_EPOCH"
        [ ! -f "$1/from" ] || recipe_hash "$(cat "$1/from")"
    ) | sha256sum | cut -c1-16
}

# The machine's own apt sources for this release, as lines; a third party's are not for an image.
apt_sources()
{
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$list" ] || grep -E "^deb .* $codename(-[a-z]+)? .*\<main\>" "$list" || true
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ -f "$list" ] || continue
        awk -v codename="$codename" '
            function flush(  i, j, n, m, uri, suite) {
                n = split(field["uris"], uri, " "); m = split(field["suites"], suite, " ")
                if (field["types"] ~ /(^| )deb( |$)/ && field["components"] ~ /(^| )main( |$)/ && field["enabled"] !~ /^no/)
                    for (i = 1; i <= n; i++)
                        for (j = 1; j <= m; j++)
                            if (suite[j] ~ "^" codename "(-[a-z]+)?$")
                                print "deb " (field["signed-by"] ~ /^\// ? "[signed-by=" field["signed-by"] "] " : "") uri[i], suite[j], field["components"]
                delete field
            }
            /^#/ { next }
            /^[ \t]*$/ { flush(); next }
            /^[^ \t:]+:/ { key = tolower(substr($0, 1, index($0, ":") - 1)); sub(/^[^:]*:[ \t]*/, ""); field[key] = $0 }
            END { flush() }' "$list"
    done
}

# PACKAGES_FILE BELOW.tar|"" OUT.tar
install_packages()
{
    apt_sources >"$work/sources.list"
    [ -s "$work/sources.list" ] || die "apt on this machine has no sources for '$codename'"
    set -- "$(tr '\n' ',' <"$1")" "$2" "$3"
    if [ -n "$2" ]; then
        set -- "$1" "$3" --variant=custom --setup-hook="tar-in $2 /"
    else
        # with the links of a merged /usr made beforehand, or a package with all of Perl makes them
        set -- "$1" "$3" --variant=apt --hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr \
            --dpkgopt=force-unsafe-io \
            --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' \
            --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
            --dpkgopt='path-include=/usr/share/doc/*/copyright'
    fi
    packages=$1
    tar=$2
    shift 2
    # ping(8) needs no capability where ping_group_range allows it (icmp(7)), and with one that a container
    # cannot have it would not start.
    # shellcheck disable=SC2016 # mmdebstrap gives the root folder to hooks as $1
    mmdebstrap --quiet --skip=output/dev --include="$packages" "$@" \
        --customize-hook='rm -f "$1/etc/hostname" && : >"$1/etc/resolv.conf" && chmod 644 "$1/etc/resolv.conf"' \
        --customize-hook='[ ! -x "$1/usr/sbin/setcap" ] || chroot "$1" sh -c "setcap -r /usr/bin/ping 2>/dev/null || :"' \
        "$codename" "$tar" "$work/sources.list" || die "mmdebstrap cannot make '$name'"
}

# SCRIPT BELOW.tar|"" OUT.tar: run the recipe's own script over an unpacked root folder.
change_root()
{
    mkdir "$work/root"
    [ -z "$2" ] || tar -C "$work/root" --numeric-owner --xattrs --xattrs-include='*' -xpf "$2"
    (cd "$here/$name" && sh "./$1" "$work/root") || die "the script $1 of '$name' failed"
    tar -C "$work/root" --sort=name --numeric-owner --format=pax --xattrs --xattrs-include='*' \
        --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
        --clamp-mtime --mtime="@$SOURCE_DATE_EPOCH" -cf "$3" .
}

# Makes the layout of NAME in the cache, where it is not there yet, and sets $layout to it.
build()
{
    layout=$cache/$name-$(recipe_hash "$name")
    [ ! -d "$layout" ] || return 0
    [ "$(id -u)" -eq 0 ] || die "building an image needs root"
    echo "images: building '$name'" >&2
    base=
    below=
    if [ -f "$here/$name/from" ]; then
        base=$work/base
        sh "$here/build.sh" "$(cat "$here/$name/from")" "$base"
        below=$work/below.tar
        /usr/bin/python3 "$here/oci_layout.py" layer "$base" >"$below"
    fi
    whole=$below
    if [ -f "$here/$name/packages" ]; then
        install_packages "$here/$name/packages" "$whole" "$work/packages.tar"
        whole=$work/packages.tar
    fi
    if [ -f "$here/$name/layer.sh" ]; then
        change_root layer.sh "$whole" "$work/changed.tar"
        whole=$work/changed.tar
    fi
    layer=$whole
    if [ -n "$below" ]; then
        layer=$work/layer.tar
        /usr/bin/python3 "$here/layer_diff.py" "$below" "$whole" >"$layer"
    fi
    /usr/bin/python3 "$here/oci_layout.py" write "$work/layout" --name "$name" \
        --config "$here/$name/config.json" ${base:+--below "$base"} "$layer"
    mv -T "$work/layout" "$layout" 2>/dev/null || [ -d "$layout" ] || die "cannot write to '$cache'"
}

mkdir -p "$cache" || die "cannot make the cache folder '$cache': set MUSTER_CACHE to one that you own"
cache=$(CDPATH='' cd -- "$cache" && pwd)
work=$(mktemp -d "$cache/work.XXXXXX") || die "cannot write to the cache folder '$cache'"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work" # mmdebstrap reads files here as another user

build
# Branches share the cache; what none has asked for in a month goes.
touch "$layout"
find "$cache" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +

case $out in
*.tar) tar -C "$layout" --sort=name --owner=0 --group=0 --mtime="@$SOURCE_DATE_EPOCH" -cf "$out" . ;;
*)
    [ ! -e "$out" ] || [ -f "$out/oci-layout" ] || rmdir "$out" 2>/dev/null ||
        die "'$out' is there and is no OCI layout"
    rm -rf "$out.new"
    cp -R "$layout" "$out.new"
    rm -rf "$out"
    mv -T "$out.new" "$out"
    ;;
esac

#!/bin/sh
# Build the tree that every container sees, read-only, as /opt/muster: process 1, an SSH client and
# server that need nothing of the image (not even a libc), and a shell for images without one.
#
#   bin/        muster-init ssh scp sftp ssh-keygen busybox
#   sbin/       sshd
#   libexec/    sftp-server, and sshd's helper programs where OpenSSH has them (9.8 and later)
#   lib/busybox/sh   for /etc/passwd where the image has no shell; not in bin/, which comes first in
#                    PATH and must not hide the image's own
#   empty/      sshd's privilege separation folder
#   share/doc/  licences
#
# SSH reads /etc/muster/ssh/{ssh_config,ssh_known_hosts}, never /etc/ssh. It knows ed25519,
# curve25519, chacha20-poly1305 and AES-GCM/CTR; no RSA, no compression, no passwords, no PAM.
#
# OpenSSH comes from the distribution's source package, through the apt sources that are configured,
# and is kept in the cache by its version and the hash of how it is built. Nothing is installed, and
# apt's own configuration and lists stay as they are. Packages needed: scripts/packages/guest.txt.
#
# usage: build-guest.sh DEST [CACHE_DIR]      MUSTER_JOBS: jobs at once for make (default 2)
set -eu
umask 022

die()
{
    echo "build-guest: $*" >&2
    exit 1
}

case $# in
1 | 2) ;;
*) die "usage: build-guest.sh DEST [CACHE_DIR]" ;;
esac
dest=$1
cache=${2:-${MUSTER_CACHE:-/var/cache/muster}/guest}
jobs=${MUSTER_JOBS:-2}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
here=$root/scripts/build-guest.sh
log=

# --- what must be there -------------------------------------------------------------------------

missing=
for pair in musl-gcc:musl-tools gcc:gcc make:make strip:binutils dpkg-source:dpkg-dev \
    busybox:busybox-static apt-get:apt flock:util-linux sha256sum:coreutils; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
[ -f /usr/include/sodium.h ] || missing="$missing libsodium-dev"
[ -d /usr/include/linux ] || missing="$missing linux-libc-dev"
[ -z "$missing" ] || die "needs$missing: run ./run deps"
busybox=$(command -v busybox)
if readelf -l "$busybox" 2>/dev/null | grep -q INTERP; then
    die "$busybox is not static: needs busybox-static instead of busybox: run ./run deps"
fi

mkdir -p "$cache" || die "cannot make the cache folder '$cache': set MUSTER_CACHE to one that you own"
cache=$(CDPATH='' cd -- "$cache" && pwd)
work=$(mktemp -d "$cache/work.XXXXXX") || die "cannot write to the cache folder '$cache'"
cleanup()
{
    rc=$?
    if [ "$rc" -ne 0 ] && [ -n "$log" ] && [ -s "$log" ]; then
        tail -n 20 "$log" >&2
        cp "$log" "$cache/failed.log" && echo "build-guest: all of it is in $cache/failed.log" >&2
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

# One build at a time; a second one then finds the result.
exec 9>"$cache/lock"
flock 9

hash_of()
{
    cat "$@" | sha256sum | cut -c1-16
}

# --- OpenSSH ------------------------------------------------------------------------------------

# apt with sources that are the configured ones turned into deb-src, and folders of its own.
# The machine's proxies and keys hold, for they are in its configuration.
source_apt()
{
    command apt-get -qq \
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/sources.list.d" \
        -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User= -o Acquire::Languages=none "$@"
}

source_lists()
{
    mkdir -p "$work/apt/sources.list.d" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$list" ] || sed -n 's/^[[:space:]]*deb\([[:space:]]\)/deb-src\1/p' "$list"
    done >"$work/apt/sources.list.d/all.list"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$list" ] || sed 's/^\([Tt]ypes:\).*/\1 deb-src/' "$list" \
            >"$work/apt/sources.list.d/${list##*/}"
    done
}

# The version that the machine would install, as a source version ("+b1" is a rebuild of the same).
# apt needs seconds for that answer, so it is kept for as long as apt's lists are what they were.
wanted_version()
{
    state=$(find /var/lib/apt/lists /var/lib/dpkg/status -maxdepth 1 -type f \
        -printf '%f %s %T@\n' 2>/dev/null | sort | sha256sum | cut -c1-16)
    known=$cache/version-$state
    if [ ! -s "$known" ]; then
        apt-cache policy openssh-client | sed -n 's/^ *Candidate: *//p' |
            sed -e 's/+b[0-9]*$//' -e 's/^(none)$/newest/' >"$work/version"
        [ -s "$work/version" ] || echo newest >"$work/version"
        rm -f "$cache"/version-*
        mv "$work/version" "$known"
    fi
    cat "$known"
}

fetch_openssh()
{
    echo "build-guest: fetching the source of OpenSSH $1" >&2
    source_lists
    # Another list of the machine may have no sources; what counts is whether the package is found.
    source_apt update >"$log" 2>&1 || true
    cd "$work/src"
    if [ "$1" = newest ] || ! source_apt source --download-only "openssh=$1" >>"$log" 2>&1; then
        [ "$1" = newest ] ||
            echo "build-guest: no source of OpenSSH $1 there, taking the newest" >&2
        source_apt source --download-only openssh >>"$log" 2>&1 ||
            die "cannot fetch the source of OpenSSH: is the network there, and a Debian mirror in apt's sources?"
    fi
    # The files are the ones that apt has verified.
    dpkg-source --no-check -x ./*.dsc openssh >>"$log" 2>&1 || die "cannot unpack OpenSSH"
    cd openssh
}

# Headers for musl that are none of glibc's: the kernel's, and libsodium's.
kernel_headers()
{
    mkdir "$work/kernel" "$work/sodium"
    ln -s /usr/include/sodium.h /usr/include/sodium "$work/sodium"
    ln -s /usr/include/linux /usr/include/asm-generic "$work/kernel"
    ln -s "/usr/include/$(gcc -print-multiarch)/asm" "$work/kernel"
}

# The changes to the source.
#
# sshd chowns a terminal to the user and to the group "tty" of /etc/group. Ours is the user already,
# and the group is devpts' business (gid=5); an image whose "tty" is another number (EPERM), perhaps
# one that is not mapped (EINVAL), must not cost the user the terminal: without root a failure is no
# more than a note.
#
# sshd ends a login that has more than 1,000 variables, its own included. A plan may have 4,096
# (src/init/plan.h), and its logins are to see the same.
#
# sshd delays each refusal by 5 to 9 ms, so that the time does not tell which users there are. There
# is one, and its name is no secret; a login has two refusals before the key is tried.
#
# ssh and sshd turn Nagle's algorithm off only when a terminal or a command runs. Until then each of
# a login's small messages may wait 40 ms for the other side's delayed acknowledgement (RFC 1122,
# 4.2.3.2): three of them are most of the time that a login takes.
patch_openssh()
{
    replace auth2.c '^ensure_minimum_time_since' 'nanosleep(&ts, NULL);' ';'
    replace packet.c '^ssh_packet_set_connection' 'state->connection_out = fd_out;' \
        '& set_nodelay(fd_in);'
    replace sshpty.c 'if (chown(tty, pw->pw_uid, gid) == -1)' \
        'errno == EROFS &&' '(geteuid() != 0 || errno == EROFS) \&\&'
    replace misc.c 'if (i >= envsize - 1)' 'envsize >= 1000' 'envsize >= 5000'
}

# FILE AFTER OLD NEW: in the first line with OLD behind the one with AFTER.
replace()
{
    cp "$1" "$1.orig"
    sed "/$2/,/$3/ s/$3/$4/" "$1.orig" >"$1" || die "cannot change OpenSSH's $1"
    ! cmp -s "$1" "$1.orig" || die "OpenSSH's $1 is not as expected: no '$3' behind '$2'"
}

configure_openssh()
{
    # Patches touch configure.ac; what they add is not for us, so nothing is made anew.
    touch aclocal.m4 config.h.in configure
    CC=musl-gcc \
        CFLAGS="-O3 -fstack-protector-strong -ffunction-sections -fdata-sections -idirafter $work/kernel" \
        LDFLAGS="-static -Wl,--gc-sections -Wl,-z,relro,-z,now" \
        ./configure --host="$(uname -m)-linux-musl" \
        --prefix=/opt/muster --sysconfdir=/etc/muster/ssh --with-privsep-path=/opt/muster/empty \
        --with-default-path=/opt/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        --without-openssl --without-zlib --without-pam --without-selinux --without-kerberos5 \
        --disable-pkcs11 --disable-security-key --disable-lastlog \
        --disable-utmp --disable-utmpx --disable-wtmp --disable-wtmpx
}

make_openssh()
{
    # musl as Debian packages it is without crypt(3); there are no passwords here to check.
    echo 'char *crypt(const char *k, const char *s) { (void)k; (void)s; return 0; }' >no_crypt.c
    musl-gcc -Os -c no_crypt.c
    make -j"$jobs" LIBS="$PWD/no_crypt.o $(cat sodium.libs)" "$@"
}

# OpenSSH without OpenSSL computes curves with reference code, 5 to 10 ms an operation, and a login
# has eight. libsodium has the same functions by the same names, in 0.1 ms. Its archive is made for
# glibc, but of these functions only needs what scripts/guest/sodium.c adds; where it does not link
# or compute, OpenSSH's own code stays.
use_sodium()
{
    libs="$PWD/sodium.o $(gcc -print-file-name=libsodium.a)"
    musl-gcc -O2 -D_GNU_SOURCE -c -o sodium.o "$root/scripts/guest/sodium.c"
    # shellcheck disable=SC2086 # a list of words
    if musl-gcc -static -isystem "$work/sodium" -o sodium_check \
        "$root/scripts/guest/sodium_check.c" $libs && ./sodium_check; then
        sed 's/ smult_curve25519_ref\.o//; s/ ed25519\.o hash\.o / /' Makefile.in >Makefile.new
        ! cmp -s Makefile.in Makefile.new || die "OpenSSH's Makefile.in is not as expected"
        mv Makefile.new Makefile.in
        echo "$libs" >sodium.libs
    else
        echo "build-guest: libsodium does not work with musl here: logins will be slower" >&2
        : >sodium.libs
    fi
}

# In the folder of the source: configure, build and lay out into $1.
build_openssh()
{
    libexec=sftp-server
    for program in sshd-session sshd-auth; do # sshd is several programs from 9.8 on
        ! grep -q "^$program\\\$(EXEEXT):" Makefile.in || libexec="$libexec $program"
    done
    patch_openssh
    kernel_headers
    use_sodium >>"$log"
    configure_openssh >>"$log" 2>&1 || die "cannot configure OpenSSH"
    # shellcheck disable=SC2086 # a list of words
    make_openssh sshd ssh scp sftp ssh-keygen $libexec >>"$log" 2>&1 || die "cannot build OpenSSH"
    mkdir -p "$1/bin" "$1/sbin" "$1/libexec" "$1/share/doc"
    # shellcheck disable=SC2086
    strip sshd ssh scp sftp ssh-keygen $libexec
    cp ssh scp sftp ssh-keygen "$1/bin"
    cp sshd "$1/sbin"
    # shellcheck disable=SC2086
    cp $libexec "$1/libexec"
    cp LICENCE "$1/share/doc/openssh"
    cp /usr/share/doc/musl-tools/copyright "$1/share/doc/musl" 2>/dev/null || true
    cp /usr/share/doc/libsodium-dev/copyright "$1/share/doc/libsodium" 2>/dev/null || true
}

toolchain=$(gcc -dumpfullversion)-$(dpkg-query -W -f '${Package}=${Version} ' musl-tools libsodium-dev \
    2>/dev/null || true)
version=$(wanted_version)
sed -n '/^# --- OpenSSH/,/^# --- muster-init/p' "$here" |
    cat - "$root"/scripts/guest/*.c >"$work/how"
key=$(printf '%s %s' "$version" "$toolchain" | cat - "$work/how" | sha256sum | cut -c1-16)
openssh=$cache/openssh-$key
if [ ! -d "$openssh" ]; then
    log=$work/log
    mkdir "$work/src"
    (
        fetch_openssh "$version"
        build_openssh "$work/openssh"
    )
    mv "$work/openssh" "$openssh"
    log=
fi
touch "$openssh"

# --- muster-init --------------------------------------------------------------------------------

key=$(hash_of "$here" "$root/meson.build" "$root"/src/init/*.[ch])
init=$cache/muster-init-$key
if [ ! -x "$init" ]; then
    release=$(sed -n "s/^ *version: '\\([^']*\\)'.*/\\1/p" "$root/meson.build" | head -n 1)
    musl-gcc -std=gnu17 -Os -Wall -Wextra -Werror -fstack-protector-strong -static -s \
        -ffunction-sections -Wl,--gc-sections -D_GNU_SOURCE -DMUSTER_VERSION="\"$release\"" \
        -I"$root/src" -o "$work/muster-init" "$root"/src/init/*.c || die "cannot build muster-init"
    mv "$work/muster-init" "$init"
fi
touch "$init"

# Branches and releases share the cache; what none has asked for in a month goes.
find "$cache" -maxdepth 1 \( -name 'openssh-*' -o -name 'muster-init-*' -o -name 'work.*' \) \
    -mtime +30 -exec rm -rf {} +

# --- the tree -----------------------------------------------------------------------------------

# Containers may be running from these very files: a changed one is replaced, never written into.
put()
{
    mkdir -p "$(dirname "$2")"
    cmp -s "$1" "$2" && return
    install -m "$3" "$1" "$2.new.$$"
    mv -f "$2.new.$$" "$2"
}

mkdir -p "$dest" "$dest/empty" "$dest/lib/busybox"
chmod 755 "$dest" "$dest/empty" "$dest/lib" "$dest/lib/busybox"
for file in "$openssh"/bin/* "$openssh"/sbin/* "$openssh"/libexec/*; do
    put "$file" "$dest/${file#"$openssh"/}" 755
done
for file in "$openssh"/share/doc/*; do
    put "$file" "$dest/${file#"$openssh"/}" 644
done
put "$init" "$dest/bin/muster-init" 755
put "$busybox" "$dest/bin/busybox" 755
[ ! -f /usr/share/doc/busybox-static/copyright ] ||
    put /usr/share/doc/busybox-static/copyright "$dest/share/doc/busybox" 644
[ -L "$dest/lib/busybox/sh" ] || ln -sfn ../../bin/busybox "$dest/lib/busybox/sh"

#!/bin/bash
# Make the disk of a Debian machine with systemd and pure cgroup v2, with the packages that Muster
# needs to run: disk.ext4, vmlinuz and initrd in OUT. No root file system of this machine is used,
# nothing is mounted.
#
# usage: make_disk.sh OUT PACKAGE...     (beside scripts/packages/runtime.txt)
set -euo pipefail

out=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || { echo "make_disk: only Debian makes Debian machines" >&2; exit 1; }

packages=$(sed -e 's/#.*//' -e 's/|.*//' -e '/^[[:space:]]*$/d' "$root/scripts/packages/runtime.txt" | tr '\n' ',')
packages+=systemd,systemd-sysv,dbus,udev,kmod,python3-minimal,libpython3-stdlib,linux-image-cloud-amd64
for one; do
    packages+=,$one
done

mkdir -p "$out"
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
mmdebstrap --quiet --variant=minbase --include="$packages" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$VERSION_CODENAME" "$work/root.tar"
mkdir "$work/root"
tar -C "$work/root" -xpf "$work/root.tar" --numeric-owner --xattrs --xattrs-include='*'
rm "$work/root.tar"

# The work to do comes as a tar on the second disk; what is said goes to the second serial port.
cat >"$work/root/usr/local/sbin/payload" <<'SCRIPT'
#!/bin/bash
mkdir -p /srv/payload
tar -C /srv/payload -xf /dev/vdb
cd /srv/payload && bash ./inside.sh
echo "END $?"
sync
systemctl poweroff --no-block
SCRIPT
chmod 755 "$work/root/usr/local/sbin/payload"
cat >"$work/root/etc/systemd/system/payload.service" <<'UNIT'
[Unit]
Description=The work of this machine
After=multi-user.target

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/payload
StandardOutput=file:/dev/ttyS1
StandardError=inherit
Environment=HOME=/root
TimeoutStartSec=infinity
KillMode=process
UNIT
mkdir -p "$work/root/etc/systemd/system/multi-user.target.wants"
ln -s /etc/systemd/system/payload.service "$work/root/etc/systemd/system/multi-user.target.wants/"
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    fstrim.timer systemd-timesyncd.service systemd-networkd-wait-online.service; do
    ln -sf /dev/null "$work/root/etc/systemd/system/$unit"
done
echo '/dev/vda / ext4 noatime 0 1' >"$work/root/etc/fstab"
echo vm >"$work/root/etc/hostname"
echo '127.0.0.1 localhost vm' >"$work/root/etc/hosts"

cp "$work/root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$work/root"/boot/initrd.img-* "$out/initrd"
rm -f "$out/disk.ext4.new"
truncate -s 4G "$out/disk.ext4.new"
mkfs.ext4 -q -F -L root -d "$work/root" "$out/disk.ext4.new"
mv "$out/disk.ext4.new" "$out/disk.ext4"

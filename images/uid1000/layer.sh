#!/bin/sh
# An image that brings its own uid 1000, as many do, and that takes things of the image below away:
# a file, a whole folder, and a folder whose content is replaced.
set -eu
root=$1

echo 'someone:x:1000:1000:Someone:/home/someone:/bin/bash' >>"$root/etc/passwd"
echo 'someone:x:1000:' >>"$root/etc/group"
mkdir "$root/home/someone"
echo 'mine' >"$root/home/someone/.keep"
chown -R 1000:1000 "$root/home/someone"
chmod 700 "$root/home/someone"

rm "$root/etc/issue.net"
rm -r "$root/usr/share/bash-completion"
rm -r "$root/etc/skel"
mkdir "$root/etc/skel"
echo 'replaced' >"$root/etc/skel/only"
ln "$root/etc/skel/only" "$root/etc/skel/again"

#!/bin/bash
# The demonstration of ./run demo, which has built everything: two virtual nodes on this machine, and
# one computation in four containers over both. Run again, it uses what is up.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
muster=$root/build/src/cli/muster
dir=${MUSTER_DEMO_DIR:-/var/lib/muster}
export MUSTER_GUEST=$root/build/guest

say()
{
    printf '\n\033[1m%s\033[0m\n' "$*"
}

# With what is built anew the image is imported anew.
import_image()
{
    local tar
    tar=${MUSTER_CACHE:-/var/cache/muster}/demo-$1.tar
    ! "$muster" image show "$1" >/dev/null 2>&1 || return 0
    say "Making the image '$1' from Debian packages (once)"
    "$root/images/build.sh" "$1" "$tar"
    "$muster" image import --name "$1" "$tar"
    rm -f "$tar"
}

# With --dir only where it is needed, for people to type.
at=
[ "$dir" = /var/lib/muster ] || at=" --dir $dir"

say "Two nodes of 4 CPUs and 2 pretend GPUs each, on this machine"
"$muster" up --nodes 2 --node-cpus 4 --node-mem 4G --gpu fake:h100:2 --dir "$dir"
import_image base
import_image mpi

# The program on a volume, which all containers of the session mount.
put_program()
{
    local path
    "$muster" volume create demo >/dev/null 2>&1 || true
    path=$("$muster" volume ls -o json |
        /usr/bin/python3 -c 'import json, sys
print(next(v["path"] for v in json.load(sys.stdin)["volumes"] if v["name"] == "demo"))')
    cp "$root/examples/pi.py" "$path/pi.py"
    chown --reference="$path" "$path/pi.py"
}

say "Pi, by four containers of 2 CPUs: no node holds them all, so the session spans both"
put_program
command=(muster run --name pi --kind train --size 4 --mode multi-node --cpus 2 --mem 512M
    --volume demo:/demo --time 5m mpi mpirun --map-by ppr:1:node python3 /demo/pi.py)
echo "${command[*]}"
start=$(date +%s%N)
"$muster" "${command[@]:1}"
took=$((($(date +%s%N) - start) / 1000000))
echo
"$muster" show pi | sed -n '/^CONTAINER/,$p'
echo
echo "from the command to its end: $took ms"

say "What to try next"
cat <<TEXT
  PATH=$root/build/src/cli:\$PATH
  muster create --wait --name try --size 4 --mode multi-node --cpus 2 mpi
  muster show try                 where its containers are
  muster ssh try                  a shell in main1; from there: ssh sub1
  muster exec try/sub2 hostname   a command in one container
  muster status$at                   the daemons: kill -9 any of them, and then
  muster up$at                       starts it again; the session has noticed nothing (but an open
                                  'muster ssh' led through the daemons and ended: open it again)
  muster stop try
  muster down$at                     ends all of it; images, volumes and the history stay
  muster down$at --purge             removes these, too, and signs you out; what was built stays in
                                  ${MUSTER_CACHE:-/var/cache/muster} for the next time
TEXT

#!/bin/bash
# Runs inside the machine, as root. Each check is one line "ok NAME" or "not ok NAME: why"; the test
# outside reads those.
# shellcheck disable=SC2317 # the checks are called by check()
set -u
exec 2>&1

check()
{
    local name=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "ok $name"
    else
        echo "not ok $name: $(tail -n 12 <<<"$said" | tr '\n' '|')"
    fi
}

is_pure_v2()
{
    [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] && [ "$(cat /proc/1/comm)" = systemd ]
}

four_containers_over_two_nodes()
{
    muster create --wait --name four --size 4 --mode multi-node --cpus 1 --mem 64M base &&
        muster show -o json four | python3 -c '
import json, sys
s = json.load(sys.stdin)
nodes = [c["node"] for c in s["containers"]]
assert s["state"] == "running" and sorted(nodes) == ["n1", "n1", "n2", "n2"], s'
}

ssh_to_all()
{
    local name
    for name in main1 sub1 sub2 sub3; do
        [ "$(muster exec four ssh "$name" hostname)" = "$name" ] || return 1
    done
}

limits_of_cgroup_v2()
{
    local dir
    dir=$(find /sys/fs/cgroup -type d -path '*muster*' -exec test -e '{}/memory.max' \; -print |
        while read -r d; do [ "$(cat "$d/memory.max")" = 67108864 ] && echo "$d"; done | head -n 1)
    [ -n "$dir" ] && [ "$(cat "$dir/cpu.max")" = "100000 100000" ]
}

out_of_memory_is_said()
{
    muster run --name greedy --cpus 0.5 --mem 32M --kind train base -- sh -c 'head -c 200M /dev/zero | tail | wc -c' || true
    muster show -o json greedy | grep -qi memory
}

# Process 1 of the containers, with start times: what must not change.
inits()
{
    local p
    for p in $(pgrep -f '^/opt/muster/bin/muster-init'); do
        echo "$p $(cut -d' ' -f22 "/proc/$p/stat")"
    done | sort
}

killed_agent_changes_nothing()
{
    local before after
    before=$(inits)
    [ "$(wc -l <<<"$before")" -eq 4 ] || { echo "containers: $before"; return 1; }
    pkill -9 -o -x muster-agent
    muster up --nodes 2 --dir /var/lib/muster || return 1
    after=$(inits)
    [ "$before" = "$after" ] || { echo "before: $before, after: $after"; return 1; }
    ssh_to_all && [ "$(muster exec four/sub3 hostname)" = sub3 ]
}

down()
{
    muster down --dir /var/lib/muster --purge
}

nothing_left()
{
    python3 leftovers_cli.py after
}

echo "booted after $(cut -d' ' -f1 /proc/uptime) s, Linux $(uname -r)"
tar -C / -xf programs.tar || exit 1
python3 leftovers_cli.py before
check "pure cgroup v2 under systemd" is_pure_v2
check "muster up" muster up --nodes 2 --node-cpus 2.5 --node-mem 512M --dir /var/lib/muster
check "image import" muster image import --name base base.tar
check "four containers over two nodes" four_containers_over_two_nodes
check "ssh to all" ssh_to_all
check "limits of cgroup v2" limits_of_cgroup_v2
check "out of memory is said" out_of_memory_is_said
check "a killed agent changes nothing" killed_agent_changes_nothing
check "muster stop" muster stop --now four
check "muster down" down
check "nothing is left" nothing_left
for log in /var/lib/muster/log/*.log; do
    [ ! -f "$log" ] || { echo "--- $log"; tail -n 40 "$log"; }
done
exit 0

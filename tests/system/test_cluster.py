"""What a cluster session is, line by line: names, resources, placement, network, SSH, environment,
volumes, logs, ends. Two nodes of 4 CPUs, 4 GiB and 2 pretend GPUs."""
import base64
import hashlib
import itertools
import json
import os
import random
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness.cluster import OUT, ApiError, wait_for

MULTI = ("--mode", "multi-node", "--mem", "128M")


def four(cluster, *words, user="alice", image="base", **more):
    """Four containers of 2 CPUs over both nodes."""
    return cluster.create("--size", "4", *MULTI, "--cpus", "2", *words, image, user=user, **more)


def containers(cluster, sid):
    return cluster.session(sid)["containers"]


def names_of(cluster, sid):
    return [c["name"] for c in containers(cluster, sid)]


def refused(cluster, body, status, *words, user="alice"):
    """A creation is refused with this status and a message with these words."""
    with pytest.raises(ApiError) as e:
        cluster.api("POST", "/v1/sessions", body, user=user)
    assert e.value.status == status, str(e.value)
    for word in words:
        assert word in e.value.message, str(e.value)
    assert cluster.sessions() == []
    return e.value


# --- 1. names ---------------------------------------------------------------------------------

@pytest.mark.timeout(240)
def test_containers_are_main1_and_subs_in_numeric_order(cluster):
    want = ["main1", *(f"sub{i}" for i in range(1, 12))]
    sid = cluster.create("--size", "12", *MULTI, "--cpus", "0.5", "--mem", "64M", "base",
                         user="alice", timeout=180)
    assert names_of(cluster, sid) == want
    assert cluster.sh(sid, "echo $BACKENDAI_CLUSTER_HOSTS").strip() == ",".join(want)
    hosts = cluster.sh(sid, "cat /etc/hosts")
    assert re.findall(r"\b(main1|sub\d+)\b", hosts) == want
    shown = cluster.cli("show", sid, user="alice", check=0).stdout
    assert re.findall(r"^\s*(main1|sub\d+)\b", shown, re.M)[:12] == want


def test_size_1_is_an_ordinary_session(cluster):
    sid = cluster.create("--size", "1", "base", user="alice")
    assert names_of(cluster, sid) == ["main1"]


# --- 2. resources are per container -------------------------------------------------------------

def test_size_4_with_2_cpus_takes_8(cluster):
    sid = four(cluster)
    r = cluster.session(sid)["resources"]
    assert r["each"]["cpus"] == 2 and r["total"]["cpus"] == 8
    assert r["total"]["mem"] == 4 * r["each"]["mem"] == 4 * (128 << 20)
    assert {n: v["used"]["cpus"] for n, v in cluster.nodes().items()} == {"n1": 4, "n2": 4}
    shown = cluster.cli("show", sid, user="alice", check=0).stdout
    assert re.search(r"\b2\b.*\b8\b", shown, re.S)
    limits = container_limits(cluster, sid)
    assert limits == {name: (2.0, 128 << 20) for name in ("main1", "sub1", "sub2", "sub3")}


def container_limits(cluster, sid):
    """(CPUs, bytes) of each container's own cgroup, as the kernel has them."""
    found = {}
    for c in containers(cluster, sid):
        own = f"{sid}/{c['id']}"
        v2 = find_cgroup(cluster, "cpu.max", own)
        if v2:
            quota, period = (v2 / "cpu.max").read_text().split()
            memory = int((v2 / "memory.max").read_text())
        else:
            cpu = find_cgroup(cluster, "cpu.cfs_quota_us", own)
            quota = (cpu / "cpu.cfs_quota_us").read_text()
            period = (cpu / "cpu.cfs_period_us").read_text()
            memory = int((find_cgroup(cluster, "memory.limit_in_bytes", own)
                          / "memory.limit_in_bytes").read_text())
        found[c["name"]] = (int(quota) / int(period), memory)
    return found


def find_cgroup(cluster, file, container):
    """The container's topmost cgroup with this file."""
    found = [Path(folder) for folder, _, files in os.walk("/sys/fs/cgroup")
             if file in files and container in folder and f"/muster/{cluster.tag}" in folder
             and "adopt" not in folder]
    return min(found, key=lambda p: len(p.parts), default=None)


# --- 3. single-node and multi-node ----------------------------------------------------------------

def test_single_node_is_on_one_node_or_waits_and_holds_nothing(cluster):
    holders = [cluster.create("--cpus", "2", "--mem", "64M", "base", user="bob") for _ in "ab"]
    on = {cluster.session(h)["containers"][0]["node"] for h in holders}
    if len(on) == 1:  # packed: one node is whole, the other is free; take some of that one too
        holders.append(cluster.create("--cpus", "2", "--mem", "64M", "base", user="bob"))
    sid = cluster.create("--size", "2", "--mode", "single-node", "--cpus", "2", "--mem", "64M",
                         "base", user="alice", wait=False)
    used = {n: v["used"]["cpus"] for n, v in cluster.nodes().items()}
    time.sleep(1.5)
    assert cluster.session(sid)["state"] == "pending"
    assert {n: v["used"]["cpus"] for n, v in cluster.nodes().items()} == used
    why = cluster.cli("why", sid, user="alice", check=0).stdout
    assert re.search(r"\d", why) and re.search("cpu", why, re.I), why
    for h in holders:
        cluster.cli("stop", h, user="bob", check=0)
    s = cluster.wait_state(sid, "running")
    assert len({c["node"] for c in s["containers"]}) == 1 and s["placed_mode"] == "single-node"


def test_single_node_starts_by_itself_when_a_node_that_fits_appears(new_cluster):
    c = new_cluster(nodes=2, node_options={"n1": {"cpus": "1"}, "n2": {"cpus": "4"}})
    c.api("POST", "/v1/nodes/n2/drain", {"reason": "later"})
    sid = c.create("--size", "2", "--mode", "single-node", "--cpus", "1", "--mem", "64M", "base",
                   user="alice", wait=False)
    time.sleep(1)
    assert c.session(sid)["state"] == "pending"
    c.api("POST", "/v1/nodes/n2/resume", {})
    assert {x["node"] for x in c.wait_state(sid, "running")["containers"]} == {"n2"}


def test_multi_node_goes_whole_to_one_node_that_can_hold_it(cluster):
    sid = cluster.create("--size", "4", *MULTI, "--cpus", "1", "base", user="alice")
    s = cluster.session(sid)
    assert len({c["node"] for c in s["containers"]}) == 1
    assert s["placed_mode"] == "single-node"
    assert cluster.sh(sid, "echo $BACKENDAI_CLUSTER_MODE").strip() == "single-node"


def test_multi_node_goes_to_the_fewest_nodes_otherwise(new_cluster):
    c = new_cluster(nodes=3)
    sid = c.create("--size", "4", *MULTI, "--cpus", "2", "base", user="alice")
    s = c.session(sid)
    assert len({x["node"] for x in s["containers"]}) == 2
    assert s["placed_mode"] == "multi-node"


def test_all_nodes_of_a_session_are_of_one_group(cluster):
    cluster.api("POST", "/v1/groups", {"name": "other"})
    cluster.api("POST", "/v1/nodes/n2/group", {"group": "other"})
    try:
        refused(cluster, {"image": "base", "size": 4, "mode": "multi-node", "cpus": 2,
                          "mem": "64M"}, 422)
    finally:
        cluster.api("POST", "/v1/nodes/n2/group", {"group": "default"})


# --- 4. what can never be is refused --------------------------------------------------------------

def test_what_can_never_fit_is_refused_with_numbers(cluster):
    e = refused(cluster, {"image": "base", "cpus": 5}, 422, "5", "4")
    assert e.code == "never_fits"
    e = refused(cluster, {"image": "base", "size": 5, "cpus": 2, "mode": "multi-node"}, 422, "4")
    assert e.code == "never_fits"
    e = refused(cluster, {"image": "base", "gpus": 3}, 422, "3", "2")
    assert e.code == "never_fits"


@pytest.mark.parametrize("body, word", [
    ({"size": 0}, "size"), ({"size": -1}, "size"), ({"size": 10**9}, "size"),
    ({"cpus": 0}, "cpus"), ({"cpus": "two"}, "cpus"), ({"mem": "4 bananas"}, "mem"),
    ({"mem": 0}, "mem"), ({"gpus": -1}, "gpus"), ({"kind": "fun"}, "kind"),
    ({"mode": "all-over"}, "mode"), ({"colour": "red"}, "colour"),
    ({"env": {"A=B": "x"}}, "env"), ({"mounts": [{"volume": "no-such", "path": "/data"}]}, "no-such"),
    ({"image": "no-such"}, "no-such"), ({"group": "no-such"}, "no-such"),
])
def test_a_wrong_request_is_a_clear_4xx(cluster, body, word):
    with pytest.raises(ApiError) as e:
        cluster.api("POST", "/v1/sessions", {"image": "base"} | body, user="alice")
    assert 400 <= e.value.status < 500 and word in e.value.message, str(e.value)
    assert cluster.sessions() == []


def test_dry_run_says_where_and_what_is_missing(cluster):
    body = {"image": "base", "size": 4, "mode": "multi-node", "cpus": 2, "mem": "64M"}
    fits = cluster.api("POST", "/v1/sessions?dry_run=1", body, user="alice")
    assert fits["fits"] and len(fits["placement"]) == 4
    big = cluster.api("POST", "/v1/sessions?dry_run=1", body | {"size": 9}, user="alice")
    assert not big["fits"] and not big["possible"] and big["largest"] == 4
    assert cluster.sessions() == []


# --- 5. the network -----------------------------------------------------------------------------

SERVER = """
import socket, sys, threading
t = socket.socket(); t.setsockopt(1, 2, 1); t.bind(("", 7000)); t.listen(50)
u = socket.socket(type=2); u.bind(("", 7000))
def udp():
    while 1:
        d, a = u.recvfrom(2000); u.sendto(d, a)
threading.Thread(target=udp, daemon=True).start()
print("serving", flush=True)
while 1:
    c, a = t.accept()
    c.sendall(repr(a).encode()); c.close()
"""
CLIENT = """
import concurrent.futures as f, socket, sys
def ask(host, kind):
    s = socket.socket(type=kind); s.settimeout(2)
    try:
        s.connect((host, 7000)); s.send(b"x"); return bool(s.recv(100))
    except OSError:
        return False
with f.ThreadPoolExecutor(64) as pool:  # silence takes its time, so all at once
    asked = {(h, k): pool.submit(ask, h, k) for h in sys.argv[1:] for k in (1, 2)}
for (host, kind), answer in asked.items():
    print(host, {1: "tcp", 2: "udp"}[kind], "yes" if answer.result() else "no")
"""


def serve(cluster, sid):
    """The SERVER in each container of a session; ends with the session."""
    for name in names_of(cluster, sid):
        cluster.sh(f"{sid}/{name}", f"""
cat >/tmp/s.py <<'END'\n{SERVER}\nEND
nohup setsid python3 /tmp/s.py >/tmp/s.out 2>&1 </dev/null &
for i in $(seq 100); do grep -q serving /tmp/s.out && exit 0; sleep 0.1; done; cat /tmp/s.out; exit 1""")


def reach(cluster, ref, *hosts):
    out = cluster.exec(ref, "python3", "-c", CLIENT, *hosts, timeout=120)
    return {(h, kind): answer == "yes" for h, kind, answer in
            (line.split() for line in out.splitlines())}


def test_every_container_reaches_every_other_by_name_and_nobody_else(cluster):
    a = cluster.create("--size", "4", *MULTI, "--cpus", "1.25", "mpi", user="alice")
    b = cluster.create("--size", "2", *MULTI, "--cpus", "1", "mpi", user="alice")
    c = cluster.create("--size", "1", "--cpus", "0.5", "--mem", "128M", "mpi", user="bob")
    sids = (a, b, c)
    for sid in sids:
        serve(cluster, sid)
    addresses = {sid: [x["ip"] for x in containers(cluster, sid) if x["ip"]] for sid in sids}
    for sid in sids:
        names = names_of(cluster, sid)
        for name in names:
            answers = reach(cluster, f"{sid}/{name}", *names)
            assert all(answers.values()), (name, answers)
        others = [ip for other in sids if other != sid for ip in addresses[other]]
        others += ["10.200.0.1", "10.200.0.2", "10.200.0.254", "10.201.0.1", "10.201.0.2"]
        answers = reach(cluster, f"{sid}/{names[-1]}", *others)
        assert not any(answers.values()), answers
    # nor from outside: no port is published anywhere (a node's root may look into its own sessions)
    knock = "for ip; do timeout 2 bash -c \"echo >/dev/tcp/$ip/7000\" && echo in: $ip & done; wait; echo all"
    for place in ("hub", "out"):
        assert cluster.run_in(place, "bash", "-c", knock, "x", *addresses[a]).stdout == "all\n", place


def test_the_network_fits_where_the_containers_are(cluster):
    one = cluster.create("--size", "2", *MULTI, "--cpus", "1", "base", user="alice")
    node = containers(cluster, one)[0]["node"]
    assert not vxlans(cluster, node)
    cluster.stop_sessions()
    two = four(cluster)
    assert {n: len(vxlans(cluster, n)) for n in ("n1", "n2")} == {"n1": 1, "n2": 1}
    cluster.cli("stop", "--now", two, user="alice", check=0)
    cluster.wait_free()
    assert not vxlans(cluster, "n1") + vxlans(cluster, "n2")


def vxlans(cluster, node):
    """Those of a node's sessions, each in a namespace that the agent holds in its own mount
    namespace."""
    run = cluster.dir / "run" / node
    script = (f"for n in {run}/netns/*; do nsenter --net=$n ip -o link show type vxlan; done; "
              "ip -o link show type vxlan")
    out = cluster.run_in(node, "nsenter", f"--mount={run}/ns/mnt", "sh", "-c", script,
                         check=False).stdout
    return out.splitlines()


def bytes_of(cluster, node, device):
    out = cluster.run_in(node, "ip", "-j", "-s", "link", "show", device).stdout
    stats = json.loads(out)[0]["stats64"]
    return stats["rx"]["bytes"] + stats["tx"]["bytes"]


def test_traffic_between_nodes_uses_the_fabric_only(cluster):
    sid = four(cluster, image="mpi")
    places = {c["name"]: c["node"] for c in containers(cluster, sid)}
    there = next(n for n in places if places[n] != places["main1"])
    script = ("import socket; l = socket.socket(); l.bind(('', 7001)); l.listen(); "
              "c, _ = l.accept(); n = 0\nwhile (d := c.recv(1 << 16)): n += len(d)\nprint(n)")
    p = cluster.popen("exec", f"{sid}/{there}", "python3", "-c", script, user="alice")
    time.sleep(1)
    before = {d: bytes_of(cluster, "n1", d) for d in ("mgmt0", "fabric0")}
    cluster.exec(sid, "python3", "-c", f"import socket; s = socket.create_connection(('{there}', 7001))\n"
                 "for i in range(200): s.sendall(b'x' * 100000)")
    out, _ = p.communicate(timeout=30)
    moved = {d: bytes_of(cluster, "n1", d) - before[d] for d in before}
    assert int(out) == 20_000_000
    assert moved["fabric0"] > 20_000_000 and moved["mgmt0"] < 1_000_000, moved


@pytest.mark.timeout(300)
def test_ten_sessions_at_once_get_ten_networks(cluster):
    sids = []

    def create():
        r = cluster.cli("create", "--wait", "--size", "2", *MULTI, "--mem", "64M", "--cpus", "0.4",
                        "base", user="alice", timeout=240)
        sids.append(r.stdout.strip() if r.returncode == 0 else r.stderr)
    threads = [threading.Thread(target=create) for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    subnets = set()
    for sid in sids:
        ips = [c["ip"] for c in containers(cluster, sid)]
        assert len(set(ips)) == 2
        # "getent hosts" asks for an IPv6 address too, of a name server that is not there: ten seconds
        assert cluster.sh(sid, "getent ahostsv4 sub1").split()[0] == ips[1]
        subnets.add(ips[0].rsplit(".", 2)[0] + str(int(ips[0].split(".")[2]) // 4))
    assert len(subnets) == 10


SEE_PORT = ("import socket; l = socket.socket(); l.setsockopt(1, 2, 1); l.bind(('', 8000)); "
            "l.listen(); l.settimeout(20); print('ready', flush=True)\n"
            "c, a = l.accept(); print(a[0], a[1]); c.sendall(b'hello'); c.close()")


def test_outgoing_connections_work_from_high_ports(cluster):
    sid = cluster.create("--size", "2", *MULTI, "--cpus", "1", "mpi", user="alice")
    node = containers(cluster, sid)[1]["node"]
    p = subprocess.Popen(["nsenter", f"--net={cluster.namespace('out')}", "python3", "-c", SEE_PORT],
                         stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    out = cluster.exec(f"{sid}/sub1", "python3", "-c",
                       f"import socket; s = socket.socket(); s.bind(('', 700)); s.settimeout(10); "
                       f"s.connect(('{OUT}', 8000)); print(s.recv(10).decode())")
    assert out.strip() == "hello"
    ip, port = p.communicate(timeout=20)[0].split()
    assert ip == f"10.200.0.{node[1:]}" and 32768 <= int(port) <= 60999


def test_a_flushed_filter_is_put_back_and_opens_nothing(cluster):
    a = cluster.create("--size", "2", *MULTI, "--cpus", "1", "mpi", user="alice")
    b = cluster.create("--size", "2", *MULTI, "--cpus", "1", "mpi", user="bob")
    serve(cluster, b)
    node = containers(cluster, a)[0]["node"]
    others = [c["ip"] for c in containers(cluster, b)]

    def rules():
        # without counters and handles, and in any order of tables
        text = cluster.run_in(node, "nft", "-s", "list", "ruleset").stdout
        return sorted(re.split(r"^(?=table )", text, flags=re.M))
    before = rules()
    cluster.run_in(node, "nft", "flush", "ruleset")
    assert not any(reach(cluster, a, *others).values())
    wait_for(lambda: rules() == before, 10, lambda: "not put back:\n" + "".join(rules()))
    assert not any(reach(cluster, a, *others).values())


# --- 6. ready means that SSH works everywhere -------------------------------------------------------

@pytest.mark.timeout(180)
def test_no_command_starts_before_every_container_is_ready(new_cluster):
    c = new_cluster(nodes=2)
    c.agents["n2"].stop()
    c.agents["n2"].start(crash="container.after_mount=delay:5s")
    c.wait_nodes()
    script = "date +%s.%N; ssh sub3 date +%s.%N"
    start = time.time()
    r = c.cli("run", "--size", "4", *MULTI, "--cpus", "2", "--on", "all", "base", "sh", "-c",
              f"[ $BACKENDAI_CLUSTER_HOST = main1 ] || {{ date +%s.%N; sleep 5; exit; }}; {script}",
              user="alice", check=0, timeout=120)
    main = float(r.stdout.split()[0])
    assert main - start >= 5
    sid = c.sessions(ended=True)[0]["id"]
    firsts = [main] + [float(c.cli("logs", f"{sid}/sub{i}", user="alice", check=0).stdout.split()[0])
                       for i in (1, 2, 3)]
    assert max(firsts) - min(firsts) < 2, firsts


# --- 7. environment -----------------------------------------------------------------------------

def environments(cluster, sid):
    found = {}
    for name in names_of(cluster, sid):
        text = cluster.exec(f"{sid}/{name}", "env")
        found[name] = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return found


def test_the_environment_names_everyone_and_oneself(cluster):
    sid = four(cluster, "--env", "OMP_NUM_THREADS=9")
    envs = environments(cluster, sid)
    ids = {c["name"]: c["id"] for c in containers(cluster, sid)}
    assert ids["main1"] == sid and len(set(ids.values())) == 4
    for rank, (name, env) in enumerate(envs.items()):
        role, idx = re.fullmatch(r"(main|sub)(\d+)", name).groups()
        want = {"CLUSTER_HOST": name, "CLUSTER_HOSTS": "main1,sub1,sub2,sub3", "CLUSTER_IDX": idx,
                "CLUSTER_MODE": "multi-node", "CLUSTER_ROLE": role, "CLUSTER_SIZE": "4",
                "CLUSTER_LOCAL_RANK": str(rank), "KERNEL_ID": ids[name], "SESSION_ID": sid}
        for prefix in ("BACKENDAI_", "MUSTER_"):
            assert {k: env.get(prefix + k) for k in want} == want
        assert env["MASTER_ADDR"] == "main1" and env["NNODES"] == env["WORLD_SIZE"] == "4"
        assert env["NODE_RANK"] == env["RANK"] == str(rank)
        assert env["OMP_NUM_THREADS"] == "9"
        assert 1024 < int(env["MASTER_PORT"]) < 65536
    assert len({e["MASTER_PORT"] for e in envs.values()}) == 1
    hostfile = cluster.sh(f"{sid}/sub2", "cat /etc/muster/hostfile")
    assert re.findall(r"^(\w+) slots=(\d+)$", hostfile, re.M) == [
        (n, "2") for n in ("main1", "sub1", "sub2", "sub3")]


# --- 8. ssh -------------------------------------------------------------------------------------

@pytest.mark.timeout(240)
@pytest.mark.parametrize("image", ["base", "uid1000", "nolibc"])
def test_ssh_works_between_all_pairs_and_to_oneself(cluster, image):
    sid = four(cluster, image=image)
    names = names_of(cluster, sid)
    to_all = f"for b in {' '.join(names)}; do ssh $b 'echo $BACKENDAI_CLUSTER_HOST $USER $HOME'; done"
    for a in names:
        r = cluster.cli("exec", f"{sid}/{a}", "ssh", a, to_all, user="alice", check=0)
        assert r.stdout == "".join(f"{b} work /home/work\n" for b in names), (a, r.stdout)
        assert r.stderr == "", (a, r.stderr)


def test_ssh_works_with_a_volume_on_home(cluster):
    cluster.cli("volume", "create", "home", user="alice", check=0)
    sid = four(cluster, "--volume", "home:/home/work")
    r = cluster.cli("exec", sid, "ssh", "sub3", "hostname; pwd", user="alice", check=0)
    assert r.stdout == "sub3\n/home/work\n" and r.stderr == ""


def test_private_keys_are_private_and_of_one_session(cluster):
    a, b = (cluster.create("--size", "2", *MULTI, "--cpus", "1", "base", user=u)
            for u in ("alice", "alice"))
    find = "grep -i identityfile /etc/muster/ssh/ssh_config | awk '{print $2}'"
    key = cluster.sh(a, find).strip()
    assert cluster.sh(a, f"stat -c '%a %U' {key}").strip() == "600 work"
    assert cluster.sh(a, f"head -1 {key}").strip() == "-----BEGIN OPENSSH PRIVATE KEY-----"
    keys = [cluster.sh(s, f"cat {key}") for s in (a, b)]
    assert keys[0] != keys[1]
    blob = base64.b64encode(keys[0].encode()).decode()
    r = cluster.cli("exec", b, "sh", "-c",
                    f"umask 077; echo {blob} | base64 -d >/tmp/k; ssh -o IdentitiesOnly=yes "
                    "-o IdentityFile=none -i /tmp/k -F /dev/null -o StrictHostKeyChecking=no "
                    "-o UserKnownHostsFile=/dev/null -o BatchMode=yes sub1 true", user="alice")
    assert r.returncode == 255 and "ermission denied" in r.stderr


def test_scp_and_sftp_work(cluster):
    sid = four(cluster)
    out = cluster.sh(sid, "head -c 5000000 /dev/urandom >/tmp/f; scp -q /tmp/f sub3:/tmp/g; "
                     "ssh sub3 cat /tmp/g | cmp - /tmp/f && echo same; "
                     "echo 'get /tmp/g /tmp/h' | sftp -q -b - sub3 >/dev/null; cmp /tmp/f /tmp/h && echo same")
    assert out.split() == ["same", "same"]


def test_muster_ssh_enters_main1_without_a_question(cluster):
    sid = four(cluster)
    r = cluster.cli("ssh", sid, "hostname", user="alice", check=0)
    assert r.stdout == "main1\n", r.stderr
    r = cluster.cli("ssh", f"{sid}/sub2", "hostname", user="alice", check=0)
    assert r.stdout.strip() == "sub2"


def test_the_prompt_names_user_and_container(cluster):
    sid = four(cluster)
    p = subprocess.run(["script", "-qec", " ".join(cluster.cli_argv("exec", "-t", f"{sid}/sub1")),
                        "/dev/null"], input="exit\n", env=cluster.cli_env("alice"),
                       capture_output=True, text=True, timeout=60)
    assert "work@sub1" in p.stdout


# --- 9. volumes ---------------------------------------------------------------------------------

def test_all_containers_share_the_volumes_as_the_owner(cluster):
    cluster.cli("volume", "create", "data", user="alice", check=0)
    path = next(v["path"] for v in cluster.api("GET", "/v1/volumes", user="alice")["volumes"]
                if v["name"] == "data")
    sid = four(cluster, "--volume", "data:/data")
    for name in names_of(cluster, sid):
        cluster.sh(f"{sid}/{name}", f"echo {name} >/data/{name}")
    assert cluster.sh(f"{sid}/sub3", "cat /data/*").split() == ["main1", "sub1", "sub2", "sub3"]
    cluster.exec(sid, "sh", "-c", "touch /data/by-root && chmod 4755 /data/by-root", root=True)
    owners = {f: os.stat(f"{path}/{f}").st_uid for f in os.listdir(path)}
    by_root = owners.pop("by-root")
    assert set(owners.values()) == {cluster.users["alice"].uid}
    assert by_root >= 100000
    cluster.stop_sessions()
    assert sorted(os.listdir(path)) == ["by-root", "main1", "sub1", "sub2", "sub3"]
    ro = four(cluster, "--volume", "data:/data:ro")
    for name in ("main1", "sub3"):
        r = cluster.cli("exec", "--user", "root", f"{ro}/{name}", "touch", "/data/x", user="alice")
        assert r.returncode != 0 and "Read-only" in r.stderr


def test_a_volume_of_another_user_is_unknown(cluster):
    cluster.cli("volume", "create", "secret", user="alice", check=0)
    with pytest.raises(ApiError) as e:
        cluster.api("POST", "/v1/sessions", {"image": "base", "mounts": [{"volume": "secret", "path": "/s"}]},
                    user="bob")
    assert 400 <= e.value.status < 500


# --- 10. logs -----------------------------------------------------------------------------------

def test_logs_are_of_each_container_alone(cluster):
    r = cluster.cli("run", "--name", "all", "--size", "4", *MULTI, "--cpus", "2", "--on", "all",
                    "base", "sh", "-c", "echo I am $BACKENDAI_CLUSTER_HOST; printf end", user="alice",
                    check=0)
    assert r.stdout == "I am main1\nend"
    for name in ("main1", "sub1", "sub2", "sub3"):
        text = cluster.cli("logs", f"all/{name}", user="alice", check=0).stdout
        assert text == f"I am {name}\nend"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [60_000_000, pytest.param(1_000_000_000, marks=pytest.mark.full)])
def test_a_burst_is_byte_exact_though_the_agent_is_killed_midway(cluster, size):
    script = (f"python3 -c \"import sys, random; r = random.Random(7)\n"
              f"for i in range({size // 1_000_000}): sys.stdout.buffer.write(r.randbytes(1000000))\"")
    p = cluster.popen("run", "--name", "burst", "--mem", "256M", "mpi", "sh", "-c", script,
                      user="alice")
    got, count = hashlib.sha256(), 0

    def read():
        nonlocal count
        while True:
            part = os.read(p.stdout.fileno(), 1 << 16)
            if not part:
                return
            got.update(part)
            count += len(part)
    reader = threading.Thread(target=read)
    reader.start()
    wait_for(lambda: count > 2_000_000, 60, "no output")
    node = containers(cluster, "burst")[0]["node"]
    cluster.restart(cluster.agents[node])
    reader.join(800)
    err = p.stderr.read().decode()
    assert p.wait(30) == 0, err
    r, want = random.Random(7), hashlib.sha256()
    for _ in range(size // 1_000_000):
        want.update(r.randbytes(1_000_000))
    assert (count, got.hexdigest()) == (size, want.hexdigest()), err[-500:]


def test_a_container_that_never_started_has_a_log_that_says_so(cluster):
    cluster.cli("run", "--name", "bad", "base", "no-such-program", user="alice", check=127)
    s = cluster.session("bad")
    assert s["state"] == "ended" and s["reason"]["text"]
    logs = cluster.cli("logs", "bad", user="alice", check=0)
    assert "no-such-program" in logs.stdout + logs.stderr


# --- 11. one container's death --------------------------------------------------------------------

@pytest.mark.parametrize("how, says", [
    ("kill -9 1", r"sub2.*(signal 9|KILL|exit)"),
])
def test_the_death_of_one_container_ends_the_session(cluster, how, says):
    sid = four(cluster)
    cgroup_pid = container_pid(cluster, sid, "sub2")
    os.kill(cgroup_pid, 9)
    s = cluster.wait_state(sid, "ended")
    assert s["result"] == "failed" and re.search(says, s["reason"]["text"]), s["reason"]


def container_pid(cluster, sid, name):
    """Process 1 of a container, by its cgroup."""
    cid = next(c["id"] for c in containers(cluster, sid) if c["name"] == name)
    for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            cgroup = open(f"/proc/{pid}/cgroup").read()
            words = open(f"/proc/{pid}/cmdline").read()
        except OSError:
            continue
        if cid in cgroup and "muster-init" in words and cluster.tag in cgroup:
            return pid
    raise AssertionError(f"{name} has no process")


def test_a_failing_command_ends_the_session_with_its_code(cluster):
    sid = cluster.create("--size", "4", *MULTI, "--cpus", "2", "--kind", "train", "--on", "all", "base",
                         "--", "sh", "-c", "[ $BACKENDAI_CLUSTER_HOST != sub3 ] || exit 9; sleep 100",
                         user="alice", wait=False)
    s = cluster.wait_state(sid, "ended")
    assert s["result"] == "failed"
    assert "sub3" in s["reason"]["text"] and "9" in s["reason"]["text"], s["reason"]


def test_running_out_of_memory_is_said(cluster):
    sid = cluster.create("--size", "2", *MULTI, "--cpus", "1", "--on", "all", "--kind", "train", "mpi", "--",
                         "sh", "-c", "[ $BACKENDAI_CLUSTER_HOST != sub1 ] || "
                         "exec python3 -c 'x = b\"x\" * (400 << 20)'; sleep 100",
                         user="alice", wait=False)
    s = cluster.wait_state(sid, "ended", seconds=60)
    assert "sub1" in s["reason"]["text"] and "memory" in s["reason"]["text"], s["reason"]


def test_a_killed_monitor_is_a_death_that_is_said(cluster):
    sid = four(cluster)
    cid = next(c["id"] for c in containers(cluster, sid) if c["name"] == "sub1")
    monitors = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_monitor(p, cid)]
    assert len(monitors) == 1
    os.kill(monitors[0], 9)
    s = cluster.wait_state(sid, "ended")
    assert "sub1" in s["reason"]["text"] and "monitor" in s["reason"]["text"], s["reason"]


def is_monitor(pid, cid):
    try:
        words = open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        return False
    return words[0].endswith("conmon") and any(cid in w for w in words)


def test_tolerant_sessions_go_on_without_a_sub(cluster):
    sid = four(cluster, "--on-failure", "tolerant")
    os.kill(container_pid(cluster, sid, "sub3"), 9)
    wait_for(lambda: containers(cluster, sid)[3]["state"] in ("exited", "removed"), 20,
             "sub3 has not exited")
    assert cluster.session(sid)["state"] == "running"
    assert cluster.sh(sid, "ssh sub1 hostname").strip() == "sub1"


# --- 12. lifecycle ------------------------------------------------------------------------------

def test_the_states_of_a_session_are_told_in_order(cluster):
    r = cluster.cli("run", "--name", "life", "base", "true", user="alice", check=0)
    assert r.returncode == 0
    sid = cluster.session("life")["id"]
    _, _, data = cluster.request("GET", "/v1/events?after=0&follow=0", user="alice")
    states = [body.get("state") for body in
              (json.loads(line[5:]).get("body", {}) | {"s": json.loads(line[5:])["subject"]}
               for line in data.decode().splitlines() if line.startswith("data:"))
              if sid in str(body.get("s")) and body.get("state")]
    order = [s for s, _ in itertools.groupby(states)]
    assert order == ["pending", "preparing", "starting", "running", "stopping", "ended"], order


def test_a_time_limit_warns_waits_and_kills(cluster):
    start = time.monotonic()
    sid = cluster.create("--time", "3s", "--grace", "2s", "--kind", "train", "base", "--", "sh", "-c",
                         "trap 'echo warned' TERM; while :; do sleep 0.1; done", user="alice",
                         wait=False)
    s = cluster.wait_state(sid, "ended")
    assert s["result"] == "timeout" and time.monotonic() - start >= 4.5
    assert "warned" in cluster.cli("logs", sid, user="alice", check=0).stdout


@pytest.mark.timeout(180)
def test_a_slow_node_delays_only_its_own_sessions(new_cluster):
    c = new_cluster(nodes=2, manager={"launch-prepare-timeout": "8s", "launch-attempts": "1"})
    c.agents["n2"].stop()
    c.agents["n2"].start(crash="container.after_mount=delay:60s@*")
    c.wait_nodes()
    slow = c.create("--size", "4", *MULTI, "--cpus", "2", "base", user="alice", wait=False)
    c.wait_state(slow, "preparing")
    c.api("POST", "/v1/nodes/n2/drain", {"reason": "slow"})
    time.sleep(1)
    fast = c.cli("run", "--cpus", "1", "--mem", "64M", "base", "true", user="bob", check=0)
    assert fast.returncode == 0
    assert c.session(slow)["state"] != "running"
    s = c.wait_state(slow, "stopping", "ended", seconds=60)
    assert s["reason"]["code"] == "start_timeout", s["reason"]
    c.restart(c.agents["n2"])


# --- pretend GPUs -------------------------------------------------------------------------------

def test_each_container_opens_its_own_gpus_only(cluster):
    sid = cluster.create("--size", "4", *MULTI, "--cpus", "1", "--gpus", "1", "mpi", user="alice")
    script = ("import os, errno\nfor i in range(4):\n"
              "  os.path.exists(f'/dev/nvidia{i}') and print(i, end=' ')\n"
              "print(os.environ['NVIDIA_VISIBLE_DEVICES'], os.environ['CUDA_VISIBLE_DEVICES'])")
    given = []
    for c in containers(cluster, sid):
        out = cluster.exec(f"{sid}/{c['name']}", "python3", "-c", script).split()
        assert len(c["gpus"]) == 1 and len(out) == 3, (c, out)
        given.append((c["node"], c["gpus"][0]))
    assert len(set(given)) == 4

"""Daemons are killed, at named points and between, and started again: nothing is lost, doubled or
left over, and running containers notice nothing."""
import os
import time
import uuid

import pytest

from harness.cluster import ApiError, wait_for
from harness.tiers import some

FOUR = ("--size", "4", "--mode", "multi-node", "--cpus", "2", "--mem", "128M")

# Points that a start of a session passes, and those of an end. The fast tier takes one of each.
MANAGER_START = ["reply.after_commit", "place.after_commit", "barrier.after_commit",
                 "store.before_commit", "store.after_commit"]
MANAGER_END = ["stop.after_commit"]
AGENT_START = ["agent.after_spec", "agent.after_phase", "agent.after_barrier",
               "container.after_mount", "container.after_files", "container.after_create",
               "container.before_start", "container.after_login",
               "net.after_filter", "net.after_link", "net.after_port"]
AGENT_END = ["remove.after_runtime", "remove.after_edge"]
FAST = {"place.after_commit", "barrier.after_commit", "stop.after_commit", "agent.after_spec",
        "agent.after_barrier", "container.after_create", "remove.after_edge"}


def pids(cluster, sid):
    """Every process of the session's containers with its start time."""
    found = {}
    ids = {c["id"] for c in cluster.session(sid)["containers"]}
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            cgroup = open(f"/proc/{pid}/cgroup").read()
            stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if any(i in cgroup for i in ids):
            found[int(pid)] = stat[19]
    return found


def submit(cluster, body, key):
    """Ask for a session until the manager answers, restarting it where it died: as a careful client
    does, with a key. Whatever was answered once must be so the second time."""
    end = time.monotonic() + 60
    while True:
        try:
            return cluster.api("POST", "/v1/sessions", body, user="alice",
                               headers={"Idempotency-Key": key})["id"]
        except OSError:
            assert time.monotonic() < end, "the manager does not come back"
            if not cluster.manager.running():
                cluster.manager.start()
            time.sleep(0.2)


def counting_body(cluster, command="sleep 1"):
    """A train session whose every container adds one line to a file of its own."""
    cluster.cli("volume", "create", "count", user="alice", check=0)
    return {"image": "base", "kind": "train", "size": 4, "mode": "multi-node", "cpus": 2,
            "mem": "128M", "on": "all", "mounts": [{"volume": "count", "path": "/count"}],
            "command": ["sh", "-c", f"echo x >>/count/$BACKENDAI_CLUSTER_HOST; {command}"]}


def counts(cluster):
    path = next(v["path"] for v in cluster.api("GET", "/v1/volumes", user="alice")["volumes"]
                if v["name"] == "count")
    return {f: len(open(f"{path}/{f}").read().split()) for f in sorted(os.listdir(path))}


def back(cluster, daemon):
    """The crash point was passed and killed the daemon; now it runs again, without one."""
    assert daemon.wait_dead(60) == -9, daemon.tail()
    daemon.start()
    cluster.wait_manager()
    cluster.wait_nodes()


def with_crash(cluster, daemon, point):
    daemon.stop()
    daemon.start(crash=f"{point}=kill")


ONCE = {"main1": 1, "sub1": 1, "sub2": 1, "sub3": 1}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", some(MANAGER_START, FAST))
def test_a_manager_killed_at_a_point_of_the_start_loses_nothing(cluster, point):
    body = counting_body(cluster)
    with_crash(cluster, cluster.manager, point)
    sid = submit(cluster, body, str(uuid.uuid4()))
    if cluster.manager.running():  # it may have been restarted by submit already
        try:
            cluster.manager.wait_dead(20)
        except AssertionError:
            assert cluster.manager.running()
    if not cluster.manager.running():
        cluster.manager.start()
    cluster.wait_manager()
    s = cluster.wait_state(sid, "ended", seconds=90)
    assert len(cluster.sessions(ended=True)) >= 1
    assert s["result"] == "succeeded", s["reason"]
    assert counts(cluster) == ONCE


@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", some(AGENT_START, FAST))
def test_an_agent_killed_at_a_point_of_the_start_loses_nothing(cluster, point):
    body = counting_body(cluster)
    agent = cluster.agents["n2"]
    with_crash(cluster, agent, point)
    cluster.wait_nodes()
    sid = submit(cluster, body, str(uuid.uuid4()))
    back(cluster, agent)
    s = cluster.wait_state(sid, "ended", seconds=90)
    assert s["result"] == "succeeded", s["reason"]
    assert counts(cluster) == ONCE


@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", some(MANAGER_END + AGENT_END, FAST))
def test_a_daemon_killed_at_a_point_of_the_end_still_ends_it(cluster, point):
    sid = cluster.create(*FOUR, "base", user="alice")
    daemon = cluster.manager if point in MANAGER_END else cluster.agents["n2"]
    with_crash(cluster, daemon, point)
    cluster.wait_manager()
    cluster.wait_nodes()
    try:
        cluster.api("POST", f"/v1/sessions/{sid}/stop", {"now": True}, user="alice")
    except OSError:
        assert point in MANAGER_END
    back(cluster, daemon)
    assert cluster.wait_state(sid, "ended", seconds=60)["result"] == "cancelled"
    cluster.wait_free()


@pytest.mark.parametrize("who", ["manager", "n1", "n2", "all"])
def test_killed_daemons_change_nothing_for_a_running_session(cluster, who):
    sid = cluster.create(*FOUR, "base", "--", "sh", "-c",
                         "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done", user="alice")
    before = pids(cluster, sid)
    assert len(before) >= 8
    daemons = cluster.daemons if who == "all" else [
        cluster.manager if who == "manager" else cluster.agents[who]]
    follower = cluster.popen("logs", "-f", sid, user="alice")
    time.sleep(0.5)
    cluster.restart(*daemons)
    after = pids(cluster, sid)
    kept = {p: t for p, t in before.items() if open_exe(p) != "sleep"}
    assert kept.items() <= after.items()
    assert cluster.sh(sid, "ssh sub3 hostname").strip() == "sub3"
    s = cluster.session(sid)
    assert s["state"] == "running" and s["attempt"] == 1
    time.sleep(1)
    cluster.cli("stop", "--now", sid, user="alice", check=0)
    out, err = follower.communicate(timeout=30)
    lines = [int(x) for x in out.split()]
    assert lines == list(range(1, len(lines) + 1)) and len(lines) > 20, err


def open_exe(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return "sleep"  # a process of the loop that has ended


@pytest.mark.timeout(180)
def test_an_agent_that_is_away_keeps_its_sessions_and_gets_no_new_ones(cluster):
    debug = cluster.create(*FOUR, "base", user="alice")
    cluster.agents["n2"].kill9()
    wait_for(lambda: cluster.nodes()["n2"]["state"] == "unreachable", 20, "n2 is not unreachable")
    time.sleep(4)  # together longer than the fence: a debug session stays
    assert cluster.nodes()["n2"]["state"] == "unreachable"
    assert cluster.nodes()["n2"]["used"]["cpus"] == 4
    s = cluster.session(debug)
    assert s["state"] == "running"
    assert "unreachable" in cluster.cli("show", debug, user="alice", check=0).stdout
    cluster.agents["n2"].start()
    cluster.wait_nodes()
    assert cluster.sh(f"{debug}/sub3", "hostname").strip() == "sub3"


@pytest.mark.timeout(180)
def test_a_cut_off_agent_ends_its_train_sessions_before_the_node_is_lost(new_cluster):
    c = new_cluster(nodes=2)
    c.cli("volume", "create", "beat", user="alice", check=0)
    path = c.api("GET", "/v1/volumes", user="alice")["volumes"][0]["path"]
    sid = c.create(*FOUR, "--kind", "train", "--on", "all", "--volume", "beat:/beat", "base", "--",
                   "sh", "-c", "while :; do date +%s.%N >/beat/$BACKENDAI_CLUSTER_HOST; sleep 0.1; done",
                   user="alice")
    on_n2 = [x["name"] for x in c.session(sid)["containers"] if x["node"] == "n2"]
    c.run_in("hub", "ip", "link", "set", "mgmt2", "down")
    wait_for(lambda: c.nodes()["n2"]["state"] == "lost", 40, "n2 is not lost")
    lost = time.time()
    lasts = {n: float(open(f"{path}/{n}").read() or 0) for n in on_n2}
    time.sleep(1)
    assert {n: float(open(f"{path}/{n}").read() or 0) for n in on_n2} == lasts
    assert all(last < lost for last in lasts.values())
    assert c.wait_state(sid, "ended", seconds=60)["result"] in ("lost", "failed")
    c.run_in("hub", "ip", "link", "set", "mgmt2", "up")
    c.wait_nodes()


@pytest.mark.timeout(180)
def test_an_empty_store_quarantines_what_runs_and_kills_nothing(new_cluster):
    c = new_cluster(nodes=1)
    sid = c.create("base", "--", "sleep", "1000", user="alice")
    before = pids(c, sid)
    c.manager.stop()
    for name in ("muster.db", "muster.db-wal", "muster.db-shm"):
        (c.dir / "manager" / name).unlink(missing_ok=True)
    c.manager.start()
    c.wait_manager()
    c.join(c.agents["n1"])  # nobody has an identity in a store that is empty
    wait_for(lambda: any(sid in q for n in c.nodes().values() for q in n["quarantined"]), 30,
             lambda: f"not quarantined: {c.nodes()}\n{c.agents['n1'].tail(10)}")
    after = {}
    for pid, start in before.items():
        stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        after[pid] = stat[19]
    assert after == before
    c.abandoned = True


@pytest.mark.timeout(300)
@pytest.mark.full
def test_fifty_sessions_leave_everything_as_it_was(cluster):
    def memory(daemon):
        text = open(f"/proc/{daemon.pid}/status").read()
        return int(text.split("RssAnon:")[1].split()[0])
    cluster.cli("run", "base", "true", user="alice", check=0)
    for i in range(50):
        r = cluster.cli("run", "base", "echo", str(i), user="alice", check=0)
        assert r.stdout == f"{i}\n"
    assert len([s for s in cluster.sessions(ended=True) if s["result"] == "succeeded"]) >= 50
    assert memory(cluster.manager) < 400_000  # kB; with the sanitizer's own


def test_a_refused_session_is_not_there_after_a_restart_either(cluster):
    with pytest.raises(ApiError):
        cluster.api("POST", "/v1/sessions", {"image": "base", "cpus": 100}, user="alice")
    count = len(cluster.sessions(ended=True))
    cluster.restart(cluster.manager)
    assert len(cluster.sessions(ended=True)) == count

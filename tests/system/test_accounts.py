"""Accounts: who may have what, and who leaves for whom. What must hold of every decision is in
tests/sim."""
import json

import pytest

from harness.cluster import wait_for

SMALL = ("--cpus", "0.5", "--mem", "64M")


def why(cluster, sid, user):
    return json.loads(cluster.cli("why", sid, "-o", "json", user=user, check=0).stdout)


@pytest.fixture
def shared(new_cluster):
    """Four GPUs, two for each of two accounts by right; nobody is left alone for long."""
    c = new_cluster(nodes=2, gpu="fake:h100:2")
    c.cli("policy", "set", "min_run=0s", "spot_run=0s", "preempt_grace=2s", check=0)
    for name, user in (("red", "alice"), ("blue", "bob")):
        c.cli("account", "create", "--user", user, "--quota", "h100:0/2/-", name, check=0)
    return c


def gpus(cluster, count, user, *options, wait=True, kind="train"):
    return cluster.create("--kind", kind, *SMALL, "--gpus", str(count), *options, "base", "sleep", "1000", user=user,
                          wait=wait)


def test_accounts_are_made_changed_and_removed(new_cluster):
    c = new_cluster(nodes=1)
    c.cli("account", "create", "--shares", "3", "--quota", "h100:1/2.5/8", "--quota", "default/*:0/4/-", "--user", "alice",
          "lab", check=0)
    c.cli("account", "create", "--parent", "lab", "--user-gpus", "2", "--user-gpu-hours", "100", "--window", "14", "vision",
          check=0)
    c.cli("account", "set", "--user", "bob", "lab", check=0)
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    lab = json.loads(c.cli("account", "show", "lab", "-o", "json", check=0).stdout)
    assert lab["users"] == ["alice", "bob"] and lab["shares"] == 3 and lab["parent"] is None
    assert lab["quotas"] == [
        {"group": None, "gpu_model": "h100", "guarantee": 1, "deserved": 2.5, "max": 8},
        {"group": "default", "gpu_model": None, "guarantee": 0, "deserved": 4, "max": None}], lab
    assert "h100:1/2.5/8 default/*:0/4/-" in c.cli("account", "ls", check=0).stdout
    assert "Each: GPU-hours  100" in c.cli("account", "show", "vision", check=0).stdout
    sid = c.create(*SMALL, "base", user="alice")
    assert c.session(sid)["account"] == "lab"
    for words, text in (
            (("rm", "lab"), "account 'lab' has 'vision' below it"),
            (("set", "--parent", "vision", "lab"), "account 'lab' would be below itself"),
            (("set", "--user", "nobody", "lab"), "there is no user 'nobody'"),
            (("set", "--quota", "h100:3/2/8", "lab"), "'guarantee' is more than 'deserved'"),
            (("set", "--quota", "h100:3/2", "lab"), "must be [GROUP/]MODEL:GUARANTEED/DESERVED/MOST"),
            (("create", "lab"), "account 'lab' is there already"),
            (("show", "lob"), "there is no account 'lob'")):
        r = c.cli("account", *words)
        assert r.returncode in (1, 2) and text in r.stderr, (words, r.stderr)
    assert "the role 'admin'" in c.cli("account", "set", "--shares", "2", "lab", user="alice", check=1).stderr
    r = c.cli("create", "--account", "vision", *SMALL, "base", user="alice", check=1)
    assert "you do not work for account 'vision'" in r.stderr
    c.cli("account", "rm", "vision", check=0)
    assert "account 'lab' has sessions" in c.cli("account", "rm", "lab", check=1).stderr
    c.cli("stop", "--now", sid, user="alice", check=0)
    c.wait_state(sid, "ended")
    c.cli("account", "rm", "lab", check=0)
    assert json.loads(c.cli("account", "ls", "-o", "json", check=0).stdout)["accounts"] == []


def test_bounds_keep_a_session_waiting_and_say_so(new_cluster):
    c = new_cluster(nodes=2, gpu="fake:h100:2")
    c.cli("account", "create", "--user", "alice", "--quota", "h100:0/1/2", "--user-sessions", "3", "red", check=0)
    first = gpus(c, 2, "alice")
    over = gpus(c, 1, "alice", wait=False)
    found = why(c, over, "alice")
    assert (found["code"], found["slurm"]) == ("quota_max", "AssocGrpGRES"), found
    assert found["message"] == "with it the account would have more GPUs than its maximum (account 'red')"
    debug = gpus(c, 1, "alice", "--kind", "debug", wait=False)  # the one of its right is for debug
    found = why(c, debug, "alice")
    assert found["code"] == "quota_max"
    c.cli("account", "set", "--quota", "h100:0/1/8", "red", check=0)
    c.wait_state(over, "running")
    found = why(c, debug, "alice")
    assert found["code"] == "user_sessions" or c.session(debug)["state"] == "running", found
    c.cli("stop", "--now", first, user="alice", check=0)
    c.wait_state(debug, "running")
    second = gpus(c, 1, "alice", "--kind", "debug", wait=False)
    assert why(c, second, "alice")["code"] == "quota_deserved"


def test_who_borrows_leaves_for_who_has_a_right(shared):
    c = shared
    own = gpus(c, 2, "bob")
    borrowed = gpus(c, 2, "bob")
    debug = gpus(c, 1, "alice", wait=False, kind="debug")
    again = gpus(c, 1, "alice", wait=False)
    c.wait_state(debug, "running")
    c.wait_state(again, "running")
    s = c.wait_state(borrowed, "ended")
    assert (s["result"], s["reason"]["code"]) == ("preempted", "preempted"), s
    nums = {c.session(debug)["num"], c.session(again)["num"]}
    assert s["leaves_for"] in nums and "has a right to" in s["reason"]["text"], s
    assert c.session(own)["state"] == "running"
    # Nobody is left that borrows: the next one of blue waits.
    more = gpus(c, 1, "bob", wait=False)
    assert c.session(more)["state"] == "pending"
    assert c.session(debug)["state"] == "running"


def test_a_spot_session_leaves_first_and_may_wait_again(shared):
    c = shared
    spot = gpus(c, 2, "alice", "--spot", "--requeue")
    own = gpus(c, 2, "bob")
    mine = gpus(c, 2, "alice", wait=False)
    found = why(c, mine, "alice")
    assert found["code"] == "preempting" and "leave for it" in found["message"], found
    c.wait_state(mine, "running")
    s = wait_for(lambda: c.session(spot)["state"] == "pending" and c.session(spot), 20, "it does not wait again")
    assert s["leaves_for"] is None and s["spot"]
    assert c.session(own)["state"] == "running"
    c.cli("stop", "--now", own, user="bob", check=0)
    c.wait_state(spot, "running")
    for kind in ("--spot", "--requeue"):
        r = c.cli("create", "--kind", "debug", kind, *SMALL, "base", user="alice", check=1)
        assert "a 'debug' session never leaves for others" in r.stderr


def test_a_manager_killed_while_somebody_leaves_goes_on(shared):
    c = shared
    c.cli("policy", "set", "preempt_grace=3s", check=0)
    gpus(c, 2, "bob")
    borrowed = gpus(c, 2, "bob")
    mine = gpus(c, 2, "alice", wait=False)
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    assert c.wait_state(borrowed, "ended")["result"] == "preempted"
    c.wait_state(mine, "running")


def test_the_points_are_told_and_add_up(new_cluster):
    c = new_cluster(nodes=1, gpu="fake:h100:1")
    c.cli("account", "create", "--user", "alice", "--user", "bob", "red", check=0)
    first = gpus(c, 1, "alice")
    c.cli("exec", first, "sleep", "1.5", user="alice", check=0)
    low = gpus(c, 1, "alice", "--qos", "low", "--nice", "100", "--time", "1h", wait=False)
    other = gpus(c, 1, "bob", "--time", "9h", wait=False)
    queue = json.loads(c.cli("prio", "-o", "json", check=0).stdout)["queue"]
    assert [s["num"] for s in queue] == [c.session(s)["num"] for s in (other, low)], queue
    for s in queue:
        assert s["priority"] == sum(s["points"].values()), s
    assert [s["qos"] for s in queue] == ["normal", "low"]
    assert queue[0]["points"]["fair"] > queue[1]["points"]["fair"]  # bob has had nothing
    assert queue[1]["points"]["nice"] == -100
    assert "for operators" in c.cli("create", "--qos", "high", *SMALL, "base", user="alice", check=1).stderr
    c.cli("stop", "--now", first, user="alice", check=0)
    c.wait_state(other, "running")


def test_use_is_kept_and_counts(new_cluster):
    c = new_cluster(nodes=1, gpu="fake:h100:2")
    c.cli("account", "create", "--user", "alice", "--user-gpu-hours", "0", "red", check=0)
    sid = c.create(*SMALL, "--gpus", "1", "base", user="alice", wait=False)
    assert why(c, sid, "alice")["code"] == "user_gpu_hours"
    c.cli("account", "set", "--user-gpu-hours", "none", "red", check=0)
    c.wait_state(sid, "running")
    wait_for(lambda: c.cli("exec", sid, "sleep", "1.5", user="alice").returncode == 0, 20, "exec fails")
    c.cli("stop", "--now", sid, user="alice", check=0)
    c.wait_state(sid, "ended")
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    use, = json.loads(c.cli("account", "show", "red", "-o", "json", check=0).stdout)["use"]
    assert use["user"] == "alice" and 1 <= use["gpu_seconds_in_window"] <= 60, use
    assert use["gpu_seconds"] in (use["gpu_seconds_in_window"], use["gpu_seconds_in_window"] - 1), use

"""The queue as its users meet it: who starts, who waits, until when, and what is said of it. What must hold
of every decision is in tests/sim."""
import calendar
import json
import time

CONTAINER = ("--mem", "64M", "base")


def usec(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def why(cluster, sid, user="alice"):
    return json.loads(cluster.cli("why", sid, "-o", "json", user=user, check=0).stdout)


def busy(cluster):
    """All of one node, for an hour at most; when that is over."""
    sid = cluster.create("--cpus", "4", "--time", "1h", *CONTAINER, user="bob")
    return sid, usec(cluster.session(sid)["started"]) + 3600


def test_what_waits_is_planned_and_small_work_fills_the_time_until_then(cluster):
    first, end = busy(cluster)
    wide = cluster.create("--size", "2", "--cpus", "4", "--time", "10m", *CONTAINER, user="alice", wait=False)
    session = cluster.session(wide)
    assert session["state"] == "pending" and session["reason"]["code"] == "resources"
    assert session["position"] == 1 and abs(usec(session["planned_start"]) - end) <= 2
    text = cluster.cli("why", wide, user="alice", check=0).stdout
    assert "planned to start at" in text and "0 sessions before it" in text, text

    # There is room on the other node: for who is over by then, and for nobody else.
    long = cluster.create("--cpus", "2", "--time", "2h", *CONTAINER, user="alice", wait=False)
    short = cluster.create("--cpus", "2", "--time", "50m", *CONTAINER, user="alice")
    assert cluster.session(short)["state"] == "running"
    found = why(cluster, long)
    assert found["code"] == "priority" and found["blocked_by"] == session["num"], found
    assert found["message"] == (f"there is room for 2 CPUs, 64 MiB, but session {session['num']} needs it "
                                "before this one would be over")
    assert abs(usec(why(cluster, wide)["planned_start"]) - end) <= 2  # nothing has delayed it

    # Without the wide one the long one may run.
    cluster.cli("stop", wide, user="alice", check=0)
    cluster.wait_state(long, "running")
    cluster.cli("stop", "--now", first, user="bob", check=0)


def test_a_dry_run_says_when_it_would_start(cluster):
    _, end = busy(cluster)
    ask = ("create", "--dry-run", "--size", "2", "--cpus", "4", "--time", "10m")
    found = json.loads(cluster.cli(*ask, "-o", "json", *CONTAINER, user="alice", check=0).stdout)
    assert found["possible"] and not found["fits"] and found["largest"] == 1
    assert abs(usec(found["planned_start"]) - end) <= 2
    assert "  it would start at " in cluster.cli(*ask, *CONTAINER, user="alice", check=0).stdout
    assert cluster.sessions() and all(s["owner"] == "bob" for s in cluster.sessions())


def test_what_has_no_end_cannot_be_planned_around(cluster):
    cluster.create("--cpus", "4", *CONTAINER, user="bob")
    wide = cluster.create("--size", "2", "--cpus", "4", *CONTAINER, user="alice", wait=False)
    found = why(cluster, wide)
    assert found["code"] == "resources" and found["planned_start"] is None and found["position"] == 1


def test_a_restarted_manager_decides_the_same(new_cluster):
    c = new_cluster(nodes=2)
    _, end = busy(c)
    wide = c.create("--size", "2", "--cpus", "4", "--time", "10m", *CONTAINER, user="alice", wait=False)
    long = c.create("--cpus", "2", "--time", "2h", *CONTAINER, user="alice", wait=False)
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    assert abs(usec(why(c, wide)["planned_start"]) - end) <= 2
    assert why(c, long)["code"] == "priority" and c.session(long)["state"] == "pending"

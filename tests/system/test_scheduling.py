"""The queue as its users meet it: who starts, who waits, until when, and what is said of it. What must hold
of every decision is in tests/sim."""
import calendar
import json
import re
import subprocess
import time
from xml.etree import ElementTree

import pytest

from harness.cluster import BUILD, wait_for

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
    cluster.create("--cpus", "4", *CONTAINER, "sleep", "1000", user="bob")
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


# --- hold, begin, deadline, nice --------------------------------------------------------------


def test_a_held_session_waits_for_its_release(cluster):
    sid = cluster.create("--hold", *CONTAINER, user="alice", wait=False)
    found = why(cluster, sid)
    assert found["code"] == "held" and found["slurm"] == "JobHeldUser" and "held by its owner" in found["message"]
    cluster.cli("release", sid, user="alice", check=0)
    cluster.wait_state(sid, "running")
    r = cluster.cli("hold", sid, user="alice", check=1)
    assert "the session is running; only one that waits can be held" in r.stderr


def test_what_an_operator_holds_only_an_operator_releases(cluster):
    sid = cluster.create("--hold", *CONTAINER, user="alice", wait=False)
    cluster.cli("hold", sid, check=0)
    assert why(cluster, sid)["slurm"] == "JobHeldAdmin"
    r = cluster.cli("release", sid, user="alice", check=1)
    assert "an operator holds the session" in r.stderr
    cluster.cli("release", sid, check=0)
    cluster.wait_state(sid, "running")


def test_it_does_not_start_before_it_should(cluster):
    sid = cluster.create("--begin", "3s", *CONTAINER, user="alice", wait=False)
    begin = usec(cluster.session(sid)["begin"])
    found = why(cluster, sid)
    assert found["code"] == "begin_time" and "not to be started before" in found["message"]
    session = cluster.wait_state(sid, "running")
    assert begin <= usec(session["placed"]) <= begin + 2


def test_a_deadline_ends_what_runs_and_what_could_not_be_over(cluster):
    r = cluster.cli("create", "--deadline", "30m", "--time", "1h", *CONTAINER, user="alice", check=1)
    assert "'finish_by' is too soon" in r.stderr
    runs = cluster.create("--deadline", "4s", *CONTAINER, user="alice")
    assert abs(usec(cluster.session(runs)["deadline"]) - usec(cluster.session(runs)["finish_by"])) <= 1
    waits = cluster.create("--deadline", "1h3s", "--time", "1h", "--hold", *CONTAINER, user="alice", wait=False)
    s = cluster.wait_state(runs, "ended")
    assert s["result"] == "timeout" and "it had to be over by" in s["reason"]["text"]
    s = cluster.wait_state(waits, "ended")
    assert s["result"] == "cancelled" and s["reason"]["code"] == "finish_by", s["reason"]


def test_points_make_the_order_and_are_shown(cluster):
    full = cluster.create("--size", "2", "--cpus", "4", *CONTAINER, user="bob")
    small, nice, large = (cluster.create(*words, *CONTAINER, user="alice", wait=False) for words in (
        ("--cpus", "1", "--time", "1h"), ("--cpus", "1", "--time", "1h", "--nice", "500"),
        ("--cpus", "2", "--time", "1h")))
    order = [cluster.session(s)["num"] for s in (small, nice, large)]
    body = json.loads(cluster.cli("prio", "-o", "json", user="alice", check=0).stdout)
    queue = body["queue"]
    assert [q["num"] for q in queue] == order
    for q in queue:
        assert q["priority"] == sum(q["points"].values())
    assert queue[0]["priority"] - queue[1]["priority"] == pytest.approx(500, abs=5)
    assert queue[0]["points"]["work"] - queue[2]["points"]["work"] == 1000  # half the work
    head, *rows = cluster.cli("prio", user="alice", check=0).stdout.splitlines()
    assert head.split()[:3] == ["POS", "NUM", "NAME"] and len(rows) == 3
    one = cluster.cli("prio", nice, user="alice", check=0).stdout.splitlines()
    assert len(one) == 2 and one[1].split()[1] == str(order[1])
    # Others see how much is before them, not what it is called.
    others = json.loads(cluster.cli("prio", "-o", "json", user="bob", check=0).stdout)["queue"]
    assert [q["num"] for q in others] == order and all(q["name"] is None for q in others)
    r = cluster.cli("create", "--nice", "-1", *CONTAINER, user="alice", check=1)
    assert "'nice' below 0 is for operators" in r.stderr
    r = cluster.cli("prio", full, user="bob", check=1)
    assert "the session is running; only those that wait have a priority" in r.stderr


def test_the_plan_is_told_and_drawn(cluster, tmp_path):
    first, end = busy(cluster)
    wide = cluster.create("--size", "2", "--cpus", "4", "--time", "10m", *CONTAINER, user="alice", wait=False)
    plan = json.loads(cluster.cli("plan", "-o", "json", check=0).stdout)
    nums = {cluster.session(s)["num"]: s for s in (first, wide)}
    (runs,), (planned,) = plan["running"], plan["planned"]
    assert nums[runs["num"]] == first and abs(usec(runs["end"]) - end) <= 1
    assert nums[planned["num"]] == wide and abs(usec(planned["start"]) - end) <= 2
    assert {p["node"] for p in planned["places"]} == {"n1", "n2"}
    text = cluster.cli("plan", check=0).stdout
    # What there is of other sessions' estimates and limits stands below.
    assert [line.split()[2] for line in text.splitlines()[1:4]] == ["ends", "starts", "ends"], text
    assert all(re.match("(estimates|time limits): ", line) for line in text.splitlines()[4:]), text
    svg = tmp_path / "plan.svg"
    cluster.cli("plan", "--svg", str(svg), check=0)
    root = ElementTree.parse(svg).getroot()
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) >= 2 and any(t.startswith(f"{planned['num']} ") for t in titles), titles


# --- networks ---------------------------------------------------------------------------------


def test_who_finds_no_network_free_waits_for_one(new_cluster):
    c = new_cluster(nodes=1, manager={"network-overlay": "10.77.0.0/20"})  # four
    small = ("--cpus", "0.1", *CONTAINER)
    first = [c.create(*small, user="alice") for _ in range(4)]
    fifth = c.create(*small, user="alice", wait=False)
    s = wait_for(lambda: c.session(fifth)["reason"]["code"] == "no_network" and c.session(fifth), 10, lambda: c.session(fifth))
    assert s["state"] == "pending" and "all 4 session networks" in s["reason"]["text"], s
    c.cli("stop", "--now", first[0], user="alice", check=0)
    c.wait_state(fifth, "running")


# --- dependencies -----------------------------------------------------------------------------


def test_sessions_start_after_others(cluster):
    def num(sid):
        return cluster.session(sid)["num"]
    hold = cluster.create("--hold", "--name", "line", *CONTAINER, "true", user="alice", wait=False)
    ok = cluster.create("--dependency", f"afterok:{num(hold)}", *CONTAINER, "true", user="alice", wait=False)
    bad = cluster.create("--dependency", f"afternotok:{num(ok)}", *CONTAINER, "true", user="alice", wait=False)
    last = cluster.create("--dependency", f"afterany:{num(bad)}", *CONTAINER, "true", user="alice", wait=False)
    single = cluster.create("--dependency", "singleton", "--name", "line", *CONTAINER, "true", user="alice", wait=False)
    found = why(cluster, ok)
    assert (found["code"], found["slurm"]) == ("dependency", "Dependency"), found
    assert found["message"] == f"it is to start afterok:{num(hold)}"
    assert {cluster.session(s)["state"] for s in (ok, bad, last, single)} == {"pending"}
    cluster.cli("release", hold, user="alice", check=0)
    for sid in (hold, ok, single, last):
        assert cluster.wait_state(sid, "ended")["result"] == "succeeded"
    s = cluster.wait_state(bad, "ended")
    assert (s["result"], s["reason"]["code"]) == ("cancelled", "dependency_never"), s
    assert f"it was to start afternotok:{num(ok)}, which cannot be any more" == s["reason"]["text"]
    assert cluster.session(ok)["started"] > cluster.session(hold)["ended"]


def test_a_dependency_is_on_what_one_may_see(cluster):
    of_bob = cluster.session(cluster.create(*CONTAINER, user="bob"))["num"]
    for spec, text in ((f"afterok:{of_bob}", f"there is no session '{of_bob}'"), ("afterok:99999999", "there is no session"),
                       ("afterok", "a dependency is like after:12"), ("soon:1", "a dependency is like after:12")):
        r = cluster.cli("create", "--dependency", spec, *CONTAINER, user="alice")
        assert r.returncode in (1, 2) and text in r.stderr, (spec, r.stderr)


def test_dependencies_outlive_a_restart(new_cluster):
    c = new_cluster(nodes=1)
    first = c.create(*CONTAINER, "sleep", "2", user="alice")
    then = c.create("--dependency", f"afterok:{c.session(first)['num']}", *CONTAINER, "true", user="alice", wait=False)
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    assert c.wait_state(then, "ended")["result"] == "succeeded"
    assert c.session(then)["started"] > c.session(first)["ended"]


# --- trying again -----------------------------------------------------------------------------


def test_a_session_is_tried_again_only_when_that_was_asked(cluster):
    once = cluster.create(*CONTAINER, "false", user="alice", wait=False)
    assert cluster.wait_state(once, "ended")["retried"] == 0
    sid = cluster.create("--retry", "2:on=exit", *CONTAINER, "sh", "-c", "exit 3", user="alice", wait=False)
    s = cluster.wait_state(sid, "ended")
    assert (s["result"], s["retried"], s["exit_code"]) == ("failed", 2, 3), s
    other = cluster.create("--retry", "2:on=timeout", *CONTAINER, "false", user="alice", wait=False)
    assert cluster.wait_state(other, "ended")["retried"] == 0
    stopped = cluster.create("--retry", "2", *CONTAINER, "sleep", "1000", user="alice")
    cluster.cli("stop", "--now", stopped, user="alice", check=0)
    assert cluster.wait_state(stopped, "ended")["result"] == "cancelled"
    for words, text in ((("--retry", "2:on=sun"), "'sun' is not node-fail, timeout or exit"), (("--retry", "x"), "must be a number"),
                        (("--kind", "debug", "--retry", "1"), "'retry' is for 'train' sessions")):
        r = cluster.cli("create", *words, *CONTAINER, "true", user="alice")
        assert r.returncode in (1, 2) and text in r.stderr, r.stderr


# --- leases -----------------------------------------------------------------------------------


def test_a_lease_is_enforced_only_when_somebody_waits_and_not_unannounced(new_cluster):
    c = new_cluster(nodes=1)
    c.cli("policy", "set", "lease=7h", "lease_notice=3s", check=0)
    default = c.create("--kind", "debug", "--cpus", "0.5", *CONTAINER, user="alice")
    assert c.session(default)["time_limit_usec"] == 7 * 3600 * 1000000
    c.cli("stop", "--now", default, user="alice", check=0)
    c.wait_state(default, "ended")
    debug = c.create("--kind", "debug", "--cpus", "4", "--time", "1s", *CONTAINER, user="alice")
    time.sleep(4)
    assert c.session(debug)["state"] == "running"  # nobody waits
    waits = c.create("--cpus", "4", *CONTAINER, user="bob", wait=False)
    s = wait_for(lambda: c.session(debug)["lease_notice"] and c.session(debug), 20, "nothing is said")
    assert s["state"] == "running" and "unless it is extended" in s["reason"]["text"], s["reason"]
    r = c.cli("extend", "--time", "1h", debug, user="alice", check=1)  # bob would wait longer
    assert f"session {c.session(waits)['num']}, planned for" in r.stderr and "would start later" in r.stderr, r.stderr
    s = c.wait_state(debug, "ended")
    assert (s["result"], s["reason"]["code"]) == ("timeout", "lease"), s
    c.wait_state(waits, "running")


def test_an_extension_that_moves_no_planned_start_is_granted_at_once(cluster):
    debug = cluster.create("--kind", "debug", "--cpus", "1", "--time", "1h", *CONTAINER, user="alice")
    r = cluster.cli("extend", "--time", "2h", debug, user="alice", check=0)
    assert r.stdout.startswith("until ")
    assert cluster.session(debug)["time_limit_usec"] == 3 * 3600 * 1000000
    train = cluster.create("--cpus", "1", "--time", "1h", *CONTAINER, "sleep", "1000", user="alice")
    assert "only operators extend 'train' sessions" in cluster.cli("extend", train, user="alice", check=1).stderr
    cluster.cli("extend", train, check=0)
    assert cluster.session(train)["time_limit_usec"] == 3 * 3600 * 1000000
    # One that would move a planned start is granted when that is said to be all right.
    wide = cluster.create("--size", "2", "--cpus", "4", "--time", "1h", *CONTAINER, user="bob", wait=False)
    before = usec(cluster.session(wide)["planned_start"])
    assert "would start later" in cluster.cli("extend", "--time", "5h", debug, user="alice", check=1).stderr
    cluster.cli("extend", "--force", "--time", "5h", debug, user="alice", check=0)
    assert usec(cluster.session(wide)["planned_start"]) > before + 3600


# --- maintenance ------------------------------------------------------------------------------


def test_a_node_takes_only_what_is_over_before_its_drain(new_cluster):
    c = new_cluster(nodes=1)
    c.cli("node", "drain", "--by", "1h", "--reason", "disks", "n1", check=0)
    assert "up, draining" in c.cli("node", "ls", check=0).stdout
    short = c.create("--cpus", "1", "--time", "30m", *CONTAINER, user="alice")
    long = c.create("--cpus", "1", "--time", "2h", *CONTAINER, user="alice", wait=False)
    endless = c.create("--cpus", "1", *CONTAINER, "sleep", "1000", user="alice", wait=False)
    found = why(c, long)
    assert (found["code"], found["slurm"]) == ("maintenance", "ReqNodeNotAvail") and "less --time may do" in found["message"]
    assert {"time_limit_usec": 30 * 60 * 1000000} in [r["change"] for r in found["what_if"] if r["now"]], found["what_if"]
    assert "since it has no time limit" in why(c, endless)["message"]
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    assert why(c, long)["code"] == "maintenance"
    c.cli("node", "resume", "n1", check=0)
    c.wait_state(long, "running")
    c.cli("node", "drain", "--by", "2s", "n1", check=0)
    wait_for(lambda: c.nodes()["n1"]["drained"], 20, "it is not drained")
    assert c.session(short)["state"] == "running"


# --- what else would start --------------------------------------------------------------------


def options_of(change):
    """The options that make a request this other one."""
    names = {"size": "--size", "gpus": "--gpus", "gpu_model": "--gpu-model", "mode": "--mode"}
    (key, value), = change.items()
    return ("--time", f"{value // 1000000}s") if key == "time_limit_usec" else (names[key], str(value))


def test_what_is_said_to_start_earlier_does(cluster):
    first, end = busy(cluster)
    ask = {"--size": "2", "--cpus": "4", "--time": "10m"}
    def words(options):
        return [w for pair in options.items() for w in pair]
    wide = cluster.create(*words(ask), *CONTAINER, user="alice", wait=False)
    rows = why(cluster, wide)["what_if"]
    assert {"size": 1} in [r["change"] for r in rows], rows
    text = cluster.cli("why", wide, user="alice", check=0).stdout
    assert "what would start earlier" in text and "    --size 1                 now\n" in text, text
    for row in rows:
        cluster.cli("stop", wide, user="alice", check=0)
        option, value = options_of(row["change"])
        sid = cluster.create(*words(ask | {option: value}), *CONTAINER, user="alice", wait=row["now"])
        if row["now"]:
            assert cluster.session(sid)["state"] == "running"
        else:
            assert abs(usec(cluster.session(sid)["planned_start"]) - usec(row["start"])) <= 1
        cluster.cli("stop", "--now", sid, user="alice", check=0)
        cluster.wait_state(sid, "ended")
    cluster.cli("stop", "--now", first, user="bob", check=0)


# --- what an administrator sets while it runs -------------------------------------------------


def test_the_policy_is_changed_while_it_runs_and_stays(new_cluster):
    c = new_cluster(nodes=2)
    assert re.search(r"^reservations +16$", c.cli("policy", "show", check=0).stdout, re.M)
    _, end = busy(c)
    wide = c.create("--size", "2", "--cpus", "4", "--time", "10m", *CONTAINER, user="alice", wait=False)
    long = c.create("--cpus", "2", "--time", "2h", *CONTAINER, user="alice", wait=False)
    assert c.session(long)["state"] == "pending"
    c.cli("policy", "set", "reservations=0", "patience=2d", check=0)  # now nobody is waited for
    c.wait_state(long, "running")
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    shown = c.cli("policy", "show", check=0).stdout
    assert re.search(r"^reservations +0$", shown, re.M) and re.search(r"^patience +2d$", shown, re.M)
    assert c.session(wide)["planned_start"] is None
    for words, text in ((("reservations=1001",), "'reservations' must be at most 1000"), (("resrvations=1",), "there is no 'resrvations'"),
                        (("reservations=x",), "'reservations' must be a whole number"), (("reservations",), "must be KEY=VALUE")):
        assert text in c.cli("policy", "set", *words).stderr
    assert "the role 'admin'" in c.cli("policy", "set", "reservations=1", user="alice", check=1).stderr


def test_a_topology_keeps_a_gang_on_few_switches_for_a_while(new_cluster, tmp_path):
    c = new_cluster(nodes=3)
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n3\nSwitchName=s Switches=l[1-2]\n")
    c.cli("topology", "set", conf, check=0)
    assert c.cli("topology", "show", check=0).stdout == conf.read_text()
    assert [(n["leaf"], n["spine"]) for _, n in sorted(c.nodes().items())] == [("l1", "s"), ("l1", "s"), ("l2", "s")]
    block = c.create("--cpus", "4", "--name", "block", *CONTAINER, user="bob")
    at = c.session(block)["containers"][0]["node"]
    near = c.create("--size", "2", "--cpus", "4", "--switches", "1@4s", *CONTAINER, user="alice", wait=False)
    if at == "n3":  # one leaf is free
        c.wait_state(near, "running")
    else:
        found = why(c, near)
        assert found["code"] == "switches" and "but not on 1 switch" in found["message"], found
        c.wait_state(near, "running")  # after 4 seconds on any
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    assert c.nodes()["n3"]["leaf"] == "l2"
    conf.write_text("SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n1\n")
    r = c.cli("topology", "set", conf)
    assert r.returncode == 1 and "line 2: node 'n1' is below both 'l1' and 'l2'" in r.stderr


# --- what the past says -----------------------------------------------------------------------


def test_the_past_gives_estimates_and_can_be_replayed(new_cluster, tmp_path):
    c = new_cluster(nodes=1)
    ask = ("run", "--cpus", "1", "--time", "1h", *CONTAINER, "sleep", "1.2")
    for _ in range(2):
        c.cli(*ask, user="alice", check=0)
    c.cli("run", *CONTAINER, "true", user="bob", check=0)
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    c.cli(*ask, user="alice", check=0)  # what was before the restart counts
    last = c.sessions(ended=True)[0]
    assert 1_100_000 < last["estimate_usec"] < 20_000_000, last["estimate_usec"]
    plan = json.loads(c.cli("plan", "-o", "json", check=0).stdout)["estimates"]
    assert plan["sessions"] == 1 and plan["limit_sessions"] == 3 and plan["limit_within_2x"] == 0, plan
    assert "estimates: of 1 sessions" in c.cli("plan", check=0).stdout

    lines = c.cli("export", "workload", check=0).stdout.splitlines()
    assert lines[0].startswith("submit,duration,size,cpus,mem,gpus,") and len(lines) == 5, lines
    assert len(c.cli("export", "workload", "--mine", user="bob", check=0).stdout.splitlines()) == 2
    assert len(c.cli("export", "workload", "--since", "5m", check=0).stdout.splitlines()) == 1  # from the future on
    (tmp_path / "w.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "n.csv").write_text(c.cli("export", "nodes", check=0).stdout)
    r = subprocess.run([BUILD / "src/sim/muster-sim", "--json", "--nodes", tmp_path / "n.csv", tmp_path / "w.csv"],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    assert json.loads(r.stdout)["jobs"] == 4, r.stdout

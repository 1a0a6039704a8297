"""What somebody met who followed the README and knew nothing else."""
import os
import re
import subprocess
import time

import pytest

from harness.cluster import BUILD, ApiError, wait_for

SMALL = ("--mem", "64M", "base")


def test_a_login_shell_finds_what_muster_brings(cluster):
    sid = cluster.create("--size", "2", *SMALL, user="alice")
    for shell in (["bash", "-lc"], ["sh", "-lc"]):
        r = cluster.cli("exec", sid, *shell, "ssh sub1 hostname; echo $PATH", user="alice", check=0)
        name, path = r.stdout.splitlines()
        assert name == "sub1" and path.endswith(":/opt/muster/bin"), path
        assert path.count("/opt/muster/bin") == 1


def test_ping_works(cluster):
    sid = cluster.create("--size", "2", *SMALL, user="alice")
    assert "1 received" in cluster.sh(f"{sid}/main1", "ping -c 1 -W 5 sub1")


def test_what_can_never_fit_is_refused_with_all_its_words(cluster):
    r = cluster.cli("create", "--size", "99", *SMALL, user="alice", check=1)
    assert re.search(r"^muster: asks for 99 x .*; the largest size that could run is \d+$", r.stderr.strip()), r.stderr


def test_a_name_of_several_sessions_is_not_guessed(cluster):
    first, second = (cluster.create("--name", "dup", *SMALL, user="alice") for _ in "ab")
    nums = [cluster.session(s)["num"] for s in (first, second)]
    for words in (("stop", "dup"), ("show", "dup"), ("logs", "dup")):
        r = cluster.cli(*words, user="alice", check=1)
        assert r.stderr == (f"muster: several sessions are called 'dup' ({nums[0]} and {nums[1]}, say); "
                            "give the number or the id\n")
    cluster.cli("stop", "--now", first, user="alice", check=0)
    cluster.wait_state(first, "ended")
    assert cluster.cli("show", "dup", user="alice", check=0).stdout.count(second) >= 1
    # An administrator's own is meant rather than another user's.
    own = cluster.create("--name", "dup", *SMALL)
    assert own in cluster.cli("show", "dup", check=0).stdout


def test_an_agent_in_a_chroot_says_that_it_cannot_be(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    script = ('mount --rbind / "$0" && exec chroot "$0" "$1" --name x --manager http://127.0.0.1:1 '
              '--run-dir /tmp/muster-chroot-run --state-dir /tmp/muster-chroot-state')
    r = subprocess.run(["unshare", "--mount", "sh", "-c", script, root, BUILD / "src/agent/muster-agent"],
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 1 and "this is a chroot(2)" in r.stderr, r.stderr
    assert not os.path.exists("/tmp/muster-chroot-run") and not os.path.exists("/tmp/muster-chroot-state")


def test_a_node_that_is_gone_for_good_is_removed(new_cluster):
    c = new_cluster(nodes=2)
    r = c.cli("node", "rm", "n3", "n4", check=1)
    assert re.fullmatch(r"muster: there is no node 'n3'.*\nmuster: there is no node 'n4'.*\n", r.stderr), r.stderr
    sid = c.create("--size", "2", "--cpus", "4", *SMALL, user="alice")
    c.agents["n2"].kill9()
    wait_for(lambda: c.nodes()["n2"]["state"] == "unreachable", 20, "n2 is not unreachable")
    with pytest.raises(ApiError, match="node 'n2' has sessions"):
        c.api("DELETE", "/v1/nodes/n2")
    c.agents["n2"].start()
    c.cli("stop", "--now", sid, user="alice", check=0)
    c.wait_state(sid, "ended")
    c.agents["n2"].stop()
    wait_for(lambda: c.cli("node", "rm", "n2").returncode == 0, 20, "n2 is not removed")
    assert set(c.nodes()) == {"n1"}
    # It does not count any more: what only both could hold is refused now.
    r = c.cli("create", "--size", "2", "--cpus", "4", *SMALL, user="alice", check=1)
    assert "the largest size that could run is 1" in r.stderr
    c.manager.kill9()
    c.manager.start()
    c.wait_manager()
    assert set(c.nodes()) == {"n1"}
    c.join(c.agents["n2"])
    c.agents["n2"].start()
    c.wait_nodes()


def test_an_agent_that_restarts_without_a_manager_keeps_the_sessions_network(new_cluster):
    c = new_cluster(nodes=2, manager={"network-blocked": "203.0.113.0/24"})
    script = "while :; do ssh sub1 true && date +%s.%N; sleep 0.2; done"
    sid = c.create("--kind", "debug", "--size", "2", "--mode", "multi-node", "--cpus", "3", *SMALL, "sh", "-c",
                   f"[ $MUSTER_CLUSTER_HOST = main1 ] || exec sleep 1000; {script}", user="alice")
    assert len({p["node"] for p in c.session(sid)["containers"]}) == 2
    filters = [c.run_in(n, "nft", "list", "ruleset").stdout for n in ("n1", "n2")]
    assert all("203.0.113.0/24" in f and "10.128.0.0/9" in f for f in filters), filters
    c.manager.kill9()
    for agent in c.agents.values():
        agent.kill9()
        agent.start()
    time.sleep(3)  # both set up their node's network long before
    since = time.time()
    assert [c.run_in(n, "nft", "list", "ruleset").stdout.count("203.0.113.0/24") for n in ("n1", "n2")] == [
        f.count("203.0.113.0/24") for f in filters]
    time.sleep(4)
    until = time.time()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    stamps = [float(t) for t in c.cli("logs", sid, user="alice", check=0).stdout.split()]
    between = [t for t in stamps if since <= t <= until]
    assert len(between) > 5, (since, until, stamps[-5:])

"""A store restored from a copy could not be told from the present one once its epoch had caught up,
and what was made after the copy would have been removed. It is quarantined: it runs, it holds its
resources, and an administrator's purge removes it."""
import shutil
import subprocess

from harness.cluster import wait_for


def running_inits():
    return subprocess.run(["pgrep", "-x", "muster-init"], capture_output=True,
                          text=True).stdout.split()


def test_what_was_made_after_the_copy_runs_on_and_holds_its_place(new_cluster):
    c = new_cluster(nodes=1, cpus="4")
    kept = c.api("POST", "/v1/sessions", {"image": "base", "cpus": 1, "mem": "64M"})["id"]
    c.wait_state(kept, "running")
    c.manager.stop()
    copy = c.dir / "copy"
    shutil.copytree(c.dir / "manager", copy, symlinks=True)
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    later = c.api("POST", "/v1/sessions", {"image": "base", "cpus": 2, "mem": "64M"})["id"]
    c.wait_state(later, "running")
    before = running_inits()

    c.manager.kill9()
    shutil.rmtree(c.dir / "manager")
    shutil.move(copy, c.dir / "manager")
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()

    node = c.nodes()["n1"]
    assert node["quarantined"] == [later]
    assert node["used"]["cpus"] == 3
    assert running_inits() == before
    assert c.session(kept)["state"] == "running"

    c.api("POST", "/v1/nodes/n1/purge")
    wait_for(lambda: c.nodes()["n1"]["quarantined"] == [], 30, lambda: "the purge does not end")
    assert c.nodes()["n1"]["used"]["cpus"] == 1
    assert len(running_inits()) == len(before) - 1

"""A stream of events that was cut before its first event came back to "from now", and what happened
meanwhile was lost. It says where it is as soon as it has caught up."""
import json
import threading
import time

from harness.cluster import wait_for


def test_what_happens_while_a_stream_is_cut_is_heard(new_cluster):
    c = new_cluster(nodes=1)
    p = c.popen("events", "-f", "-o", "json", user="admin")
    heard = []
    threading.Thread(target=lambda: heard.extend(json.loads(line) for line in p.stdout),
                     daemon=True).start()
    time.sleep(1)
    c.manager.kill9()
    time.sleep(1)  # the client has seen the end, and waits before it comes back
    c.manager.start()
    c.wait_manager()
    sid = c.api("POST", "/v1/sessions", {"image": "base", "cpus": 1, "mem": "64M"})["id"]
    try:
        wait_for(lambda: [e["type"] for e in heard if e["subject"] == sid][:1] == ["session.pending"],
                 20, lambda: f"not heard: {heard}")
        c.wait_state(sid, "running")
        wait_for(lambda: any(e["type"] == "session.running" for e in heard), 10, lambda: str(heard))
        texts = [json.dumps(e) for e in heard]
        assert len(texts) == len(set(texts)), texts
    finally:
        p.terminate()
        p.wait(10)


def test_a_stream_goes_on_inside_a_revision(cluster):
    sid = cluster.create("base", "true", wait=False, user="alice")
    cluster.wait_state(sid, "ended")
    _, _, data = cluster.request("GET", "/v1/events?follow=0&after=0", user="alice")
    ids = [line[4:] for line in data.decode().splitlines() if line.startswith("id: ")]
    assert len(ids) > 3
    for i, name in enumerate(ids):
        _, _, rest = cluster.request("GET", f"/v1/events?follow=0&after={name}", user="alice")
        assert [line[4:] for line in rest.decode().splitlines() if line.startswith("id: ")] == ids[i + 1:]

"""Of one session that waited behind a thousand others 'muster prio' said that it did not wait, and the
list ended after a thousand without a word."""
import json


def test_who_is_far_behind_has_a_priority_too(new_cluster):
    c = new_cluster(nodes=1)
    c.cli("run", "--mem", "64M", "base", "true", check=0)
    body = {"image": "base", "mem": "64M", "hold": True}
    for _ in range(1002):
        last = c.api("POST", "/v1/sessions", body)
    last = last["num"]
    queue = json.loads(c.cli("prio", str(last), "-o", "json", check=0).stdout)["queue"]
    assert [s["num"] for s in queue] == [last], queue
    everybody = c.cli("prio", check=0)
    assert len(everybody.stdout.splitlines()) == 1001
    assert "2 more wait behind these" in everybody.stderr, everybody.stderr
    c.stop_sessions()
    assert len(c.sessions(ended=True)) == 1003
    assert len(c.cli("export", "workload", check=0).stdout.splitlines()) == 2  # the one that ran, and the head

"""Writes tests/recorded/VERSION/: what this release's command line asks and its agent says. To be run
once, when a release is made, before its number changes (docs/api.md, "Versions"):

    sudo ./run test -- tests/system/record_messages.py
"""
import json
import re
import shlex
from pathlib import Path

from harness import contract, recorded, websocket
from harness.cluster import ROOT

VERSION = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
FOLDER = recorded.FOLDER / VERSION

COMMANDS = """
version
whoami
user add recorded
user ls
node ls
node show n1
node drain n1 --reason upkeep
node resume n1
group create recorded --time-max 8h --kind train
group set recorded --time-max none
group ls
image ls
image show base
volume create recorded
volume ls
create --dry-run base
create --wait --name recorded --volume recorded base sh -c 'echo out; sleep 600'
show recorded
why recorded
ls
ls --ended --limit 1
plan
exec --no-stdin recorded echo hello
logs recorded
ssh recorded true
create --hold --name waits base
prio
release waits
stop --now waits
node show n9
stop --now --wait recorded
events
volume rm --data recorded
"""


def reply_of(e):
    """The shape of a reply; of events that of the first of a session."""
    if e.kind == "application/json":
        return recorded.shape(json.loads(e.body))
    if e.kind == "text/event-stream":
        return recorded.shape(recorded.first_event(e.body))
    return None


def start_of(e):
    """An exec's first message stands where others have their body."""
    for kind, payload, _ in websocket.messages(e.sent):
        if kind == websocket.TEXT:
            return payload.decode()
    return ""


def block(command, e, names):
    if e.method == "POST" and e.path == "/v1/sessions" and e.status == 201:
        names[f"session{len([n for n in names if n.startswith('session')]) + 1}"] = (
            json.loads(e.body)["id"])
    body = start_of(e) if e.status == 101 else e.request.decode()
    b = recorded.Block(f"muster {command}", e.method, e.path, body, e.status, reply_of(e))
    b.path, b.body = recorded.blank(b.path, names), recorded.blank(b.body, names)
    return b


def test_record_what_the_command_line_asks(new_cluster):
    c = new_cluster(nodes=1, cpus="4")
    names, blocks = {}, []
    for command in filter(None, COMMANDS.splitlines()):
        c.recorder = contract.Recorder(c.namespace("hub"), "127.0.0.1", 7480)
        assert c.cli(*shlex.split(command)).returncode != 2, command
        recorder, c.recorder = c.recorder, None
        assert recorder.close() == []
        blocks += [block(command, e, names) for e in recorder.exchanges()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "cli.txt").write_text("\n".join(b.text() for b in blocks))
    assert len({b.method + b.path for b in blocks}) > 25


def test_record_what_an_agent_says(new_cluster):
    c = new_cluster(nodes=1, cpus="4")
    agent = c.agents["n1"]
    agent.stop()
    recorder = contract.Recorder(c.namespace("hub"), "10.200.0.254", 7480)
    agent.options["manager"] = recorder.url
    agent.start()
    c.wait_nodes()
    deeds = []  # (how many messages had passed, what a person did)

    def do(method, path, body):
        passed = len(recorder.connections[0].messages())
        deeds.append((passed, f"! {method} {path} {json.dumps(body)}"))
        return c.api(method, path, body)
    session = do("POST", "/v1/sessions", {"image": "base", "name": "recorded"})["id"]
    c.wait_state(session, "running")
    do("POST", f"/v1/sessions/{session}/stop", {"now": True})
    c.wait_state(session, "ended")
    c.wait_free()
    agent.stop()
    names = {"session1": session, "image": c.api("GET", "/v1/images/base")["id"],
             "cluster": c.api("GET", "/v1/version")["cluster"],
             "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    recorder.close()
    lines = link_lines(recorder.connections[0].messages(), deeds)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "link.txt").write_text("".join(recorded.blank(line, names) + "\n" for line in lines))
    assert "session_removed" in lines[-1]


def link_lines(messages, deeds):
    """Without beats and progress, which come as they like."""
    lines = []
    for number, (way, kind, payload) in enumerate(messages):
        lines += [text for passed, text in deeds if passed == number]
        if kind != websocket.TEXT:
            continue
        m = json.loads(payload)
        if m["type"] not in ("ping", "pong", "image_progress"):
            lines.append(f"{way} {recorded.dump(m if way == '>' else recorded.shape(m))}")
    return lines

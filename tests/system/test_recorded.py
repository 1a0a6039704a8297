"""What the command line and the agent of earlier releases say is understood, and they are answered with
all that they were answered with then (tests/recorded/, docs/api.md: "Versions")."""
import json
import time
import uuid

import pytest

from harness import recorded, websocket
from harness.cluster import wait_for
from harness.contract import ContractBroken, Document

RELEASES = sorted(p for p in recorded.FOLDER.iterdir() if p.is_dir())
assert RELEASES, "nothing was recorded"


def releases(test):
    return pytest.mark.parametrize("release", RELEASES, ids=lambda p: p.name)(test)


# --- the command line ----------------------------------------------------------------------------

def exec_reply(c, path, start):
    """What exec's last message says."""
    with websocket.WebSocket(c.namespace("hub"), "127.0.0.1", 7480, path, c.admin_token) as ws:
        if ws.status == 101 and start:
            ws.send(websocket.TEXT, start.encode())
            while (message := ws.receive())[0] != websocket.TEXT:
                pass
            assert json.loads(message[1]) == {"exit": {"code": 0}}
        return ws.status


def ask(c, block, names):
    """(status, reply) of one recorded request today."""
    path, body = recorded.fill(block.path, names), recorded.fill(block.body, names)
    if block.status == 101:
        return exec_reply(c, path, body), None
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    status, head, data = c.request(block.method, path, body.encode() or None, headers=headers)
    if head["Content-Type"] == "text/event-stream":
        return status, recorded.first_event(data)
    return status, json.loads(data) if head["Content-Type"] == "application/json" else None


@releases
@pytest.mark.timeout(240)
def test_an_earlier_command_line_gets_what_it_got(new_cluster, release):
    c = new_cluster(nodes=1, cpus="4")
    names, problems = {}, []
    for block in recorded.read_blocks((release / "cli.txt").read_text()):
        status, reply = ask(c, block, names)
        if (block.method, block.path, status) == ("POST", "/v1/sessions", 201):
            names[f"session{len(names) + 1}"] = reply["id"]
        found = [f"status {status}, was {block.status}: {reply}"] if status != block.status else []
        if block.reply is not None and not found:
            found = recorded.missing(block.reply, reply)
        problems += [f"{block.command}: {block.method} {block.path}: {line}" for line in found]
    assert not problems, "\n".join(problems)


# --- the agent -----------------------------------------------------------------------------------

class OldAgent:
    """Says what was recorded, and waits for what it was told."""

    def __init__(self, c, ws):
        self.c, self.ws, self.heard = c, ws, []
        self.names = {"cluster": c.api("GET", "/v1/version")["cluster"],
                      "image": c.api("GET", "/v1/images/base")["id"], "boot": str(uuid.uuid4())}

    def wait(self, wanted):
        """The next message of that type and phase; pings are answered, others passed over."""
        end = time.monotonic() + 20
        said = []
        while time.monotonic() < end:
            m = json.loads(self.ws.receive()[1])
            if m["type"] == "ping":
                self.ws.send(websocket.TEXT, json.dumps({"type": "pong", "seq": m["seq"]}).encode())
                continue
            kind = (f"'{m['type']}'", f"'{m.get('assignment', {}).get('phase')}'")
            if kind == (wanted["type"], wanted.get("assignment", {}).get("phase", "'None'")):
                return recorded.missing(wanted, m)
            said.append(kind)
        raise AssertionError(f"was not told {wanted['type']}, but {said}")

    def do(self, line):
        """One line of the recording; what is wrong with the manager's part of it."""
        way, text = recorded.fill(line, self.names).split(" ", 1)
        if way == ">":
            self.ws.send(websocket.TEXT, text.encode())
        elif way == "<":
            return self.wait(json.loads(text))
        else:
            if "session1" in self.names:  # people act on what they see
                wait_for(lambda: self.c.session("recorded")["state"] == "running", 20,
                         lambda: self.c.session("recorded"))
            method, path, body = text.split(" ", 2)
            reply = self.c.api(method, path, json.loads(body))
            self.names.setdefault("session1", reply["id"])
        return []


@releases
def test_an_earlier_agent_runs_a_session(new_cluster, release):
    c = new_cluster(nodes=0)
    token = (c.dir / "manager/agent.token").read_text().strip()
    with websocket.WebSocket(c.namespace("hub"), "127.0.0.1", 7480, "/v1/agent/link", token) as ws:
        agent, problems = OldAgent(c, ws), []
        assert ws.status == 101
        for line in (release / "link.txt").read_text().splitlines():
            problems += [f"{line[:60]}...: {p}" for p in agent.do(line)]
        assert not problems, "\n".join(problems)
        session = wait_for(lambda: (s := c.session("recorded"))["state"] == "ended" and s, 20,
                           lambda: c.session("recorded"))
        assert session["result"] == "cancelled" and session["started"]
        assert c.nodes()["n1"]["used"] == {"cpus": 0, "mem": 0, "gpus": 0}


# --- that it can fail ----------------------------------------------------------------------------

@pytest.mark.parametrize("today, says", [
    ({"a": 1, "b": [{"c": "x"}], "more": 1}, []),
    ({"b": [{"c": "x"}]}, ["a is gone"]),
    ({"a": "1", "b": [{"c": "x"}]}, ["a is text, was number"]),
    ({"a": None, "b": [{"d": "x"}]}, ["b[0].c is gone"]),
    ({"a": 1, "b": []}, ["b is empty"]),
    ({"a": {}, "b": [{"c": "x"}]}, ["a is not of type number any more"]),
])
def test_what_an_earlier_reader_would_miss_is_said(today, says):
    wanted = recorded.shape({"a": 7, "b": [{"c": "y"}]})
    assert wanted == {"a": "number", "b": [{"c": "text"}]}
    assert recorded.missing(wanted, today) == says


def test_a_block_is_read_as_it_is_written():
    block = recorded.Block("muster x", "POST", "/v1/x", '{"a": 1}', 201, {"b": "text"})
    text = block.text() + "\n" + recorded.Block("muster y", "GET", "/v1/y", "", 101, None).text()
    first, second = recorded.read_blocks(text)
    assert vars(first) == vars(block)
    assert (second.body, second.status, second.reply) == ("", 101, None)


def test_the_recorded_command_line_asks_only_what_the_contract_has():
    document = Document.load()
    for release in RELEASES:
        for block in recorded.read_blocks((release / "cli.txt").read_text()):
            operation, _ = document.find(block.method, block.path.split("?")[0])
            if not operation:
                raise ContractBroken(f"{release.name}: {block.method} {block.path} is gone")

"""The manager, with agents that run nothing: sessions a second, gangs, cancelling.

A manager on the loopback device and its clients share the machine with the agents
(tests/bench/agents.c), which answer each order at once. The store is on disk, as always.
"""
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from harness.images import image_file

BUILD = Path(os.environ["MUSTER_BUILD"])
NODES = [64, 256]
SESSIONS = 5000       # that are pending when the agents come
GANGS = 40
PENDING = [1000, 8000]
CLIENTS = 8
ONE_GPU = {"image": "base", "kind": "train", "cpus": "1", "mem": "1G", "gpus": 1, "command": ["true"]}
GANG = ONE_GPU | {"gpus": 8, "size": 8, "mode": "multi-node", "command": ["sleep", "1000"]}
# Nodes take nothing from these; a session keeps its network from submission on.
OVERLAY = "10.0.0.0/8"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Manager:
    def __init__(self, folder):
        self.folder, self.port = Path(folder), free_port()
        self.agents = None
        (self.folder / "none.yaml").write_text("{}\n")
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            [BUILD / "src/manager/musterd", "--config", self.folder / "none.yaml",
             "--listen", f"127.0.0.1:{self.port}", "--state-dir", self.folder / "state",
             "--import-program", BUILD / "src/image/muster-import", "--network-overlay", OVERLAY,
             "--agent-heartbeat", "30s", "--log-level", "warning"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.token = ""
        self.wait(self.answers)
        self.token = (self.folder / "state/admin.token").read_text().strip()

    def answers(self):
        try:
            return Client(self).call("GET", "/v1/version")
        except OSError:
            return None

    def wait(self, what, seconds=240):
        end = time.monotonic() + seconds
        while not what():
            if self.process.poll() is not None or self.agents and self.agents.poll() is not None or \
                    time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.01)

    def connect(self, count):
        """So many agents; returns when the manager has welcomed them all."""
        self.agents = subprocess.Popen(
            [BUILD / "tests/bench/bench_agents", f"ws://127.0.0.1:{self.port}/v1/agent/link",
             self.folder / "state/agent.token", str(count)], stdout=subprocess.PIPE, text=True)
        if self.agents.stdout.readline() != "up\n":
            raise RuntimeError("the agents did not come up")

    def disconnect(self):
        if self.agents:
            self.agents.send_signal(signal.SIGTERM)
            self.agents.wait(20)
            self.agents = None

    def close(self):
        self.disconnect()
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


class Client:
    """A connection that is kept."""

    def __init__(self, manager):
        self.connection = http.client.HTTPConnection("127.0.0.1", manager.port, timeout=300)
        self.headers = {"Authorization": f"Bearer {manager.token}"} if manager.token else {}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        headers = self.headers | ({"Content-Type": "application/json"} if data else {})
        self.connection.request(method, path, data, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 400:
            raise RuntimeError(f"{method} {path}: {reply.status} {text.decode()}")
        return json.loads(text) if text else None


def by_clients(manager, work, items):
    """work(client, item) of each, CLIENTS at a time; the results, and how long all of it took."""
    results, rest, start = [], list(items), time.monotonic()

    def run():
        client = Client(manager)
        while True:
            try:
                item = rest.pop()
            except IndexError:
                return
            results.append(work(client, item))
    threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if len(results) != len(items):
        raise RuntimeError("a client failed")
    return results, time.monotonic() - start


def create(manager, count, request):
    made, took = by_clients(
        manager, lambda client, _: client.call("POST", "/v1/sessions", request)["id"], range(count))
    return made, count / took


def cancel(manager, ids):
    _, took = by_clients(
        manager, lambda client, i: client.call("POST", f"/v1/sessions/{i}/stop", {"now": True}), ids)
    return took


def none_left(manager):
    client = Client(manager)
    return lambda: not client.call("GET", "/v1/sessions?all=1&limit=1")["sessions"]


def throughput(manager, nodes):
    """Sessions that are pending, then agents: how many end in a second."""
    _, rate = create(manager, SESSIONS, ONE_GPU)
    start = time.monotonic()
    manager.connect(nodes)
    manager.wait(none_left(manager))
    return rate, SESSIONS / (time.monotonic() - start)


def gangs(manager):
    """Milliseconds from the request until the commands run everywhere, one gang at a time."""
    client, times = Client(manager), []
    for _ in range(GANGS):
        start = time.monotonic()
        made = client.call("POST", "/v1/sessions", GANG)["id"]
        while client.call("GET", f"/v1/sessions/{made}")["state"] != "running":
            time.sleep(0.002)
        times.append((time.monotonic() - start) * 1000)
        client.call("POST", f"/v1/sessions/{made}/stop", {"now": True})
    manager.wait(none_left(manager))
    return times


def with_nodes(nodes):
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        manager = Manager(folder)
        try:
            import_image(manager)
            manager.connect(nodes)
            times = sorted(gangs(manager))
            manager.disconnect()
            rate, ended = throughput(manager, nodes)
        finally:
            manager.close()
    return [nodes, f"{rate:.0f}", f"{ended:.0f}", f"{statistics.median(times):.0f}",
            f"{times[len(times) * 9 // 10]:.0f}"]


def import_image(manager):
    env = os.environ | {"MUSTER_URL": f"http://127.0.0.1:{manager.port}", "MUSTER_TOKEN": manager.token}
    subprocess.run([BUILD / "src/cli/muster", "image", "import", image_file("base"), "--name", "base"], env=env,
                   check=True, capture_output=True, timeout=300)


def cancelling(pending):
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        manager = Manager(folder)
        try:
            import_image(manager)
            manager.connect(1)
            manager.disconnect()  # the node is known, and nothing can start
            ids, rate = create(manager, pending, ONE_GPU)
            took = cancel(manager, ids)
            manager.wait(none_left(manager))
        finally:
            manager.close()
    return [f"{pending:,}", f"{rate:.0f}", f"{took:.1f}", f"{pending / took:.0f}"]


def measure(report):
    report.line(f"Sessions of one GPU whose command ends at once: {SESSIONS:,} are submitted by {CLIENTS} clients "
                "while no node can be reached, then the agents come. Gangs: 8 containers of 8 GPUs, each on a node "
                f"of its own, {GANGS} one after the other, from the request until all commands run.")
    report.table(["nodes of 8 GPUs", "submitted a second", "ended a second", "gang, median ms", "9 of 10 within"],
                 [with_nodes(n) for n in NODES])
    report.line(f"Cancelling what waits, one request each, by {CLIENTS} clients:")
    report.table(["pending", "submitted a second", "all cancelled, s", "a second"],
                 [cancelling(n) for n in PENDING])

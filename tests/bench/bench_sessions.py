"""Sessions: from command to first instruction, in a row, and what the daemons hold.

Clusters are those of the system tests, so the manager's and the agents' figures are of one machine
that does everything.
"""
import re
import shutil
import statistics
import subprocess
import threading
import time

from harness.cluster import Cluster
from harness.images import image_file

RUNS = 30
CYCLES = 60


def private_kb(pid):
    text = open(f"/proc/{pid}/smaps_rollup").read()
    return sum(int(n) for n in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+)", text, re.M))


def first_instruction(cluster, *words):
    """Milliseconds from the start of `muster run` to the date that the command prints."""
    start = time.time()
    r = cluster.cli("run", *words, "base", "date", "+%s.%N", check=0)
    return (float(r.stdout.split()[0]) - start) * 1000


def spread(values):
    values = sorted(values)
    return f"{statistics.median(values):.0f}", f"{values[0]:.0f}", f"{values[len(values) * 9 // 10]:.0f}"


def podman(rows):
    """The same with podman, in the same run, where it is there and works."""
    if not shutil.which("podman"):
        return
    subprocess.run(["skopeo", "copy", "-q", f"oci-archive:{image_file('base')}",
                    "containers-storage:localhost/muster-bench"], check=False, capture_output=True)
    times = []
    for _ in range(RUNS):
        start = time.time()
        r = subprocess.run(["podman", "run", "--rm", "--network", "none", "--cgroups=disabled",
                            "localhost/muster-bench", "date", "+%s.%N"], capture_output=True, text=True)
        if r.returncode:
            return
        times.append((float(r.stdout) - start) * 1000)
    rows.append(["podman run --network none --cgroups=disabled", *spread(times)])
    subprocess.run(["podman", "rmi", "-f", "localhost/muster-bench"], capture_output=True)


def cycles(cluster, clients):
    """Create-run-end cycles a second."""
    start = time.monotonic()

    def work():
        for _ in range(CYCLES // clients):
            cluster.cli("run", "--cpus", "0.1", "--mem", "32M", "base", "true", check=0)
    threads = [threading.Thread(target=work) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return CYCLES // clients * clients / (time.monotonic() - start)


def measure(report):
    cluster = Cluster(nodes=2, cpus="16", mem="8G", manager={"log-level": "info"},
                      agent={"log-level": "info"})
    try:
        cluster.start()
        idle = {d.name: private_kb(d.pid) for d in cluster.daemons}
        cluster.cli("image", "import", image_file("base"), "--name", "base", check=0, timeout=300)
        first_instruction(cluster)  # the image's first mount
        rows = []
        for size in (1, 2, 4, 8, 16):
            words = ["--size", size, "--cpus", "0.5", "--mem", "64M", "--mode", "multi-node"]
            rows.append([f"muster run --size {size}", *spread(
                [first_instruction(cluster, *words) for _ in range(RUNS if size == 1 else 10)])])
        words = ["--size", 4, "--cpus", "8", "--mem", "64M", "--mode", "multi-node"]
        rows.append(["muster run --size 4 over two nodes", *spread(
            [first_instruction(cluster, *words) for _ in range(10)])])
        podman(rows)
        report.line("From the command to the first instruction of the user's program, image local:")
        report.table(["", "median ms", "least", "9 of 10 within"], rows)
        report.table(["clients", "create-run-end a second"],
                     [[n, f"{cycles(cluster, n):.1f}"] for n in (1, 8)])
        cluster.wait_free()
        before = {d.name: private_kb(d.pid) for d in cluster.daemons}
        for _ in range(10):
            cluster.create("--cpus", "0.5", "--mem", "64M", "base")
        held = {d.name: private_kb(d.pid) for d in cluster.daemons}
        nodes = [n for n in held if n != "manager"]
        report.line("Private memory, kB:")
        report.table(["", "idle, at first", "idle, after all of the above", "a running session more"], [
            ["manager", idle["manager"], before["manager"], (held["manager"] - before["manager"]) // 10],
            ["agent", idle["n1"], before["n1"], sum(held[n] - before[n] for n in nodes) // 10]])
    finally:
        cluster.close()

"""Sessions: from command to first instruction, in a row, and what the daemons hold.

Clusters are those of the system tests: a manager and two virtual nodes in network namespaces of this
machine, which does everything, the client included. podman runs the same image in the same minute.
"""
import re
import shutil
import statistics
import subprocess
import threading
import time

from harness import leftovers, netns
from harness.cluster import MUSTER, Cluster
from harness.images import image_file

RUNS = 30      # of one container, and of podman, in turns
RUNS_WIDE = 10
CYCLES = 60
KEPT = 50      # cycles after which everything is as before
HELD = 10      # sessions that run at a time for the memory of each
SMALL = ["--cpus", "1", "--mem", "64M"]

# podman's crun refuses a hybrid cgroup layout, so it runs where the second hierarchy is not mounted;
# its default limits of resources are above what a container may set here.
PODMAN = ["unshare", "--mount", "sh", "-c",
          'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"', "-",
          "podman", "run", "--rm", "--network", "none", "--cgroups=disabled",
          "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096"]


def private_kb(pid):
    text = open(f"/proc/{pid}/smaps_rollup").read()
    return sum(int(n) for n in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+)", text, re.M))


def first_instruction(cluster, *words):
    """Milliseconds from the start of `muster run` to the time that the command prints."""
    argv = [str(MUSTER), "run", *map(str, words), "base", "date", "+%s.%N"]
    with netns.inside(cluster.namespace("hub")):
        start = time.time()
        r = subprocess.run(argv, env=cluster.cli_env("admin"), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=True)
    return (float(r.stdout.split()[0]) - start) * 1000


def podman():
    start = time.time()
    r = subprocess.run([*PODMAN, "localhost/muster-bench", "date", "+%s.%N"], check=True,
                       capture_output=True, text=True)
    return (float(r.stdout) - start) * 1000


def podman_image():
    """Whether podman is there and can run the image."""
    if not shutil.which("podman"):
        return False
    subprocess.run(["skopeo", "copy", "-q", f"oci-archive:{image_file('base')}",
                    "containers-storage:localhost/muster-bench"], check=True, capture_output=True)
    podman()
    return True


def row(name, values):
    values = sorted(values)
    return [name, f"{statistics.median(values):.0f}", f"{values[0]:.0f}",
            f"{values[len(values) * 9 // 10]:.0f}"]


def one_container(cluster, report, rows):
    """Ours and podman's in turns, so that whatever else the machine does hits both."""
    ours, theirs = [], []
    beside = podman_image()
    for _ in range(RUNS):
        ours.append(first_instruction(cluster, *SMALL))
        if beside:
            theirs.append(podman())
    rows.append(row("muster run, 1 container", ours))
    if not beside:
        report.line("(podman is not here or does not run: no peer.)")
        return
    rows.append(row("podman run --network none --cgroups=disabled", theirs))
    ratio = statistics.median(ours) / statistics.median(theirs)
    report.line(f"One container, with its network and a verified SSH login, takes {ratio:.2f} of "
                "podman's time for one without.")
    subprocess.run(["podman", "rmi", "-f", "localhost/muster-bench"], capture_output=True)


def starts(cluster, report):
    rows = []
    one_container(cluster, report, rows)
    for size in (2, 4, 8, 16):
        words = ["--size", size, *SMALL, "--mode", "single-node"]
        rows.append(row(f"muster run --size {size}, on one node",
                        [first_instruction(cluster, *words) for _ in range(RUNS_WIDE)]))
    for size, cpus in ((4, 8), (8, 4), (16, 2)):
        words = ["--size", size, "--cpus", cpus, "--mem", "64M", "--mode", "multi-node"]
        rows.append(row(f"muster run --size {size}, over two nodes",
                        [first_instruction(cluster, *words) for _ in range(RUNS_WIDE)]))
    report.line("From the command to the first instruction of the user's program, image local:")
    report.table(["", "median ms", "least", "9 of 10 within"], rows)


def cycles(cluster, clients):
    """Create-run-end cycles a second."""
    start = time.monotonic()

    def work():
        for _ in range(CYCLES // clients):
            cluster.cli("run", *SMALL, "base", "true", check=0)
    threads = [threading.Thread(target=work) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return CYCLES // clients * clients / (time.monotonic() - start)


def memory(cluster):
    return {d.name: private_kb(d.pid) for d in cluster.daemons}


def kept_clean(cluster, report):
    before = leftovers.snapshot()
    for _ in range(KEPT):
        cluster.cli("run", *SMALL, "base", "true", check=0)
    cluster.wait_free()
    changed = leftovers.settle(before) + sorted(before - leftovers.snapshot())
    report.line(f"After {KEPT} more sessions, processes, mounts, links, namespaces, filters, control "
                "groups, loop devices and folders are " + ("as they were." if not changed else
                f"not as they were: {len(changed)}: " + "; ".join(changed)))


def measure(report):
    cluster = Cluster(nodes=2, cpus="16", mem="8G", manager={"log-level": "info"},
                      agent={"log-level": "info"})
    try:
        cluster.start()
        idle = memory(cluster)
        cluster.cli("image", "import", image_file("base"), "--name", "base", check=0, timeout=300)
        first_instruction(cluster, *SMALL)  # the image's first mount
        starts(cluster, report)
        report.line("Sessions of one container that are created, run `true` and are removed:")
        report.table(["clients", "sessions a second"],
                     [[n, f"{cycles(cluster, n):.1f}"] for n in (1, 8)])
        cluster.wait_free()
        kept_clean(cluster, report)
        time.sleep(2)  # an idle agent gives its memory back at its next look
        before = memory(cluster)
        for _ in range(HELD):
            cluster.create(*SMALL, "base")
        held = memory(cluster)
        nodes = [n for n in held if n != "manager"]
        report.line()
        report.line("Private memory, kB:")
        report.table(["", "idle, at first", "idle, after all of the above", "a running session more"], [
            ["manager", idle["manager"], before["manager"],
             (held["manager"] - before["manager"]) // HELD],
            ["agent", idle["n1"], before["n1"], sum(held[n] - before[n] for n in nodes) // HELD]])
    finally:
        cluster.close()

"""The scheduler: the time of a pass, and the memory of a waiting session.

Requests are drawn from openb (bench_traces.py) when --traces FOLDER has it, or made up
(tests/bench/openb.h). What is timed, and how the cluster is filled: tests/bench/passes.c.
"""
import json
import os
import subprocess
from pathlib import Path

BUILD = Path(os.environ["MUSTER_BUILD"])
NODES = [100, 1000, 10000]
PENDING = [1000, 10000, 100000, 1000000]
MOST_NODES, MANY_PENDING = 10000, 100000
REPEATS = 5


def passes(nodes, pending, requests):
    argv = [BUILD / "tests/bench/bench_passes", nodes, pending, REPEATS, *requests]
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(r.stderr.strip())
    return json.loads(r.stdout)


def ms(value):
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def row(r):
    return [f"{r['nodes']:,}", f"{r['running']:,}", f"{r['pending']:,}", ms(r["same"]["cpu"]), ms(r["ends"]["cpu"]),
            f"{ms(r['first']['cpu'])} ({r['started']:,})", ms(r["peer_known"]["cpu"]), ms(r["peer"]["cpu"])]


def say_largest(report, r):
    report.line()
    report.line(f"At {r['nodes']:,} nodes, {r['containers']:,} running containers and {r['pending']:,} pending "
                f"sessions of {r['shapes']:,} different requests, on the wall clock: a pass in which nothing has "
                f"changed takes {ms(r['same']['wall'])} ms ({ms(r['same']['wall_least'])} at best), one after one "
                f"in 1,000 has ended {ms(r['ends']['wall'])} ms ({ms(r['ends']['wall_least'])} at best). "
                f"A waiting session takes {r['bytes_each']:.0f} bytes of the scheduler's memory. "
                f"Decisions: {r['hash']}, {r['hash_ends']}.")


def measure(report):
    requests, source = [], "made up (tests/bench/openb.h)"
    path = report.traces / "openb/openb_pod_list_default.csv" if report.traces else None
    if path and path.exists():
        requests, source = [path], "drawn from openb"
        report.command = " --traces FOLDER"
    report.line("### A pass")
    report.line()
    report.line(f"Nodes of 8 GPUs, 8 containers for each; requests {source}; 40 users, up to 3 days of waiting, "
                "gangs, wishes for a model, 16 reservations, reasons for all that wait, cold caches. "
                f"Milliseconds of one core, the median of {REPEATS}. \"Burst\" is the first pass over the queue: "
                "8 containers leave GPUs free, and it starts as many sessions as the brackets say. "
                "The peer is a queue in order of submission, each job on the first nodes with room, without "
                "priorities, reservations, fragmentation, topology or reasons, over the same book, in the state of the "
                "burst; once it tries again each job, and once no request that has found no room.")
    results = {}
    for nodes in NODES:
        results[nodes, MANY_PENDING] = passes(nodes, MANY_PENDING, requests)
    for pending in PENDING:
        if (MOST_NODES, pending) not in results:
            results[MOST_NODES, pending] = passes(MOST_NODES, pending, requests)
    report.table(["nodes", "running", "pending", "nothing changed", "1 in 1,000 ended", "burst (started)",
                  "peer, a request once", "peer"],
                 [row(r) for _, r in sorted(results.items(), key=lambda item: item[0])])
    say_largest(report, results[MOST_NODES, MANY_PENDING])

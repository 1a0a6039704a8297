"""The scheduler on published traces: packing, order, gangs.

--traces FOLDER has them; this repository does not:

    openb/      alibaba/clusterdata, cluster-trace-gpu-v2023: openb_node_list_gpu_node.csv and
                openb_pod_list_*.csv; and published_allocation.csv, what the authors of FGD (Weng et
                al., USENIX ATC 2023) measured: workload, policy, seed, allocated_pct_at_130
    philly/     trace1.csv and trace3.csv as published with Muri (Zhao et al., SIGCOMM 2022)
    topology/   clos_847_hosts.csv: ip, PSW, ASW of alibaba/clusterdata, lingjun 2023

What is missing there is left out. Nothing of the scheduler is set for any of them: these are its
defaults.
"""
import concurrent.futures
import csv
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

BUILD = Path(os.environ["MUSTER_BUILD"])
WORKLOADS = ["default", "cpu050", "gpushare40", "gpuspec10", "multigpu20", "multigpu30"]
SEEDS = range(42, 52)
ESTIMATES = range(1, 11)  # seeds of wrong estimates
TRACES = ["trace1", "trace3"]
NODES = "8x cpus=96,mem=768G,gpus=8,gpu_model=v100"
LOADS = [70, 80, 90]
GANGS = 5000


def program(*argv):
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: {r.stderr.strip()}")
    return [json.loads(line) for line in r.stdout.splitlines()]


# --- packing ----------------------------------------------------------------------------------

def published(folder):
    """Mean of what was measured at 130 %, by (workload, policy); empty when it is not there."""
    path = folder / "published_allocation.csv"
    found = defaultdict(list)
    if path.exists():
        with path.open() as f:
            for row in csv.DictReader(f):
                policy = row["policy"].partition("-")[2]
                found[row["workload"], policy].append(float(row["allocated_pct_at_130"]))
    return {key: statistics.mean(values) for key, values in found.items()}


def pack(folder, workload, seed):
    return program(BUILD / "tests/bench/bench_pack", folder / "openb_node_list_gpu_node.csv",
                   folder / f"openb_pod_list_{workload}.csv", seed)[0]


def packing(folder, report):
    theirs = published(folder)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for workload in WORKLOADS:
            runs = list(pool.map(lambda seed: pack(folder, workload, seed), SEEDS))
            ours, best, rand = ([r[k] for r in runs] for k in ("ours", "best_fit", "random"))
            fgd = theirs.get((workload, "FGD"))
            rows.append([
                workload, f"{statistics.mean(ours):.2f}", f"{statistics.stdev(ours):.2f}",
                f"{fgd:.2f}" if fgd else "-",
                f"{statistics.mean(ours) - fgd:+.2f}" if fgd else "-",
                *(f"{statistics.mean(v):.2f} ({theirs.get((workload, p), math.nan):.2f})"
                  for v, p in ((best, "BestFit"), (rand, "Random")))])
    report.line("### Packing")
    report.line()
    report.line(f"openb: 6,212 GPUs of 1,213 nodes; percent of them given away when requests for 130 % have "
                f"come, {len(SEEDS)} seeds. Requests come one by one in random order (again from the list "
                "when it is used up), each is placed or fails, nothing leaves. The scheduler learns what "
                "comes from what has come. FGD, and the figures in brackets, are as published; best fit "
                "and random beside them are of the same program as ours and show that the protocol is the "
                "same.")
    report.table(["requests", "ours", "sd", "FGD", "difference", "best fit", "random"], rows)


# --- order ------------------------------------------------------------------------------------

def convert(path, to, seed):
    """Estimates are right without a seed, else between half and five times the truth, evenly in
    the exponent. The time limit is the estimate; nobody is ended at it."""
    rng = random.Random(seed)
    with path.open() as f, to.open("w") as out:
        out.write("submit,duration,gpus,estimate,limit\n")
        for row in csv.DictReader(f):
            duration = float(row["duration"]) / 1000
            estimate = duration * (1 if seed is None else 0.5 * 10 ** rng.random())
            out.write(f"{float(row['submit_time']) / 1000},{duration},{row['num_gpu']},"
                      f"{estimate:.6f},{estimate:.6f}\n")


def sim(workload, *options):
    return program(BUILD / "src/sim/muster-sim", "--nodes", NODES, "--gpus-per-node", 8, "--json",
                   *options, workload)[0]


def hours(seconds):
    return f"{seconds / 3600:.1f}"


def order_row(name, runs, reference):
    """Of several runs: means, and how far the ratios spread."""
    values = {k: statistics.mean(r[f"completion_{k}"] for r in runs) for k in ("mean", "median", "p99")}
    row = [name, *(hours(values[k]) for k in ("mean", "median", "p99"))]
    for key in ("mean", "p99"):
        ratios = [r[f"completion_{key}"] / reference[f"completion_{key}"] for r in runs]
        spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(runs) > 1 else ""
        row.append(f"{statistics.mean(ratios):.2f}{spread}")
    return row


def order(folder, report):
    report.line("### Order")
    report.line()
    report.line("philly, on 8 nodes of 8 GPUs; jobs of more than 8 GPUs are gangs of whole nodes. muster-sim with "
                "its defaults, which never preempts; FIFO + EASY (`--fifo`); and SRTF (`--srtf`), which knows all "
                "durations and preempts for free. Wrong estimates lie between half and five times the truth "
                f"({len(ESTIMATES)} seeds; the spread in brackets) and are the time limits, too. Completion times "
                "in hours.")
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        for trace in TRACES:
            right = Path(tmp) / f"{trace}.csv"
            convert(folder / f"{trace}.csv", right, None)
            srtf = sim(right, "--srtf")
            rows.append(order_row(f"{trace}: SRTF", [srtf], srtf))
            rows.append(order_row(f"{trace}: ours, estimates right", [sim(right)], srtf))
            ours, fifo = [], []
            for seed in ESTIMATES:
                wrong = Path(tmp) / f"{trace}.{seed}.csv"
                convert(folder / f"{trace}.csv", wrong, seed)
                ours.append(sim(wrong))
                fifo.append(sim(wrong, "--fifo"))
            rows.append(order_row(f"{trace}: ours, estimates wrong", ours, srtf))
            rows.append(order_row(f"{trace}: FIFO + EASY, right", [sim(right, "--fifo")], srtf))
            rows.append(order_row(f"{trace}: FIFO + EASY, wrong", fifo, srtf))
    report.table(["", "mean", "median", "99 of 100 within", "mean / SRTF's", "99 of 100 / SRTF's"], rows)


# --- gangs ------------------------------------------------------------------------------------

READINGS = {"flat": "a leaf is an ASW: 48 of 3 to 24 hosts",
            "nested": "a leaf is an ASW of one PSW: 119 of 2 to 8 hosts"}


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def gangs(path, report):
    report.line("### Gangs")
    report.line()
    report.line(f"847 hosts of 8 GPUs of a real network, kept full to a share of their GPUs while jobs come and go; "
                f"{GANGS:,} gangs of 2 to 16 whole hosts, and one and a half times as many jobs inside a host. "
                "Percent of the gangs that an empty leaf could hold that are inside one leaf; in brackets, of those "
                "for which a leaf had room when they came. The list names switches (ASW) below others (PSW), and the "
                "same names under several of them: both readings are here.")
    for reading, text in READINGS.items():
        found = defaultdict(dict)
        for load in LOADS:
            for r in program(BUILD / "tests/bench/bench_gangs", path, reading, load, GANGS, 1):
                found[r["policy"]][load] = r
        rows = []
        for policy, by_load in found.items():
            row = [policy]
            for load in LOADS:
                r = by_load[load]
                row.append(f"{percent(r['in_leaf'], r['gangs'])} "
                           f"({percent(r['in_leaf'], r['roomy'])})")
            row.append(f"{by_load[LOADS[-1]]['leaves'] / by_load[LOADS[-1]]['gangs']:.2f}")
            rows.append(row)
        report.table([text, *(f"{n} % full" for n in LOADS), f"leaves of a gang, {LOADS[-1]} % full"], rows)


def measure(report):
    if not report.traces:
        report.leave_out("it needs published traces: --traces FOLDER (tests/bench/bench_traces.py says which)")
    report.command = " --traces FOLDER"
    parts = [("openb", packing), ("philly", order), ("topology/clos_847_hosts.csv", gangs)]
    there = [(report.traces / name, part) for name, part in parts if (report.traces / name).exists()]
    if not there:
        report.leave_out(f"'{report.traces}' has none of " + ", ".join(name for name, _ in parts))
    for name, part in parts:
        if (report.traces / name, part) in there:
            part(report.traces / name, report)
        else:
            report.line(f"(There was no '{name}'.)")

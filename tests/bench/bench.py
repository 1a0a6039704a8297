#!/usr/bin/python3
"""Runs the benchmarks and writes docs/benchmarks.md: ./run bench [--traces FOLDER] [NAME]...

A benchmark is a file bench_NAME.py here with a docstring, whose first line is its heading, and a
function `measure(report)` that says what it saw with report.line(text) and report.table(head, rows).
Its section stands between markers of its name; the others stay as they are. It runs programs of
build/ (optimised, no sanitizer) and names the machine and the command, so that a figure can be had
again. What a benchmark needs and does not have, report.leave_out(text) says: its section stays as it
is, and the others go on.

FOLDER (or $MUSTER_TRACES) has published traces, which this repository does not carry: bench_traces.py
says which. report.traces is that folder, or None.
"""
import argparse
import importlib
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/benchmarks.md"
HEAD = """# Benchmarks

Written by `./run bench`; each section names the machine, the revision and the command it is from.
"""


class LeftOut(Exception):
    pass


class Report:
    def __init__(self, traces=None):
        self.lines = []
        self.traces = traces
        self.command = ""  # what stands behind the name in the command

    def leave_out(self, text):
        raise LeftOut(text)

    def line(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def table(self, head, rows):
        self.line()
        for row in [head, ["---"] * len(head), *rows]:
            self.line("| " + " | ".join(str(x) for x in row) + " |")
        self.line()


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1))
    system = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text()).group(1)
    return (f"{os.cpu_count()} CPUs ({cpu.group(1) if cpu else platform.machine()}), "
            f"{memory >> 20} GiB, {system}, Linux {platform.release()}")


def revision():
    r = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty"],
                       cwd=ROOT, capture_output=True, text=True)
    return r.stdout.strip() or "unknown"


def replace_section(page, name, body):
    """The page with the section of this name replaced, or added at its end."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{body.strip()}\n{end}\n"
    if begin in page:
        head, rest = page.split(begin, 1)
        return head + section + rest.split(end + "\n", 1)[1]
    return page.rstrip("\n") + "\n\n" + section


def run(name, traces):
    """Whether it was measured."""
    module = importlib.import_module(f"bench_{name}")
    report = Report(traces)
    title = (module.__doc__ or name).strip().splitlines()[0].rstrip(".")
    load = os.getloadavg()[0]
    print(f"=== {title} ===")
    start = time.monotonic()
    try:
        module.measure(report)
    except LeftOut as why:
        print(f"left out: {why}", file=sys.stderr)
        return False
    head = (f"## {title}\n\n`./run bench {name}{report.command}` at {revision()}, {time.strftime('%Y-%m-%d')}, "
            f"{time.monotonic() - start:.0f} s; {machine()}; load before: {load:.1f}\n\n")
    page = PAGE.read_text() if PAGE.exists() else HEAD
    PAGE.write_text(replace_section(page, name, head + "\n".join(report.lines)))
    return True


def main():
    known = sorted(p.stem[len("bench_"):] for p in HERE.glob("bench_*.py"))
    parser = argparse.ArgumentParser(prog="./run bench", description="Measure, and write docs/benchmarks.md.")
    parser.add_argument("--traces", metavar="FOLDER", default=os.environ.get("MUSTER_TRACES"),
                        help="published traces; also $MUSTER_TRACES")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(known)}; else all")
    args = parser.parse_args()
    for name in args.names:
        if name not in known:
            sys.exit(f"bench: there is no '{name}'; there are: {', '.join(known)}")
    if args.traces and not Path(args.traces).is_dir():
        sys.exit(f"bench: the folder of traces '{args.traces}' is not there")
    os.environ.setdefault("MUSTER_BUILD", str(ROOT / "build"))
    os.environ.setdefault("MUSTER_GUEST", str(ROOT / "build/guest"))
    sys.path[:0] = [str(HERE), str(ROOT / "tests/system")]
    traces = Path(args.traces).resolve() if args.traces else None
    measured = [run(name, traces) for name in args.names or known]
    sys.exit(0 if any(measured) else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Runs the benchmarks and writes docs/benchmarks.md: ./run bench [NAME]...

A benchmark is a file bench_NAME.py here with a docstring, whose first line is its heading, and a
function `measure(report)` that says what it saw with report.line(text) and report.table(head, rows).
Its section stands between markers of its name; the others stay as they are. It runs programs of
build/ (optimised, no sanitizer) and names the machine and the command, so that a figure can be had
again.
"""
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


class Report:
    def __init__(self):
        self.lines = []

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


def run(name):
    module = importlib.import_module(f"bench_{name}")
    report = Report()
    title = (module.__doc__ or name).strip().splitlines()[0].rstrip(".")
    load = os.getloadavg()[0]
    print(f"=== {title} ===")
    start = time.monotonic()
    module.measure(report)
    head = (f"## {title}\n\n`./run bench {name}` at {revision()}, {time.strftime('%Y-%m-%d')}, "
            f"{time.monotonic() - start:.0f} s; {machine()}; load before: {load:.1f}\n\n")
    page = PAGE.read_text() if PAGE.exists() else HEAD
    PAGE.write_text(replace_section(page, name, head + "\n".join(report.lines)))


def main(names):
    known = sorted(p.stem[len("bench_"):] for p in HERE.glob("bench_*.py"))
    for name in names or known:
        if name not in known:
            sys.exit(f"bench: there is no '{name}'; there are: {', '.join(known)}")
    os.environ.setdefault("MUSTER_BUILD", str(ROOT / "build"))
    os.environ.setdefault("MUSTER_GUEST", str(ROOT / "build/guest"))
    sys.path[:0] = [str(HERE), str(ROOT / "tests/system")]
    for name in names or known:
        run(name)


if __name__ == "__main__":
    main(sys.argv[1:])

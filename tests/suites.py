#!/usr/bin/python3
"""Runs the suites one after the other and adds their results up; called by ./run test.

Every suite leaves JUnit files below build-asan/results/SUITE; the totals are read from them (and
from meson's own report, which also knows of a test program that died). A suite that ends without a
result, or with an exit status that its results do not explain, counts as one failure: what did not
run has not passed.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-asan"
RESULTS = BUILD / "results"


class Totals:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def read_junit(path):
    """Totals of one JUnit file: one test, one count, however many ways and times it failed (pytest
    writes a second case for a test whose end failed too)."""
    worst = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        rank = 2 if kinds & {"failure", "error"} else 1 if "skipped" in kinds else 0
        key = case.get("classname"), case.get("name")
        worst[key] = max(rank, worst.get(key, 0))
    ranks = list(worst.values())
    return Totals(ranks.count(0), ranks.count(2), ranks.count(1))


def read_meson(results):
    """The unit tests: cmocka's files where there are such, else meson's word for the program."""
    totals = Totals()
    for line in (BUILD / "meson-logs/testlog-cmocka_xml.sh.json").read_text().splitlines():
        test = json.loads(line)
        program = [w for w in test["command"] if not w.endswith("cmocka_xml.sh")][0]
        try:
            one = read_junit(results / (Path(program).name + ".xml"))
        except (OSError, ET.ParseError):
            one = Totals()
        if test["result"] == "SKIP":
            one.skipped += 1
        elif test["result"] not in ("OK", "EXPECTEDFAIL"):
            one.failed += not one.failed
        elif not one.passed + one.failed + one.skipped:
            one.passed += 1
        totals.add(one)
    return totals


def read_pytest(results):
    return read_junit(results / "junit.xml")


class Suite:
    def __init__(self, name, command, read, minutes, tiers=("fast", "full")):
        self.name, self.command, self.read = name, command, read
        self.minutes, self.tiers = minutes, tiers

    def run(self, env):
        results = RESULTS / self.name
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        print(f"\n=== {self.name} ===", flush=True)
        start = time.monotonic()
        env = env | {"MUSTER_XML": str(results)}
        try:
            rc = subprocess.run(self.command(results), env=env, cwd=ROOT,
                                timeout=60 * self.minutes).returncode
        except subprocess.TimeoutExpired:
            print(f"{self.name}: not done after {self.minutes} minutes, ended", flush=True)
            rc = "timeout"
        try:
            totals = self.read(results)
        except (OSError, ValueError, KeyError, ET.ParseError) as e:
            print(f"{self.name}: left no results that can be read: {e}")
            totals = Totals(failed=1)
        if rc != 0 and not totals.failed:
            print(f"{self.name}: ended with {rc} though no test failed")
            totals.failed += 1
        return totals, time.monotonic() - start


def meson(results):
    return ["meson", "test", "-C", str(BUILD), "--no-rebuild", "--print-errorlogs", "--wrapper",
            str(ROOT / "tests/cmocka_xml.sh")]


def pytest(*paths):
    def command(results):
        return ["/usr/bin/python3", "-m", "pytest", "-c", str(ROOT / "tests/pytest.ini"),
                "--rootdir", str(ROOT), "--junitxml", str(results / "junit.xml"),
                *(["--full"] if ARGS.tier == "full" else []),
                *[str(ROOT / "tests" / p) for p in paths]]
    return command


def pytest_selected(results):
    return [*pytest()(results), *(ARGS.select if any(has_path(w) for w in ARGS.select) else
                                  [*ARGS.select, "tests/system", "tests/issues"])]


def has_path(word):
    return not word.startswith("-") and (ROOT / word.split("::")[0]).exists()


SUITES = [
    Suite("unit", meson, read_meson, 10),
    Suite("lint", pytest("lint"), read_pytest, 30),
    Suite("system", pytest("system", "issues"), read_pytest, 60),
    Suite("fuzz", pytest("fuzz"), read_pytest, 30, tiers=("full",)),
    Suite("vm", pytest("vm"), read_pytest, 60, tiers=("full",)),
]


def environment():
    """Of all suites: where the programs are, and sanitizers that end a process and leave a file."""
    env = dict(os.environ)
    env.update({
        "MUSTER_BUILD": str(BUILD),
        "MUSTER_INIT": str(ROOT / "build/src/init/muster-init"),
        "MUSTER_GUEST": str(ROOT / "build/guest"),
        "CT_TOOL": str(BUILD / "tests/system/ct_tool"),
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "ASAN_OPTIONS": "detect_stack_use_after_return=1:abort_on_error=0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    })
    return env


def main():
    env = environment()
    suites = [s for s in SUITES if ARGS.tier in s.tiers]
    if ARGS.select:
        suites = [Suite("selected", pytest_selected, read_pytest, 60)]
    rows, sum_ = [], Totals()
    for suite in suites:
        totals, seconds = suite.run(env)
        rows.append((suite.name, totals, seconds))
        sum_.add(totals)
    print("\n=== totals ===")
    for name, totals, seconds in rows:
        print(f"{name + ':':10} {totals} ({seconds:.0f} s)")
    print(sum_, flush=True)
    return 1 if sum_.failed or not sum_.passed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tier", choices=("fast", "full"), default="fast")
    parser.add_argument("select", nargs="*", help="arguments of pytest: only these system tests")
    ARGS = parser.parse_args()
    sys.exit(main())

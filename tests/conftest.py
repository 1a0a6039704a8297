"""Of all Python tests: the two tiers, and a time limit on each test."""
import faulthandler
import signal
import sys

import pytest


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run the tests of the full tier as well")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--full"):
        return
    later = [i for i in items if i.get_closest_marker("full")]
    if later:
        config.hook.pytest_deselected(items=later)
        items[:] = [i for i in items if not i.get_closest_marker("full")]


class TestTimeout(Exception):
    __test__ = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("timeout")
    seconds = marker.args[0] if marker else 120

    def ring(signo, frame):
        faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
        raise TestTimeout(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

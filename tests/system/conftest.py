"""Fixtures of the system tests.

`cluster` is one cluster of two nodes for most tests, kept from the first that wants it to the end of
the run; what a test starts in it is ended, and nothing may be left, before the next one begins.
`new_cluster` makes one for a single test, which may then kill and bend it as it likes.
"""
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import leftovers
from harness.cluster import LIVE, Cluster
from harness.images import image_file

IMAGES = os.environ.get("MUSTER_TEST_IMAGES", "base,nolibc,uid1000,mpi").split(",")

# What a shell starts in the background, or nohup(1), ignores them, and would hand that down: a signal
# that is handled here is as usual there.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

# What a running cluster keeps for its next session: an image's blobs stay mounted on a node (by loop
# devices where they are on a tmpfs), and the node's own cgroup stays.
KEPT_BY_NODES = (r"^mount \S+/run/n\d+/blob/",
                 r"^loop loop\d+ \S+/manager/blobs/sha256/",
                 r"^cgroup \S+/muster(/t\w+)?$")


def pytest_collection_modifyitems(items):
    """Tests that need root say so where they are; those of a cluster all do."""
    if os.geteuid() == 0:
        return
    for item in items:
        if {"cluster", "new_cluster"} & set(item.fixturenames):
            item.add_marker(pytest.mark.skip(reason="makes containers: needs root"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the ends of its daemons' logs."""
    report = (yield).get_result()
    if report.failed:
        clusters = {id(c): c for value in item.funcargs.values()
                    for c in (value.clusters if isinstance(value, Factory) else [value])
                    if isinstance(c, Cluster)}
        for cluster in clusters.values():
            report.sections += cluster.logs()


@pytest.fixture
def tmp_path(tmp_path):
    """pytest's own are closed to others, so that no user namespace could have its root below."""
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    return tmp_path


def fail_on(left, whose):
    if left:
        pytest.fail(f"left over by {whose}:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_of_all():
    before = leftovers.snapshot()
    yield
    fail_on(leftovers.settle(before), "this run of the tests")


class Before:
    """What was there before a test. That is what was there after the test before it, unless a fixture
    of more than one test has come or gone in between: a snapshot is a look at all of the machine.
    A plugin, since hooks of a conftest.py do not hear of the fixtures of a whole session."""

    def __init__(self):
        self.snapshot = None

    def get(self):
        return leftovers.snapshot() if self.snapshot is None else self.snapshot

    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope != "function":
            self.snapshot = None

    def pytest_fixture_post_finalizer(self, fixturedef):
        if fixturedef.scope != "function":
            self.snapshot = None


before_test = Before()


def pytest_configure(config):
    config.pluginmanager.register(before_test)


def processes_of_clusters():
    """Daemons that run as they should; a test may have restarted them."""
    return [f"^process {d.pid} " for c in LIVE for d in c.daemons if d.running()]


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Before every test and after it, the failed ones too."""
    for name in ("cluster", "w"):  # what outlives a test must be there before it is looked at
        if name in request.fixturenames:
            request.getfixturevalue("shared_cluster" if name == "cluster" else name)
    before = before_test.get()
    yield
    left, before_test.snapshot = leftovers.settle_to(
        before, ignore=[*KEPT_BY_NODES, *processes_of_clusters()])
    fail_on(left, request.node.name)


@pytest.fixture(scope="session")
def template(nothing_left_of_all):
    """The state folder of a manager that knows the images, to be copied into new clusters."""
    before = leftovers.snapshot()
    folder = Path(tempfile.mkdtemp(prefix="muster-template-"))
    cluster = Cluster(nodes=0)
    try:
        cluster.start()
        for name in IMAGES:
            cluster.cli("image", "import", image_file(name), "--name", name, check=0, timeout=300)
        cluster.add_user("alice", 20011)
        cluster.add_user("bob", 20012)
        users = dict(cluster.users)
        cluster.manager.stop()
        shutil.copytree(cluster.dir / "manager", folder / "manager", symlinks=True)
    finally:
        cluster.close()
    yield folder / "manager", users
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    fail_on(leftovers.settle(before), "making the images")


def make_cluster(template, **options):
    state, users = template
    cluster = Cluster(template=state, **options)
    cluster.users = dict(users)
    try:
        return cluster.start()
    except BaseException:
        cluster.close()
        raise


class Factory:
    """Makes clusters for one test, and takes them away after it."""

    def __init__(self, template):
        self.template, self.clusters = template, []

    def __call__(self, **options):
        cluster = make_cluster(self.template, **options)
        self.clusters.append(cluster)
        return cluster


@pytest.fixture
def new_cluster(template):
    factory = Factory(template)
    yield factory
    errors = []
    for cluster in factory.clusters:
        if not cluster.abandoned:
            try:
                cluster.stop_sessions()
                cluster.wait_free()
            except Exception as e:
                errors.append(str(e))
        try:
            cluster.close()
        except AssertionError as e:
            errors.append(str(e))
    assert not errors, "\n".join(errors)


@pytest.fixture(scope="session")
def shared_cluster(template, nothing_left_of_all):
    before = leftovers.snapshot()
    cluster = make_cluster(template, nodes=2, gpu="fake:h100:2")
    yield cluster
    cluster.close()
    fail_on(leftovers.settle(before), "the shared cluster")


@pytest.fixture
def cluster(shared_cluster):
    c = shared_cluster
    dead = [d for d in c.daemons if not d.running()]
    for d in dead:
        d.start()
    if dead:
        c.wait_manager()
        c.wait_nodes()
    pids = [d.pid for d in c.daemons]
    yield c
    for d in c.daemons:
        if d.running():
            d.thaw()
    c.stop_sessions()
    c.wait_free()
    for user in ("admin", *c.users):
        for v in c.api("GET", "/v1/volumes", user=user)["volumes"]:
            c.api("DELETE", f"/v1/volumes/{v['name']}?data=1", user=user)
    for name, node in c.nodes().items():
        if node.get("drained"):
            c.api("POST", f"/v1/nodes/{name}/resume", {})
    died = [d.name for d, pid in zip(c.daemons, pids) if d.pid == pid and not d.running()]
    reports = c.take_reports()
    assert not reports, "\n".join(reports)
    assert not died, f"died: {died}\n" + "\n".join(d.tail() for d in c.daemons if d.name in died)

"""Two first `muster up` at the same moment looked for a free port and free networks before either had
taken any, and chose the same."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import leftovers
from harness.cluster import GUEST, MUSTER


@pytest.mark.skipif(os.geteuid() != 0, reason="makes networks: needs root")
@pytest.mark.timeout(300)
def test_two_at_once_choose_different_ports_and_networks():
    before = leftovers.snapshot()
    with tempfile.TemporaryDirectory(prefix="muster-up-") as folder:
        os.chmod(folder, 0o755)
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MUSTER_GUEST": str(GUEST),
               "ASAN_OPTIONS": "detect_leaks=0"}
        dirs = [Path(folder, name) for name in ("one", "two")]
        try:
            ups = [subprocess.Popen([MUSTER, "up", "--nodes", "1", "--dir", d], env=env | {"HOME": f"{d}-home"},
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True) for d in dirs]
            for p in ups:
                out, _ = p.communicate(timeout=240)
                assert p.returncode == 0 and "1 node is up" in out, out
            made = [json.loads((d / "cluster.json").read_text()) for d in dirs]
            for key in ("port", "subnet", "tag"):
                assert len({m[key] for m in made}) == 2, made
            assert not Path("/run/muster-up/lock").exists()
        finally:
            downs = [subprocess.Popen([MUSTER, "down", "--purge", "--dir", d], env=env | {"HOME": f"{d}-home"},
                                      stdin=subprocess.DEVNULL) for d in dirs]
            codes = [p.wait(240) for p in downs]
        assert codes == [0, 0]
    left = leftovers.settle(before)
    assert not left, "left over by muster down:\n" + "\n".join(left)

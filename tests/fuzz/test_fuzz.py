"""Every fuzz target of build-fuzz on its corpus, and then on its own for FUZZ_SECONDS."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGETS = sorted(p.stem for p in Path(__file__).parent.glob("fuzz_*.c"))
SECONDS = int(os.environ.get("FUZZ_SECONDS", "60"))

pytestmark = [pytest.mark.full, pytest.mark.timeout(SECONDS + 300)]


def program(target):
    found = [p for p in (ROOT / "build-fuzz/tests/fuzz").rglob(target) if p.is_file()]
    assert found, f"{target} is not built: is it in tests/fuzz/meson.build?"
    return found[0]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_breaks_it(target, tmp_path):
    corpus = ROOT / "tests/fuzz" / target.replace("fuzz_", "corpus_", 1)
    assert corpus.is_dir() and any(corpus.iterdir()), f"{target} has no corpus in {corpus}"
    (tmp_path / "new").mkdir()
    r = subprocess.run(
        [program(target), f"-max_total_time={SECONDS}", "-timeout=10", "-rss_limit_mb=1024",
         f"-artifact_prefix={tmp_path}/", str(tmp_path / "new"), str(corpus)],
        capture_output=True, text=True)
    assert r.returncode == 0, r.stderr[-4000:]

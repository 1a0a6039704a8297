"""Images for tests, made by images/build.sh and kept in its cache; one file each."""
import fcntl
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CACHE = Path(os.environ.get("MUSTER_CACHE", "/var/cache/muster"))


def image_file(name):
    """Path of the image as one OCI archive; built when it is not there or its recipe is newer."""
    folder = CACHE / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tar"
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists() or path.stat().st_mtime < newest(ROOT / "images"):
            with tempfile.TemporaryDirectory(dir=folder) as new:
                made = Path(new) / f"{name}.tar"
                r = subprocess.run(["sh", str(ROOT / "images/build.sh"), name, str(made)],
                                   capture_output=True, text=True)
                assert r.returncode == 0, f"images/build.sh {name}: {r.stderr[-3000:]}"
                made.rename(path)
    return path


def newest(folder):
    return max((p.stat().st_mtime for p in folder.rglob("*") if p.is_file()), default=0)

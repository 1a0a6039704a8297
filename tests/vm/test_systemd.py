"""A machine with systemd and pure cgroup v2, which production has and our own machines may not: the
built programs are installed in it, and a cluster session runs, under qemu without KVM if need be.
One boot; each line of what it says is a test."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("MUSTER_CACHE", "/var/cache/muster")) / "vm"
GUEST = Path(os.environ.get("MUSTER_GUEST", ROOT / "build/guest"))
sys.path.insert(0, str(ROOT / "tests/system"))

pytestmark = [pytest.mark.full, pytest.mark.timeout(2400)]

CHECKS = re.findall(r'^check "([^"]+)"', (HERE / "inside.sh").read_text(), re.M)


def run(*argv, **more):
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True, **more)
    assert r.returncode == 0, f"{argv}: {r.returncode}\n{r.stdout[-2000:]}\n{r.stderr[-3000:]}"
    return r.stdout


def installed(folder):
    """The programs as a package would have them, and the Debian packages of their libraries."""
    run("meson", "install", "-C", ROOT / "build", "--no-rebuild", "--destdir", folder)
    shutil.copytree(GUEST, folder / "usr/lib/muster/guest", symlinks=True)
    for path in (folder / "usr/local").glob("*"):  # meson's default prefix
        shutil.copytree(path, folder / "usr" / path.name, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(folder / "usr/local", ignore_errors=True)
    packages = set()
    for program in [*(folder / "usr/bin").iterdir(), *(folder / "usr/libexec").rglob("*"),
                    *(folder / "usr/lib").rglob("muster-tls.so")]:  # opened by name
        if program.is_file():
            for library in re.findall(r"=> (/\S+)", subprocess.run(
                    ["ldd", program], capture_output=True, text=True).stdout):
                packages.add(owner(library))
    return sorted(packages)


def owner(path):
    for p in (path, os.path.realpath(path), "/usr" + path):
        r = subprocess.run(["dpkg-query", "-S", p], capture_output=True, text=True)
        if r.returncode == 0:
            return r.stdout.split(":")[0]
    raise AssertionError(f"no package has {path}")


def disk(packages):
    """The machine's disk, made again when its recipe or the wanted packages change."""
    recipe = (HERE / "make_disk.sh").read_bytes() + (
        ROOT / "scripts/packages/runtime.txt").read_bytes() + " ".join(packages).encode()
    folder = CACHE / hashlib.sha256(recipe).hexdigest()[:16]
    if not (folder / "disk.ext4").exists():
        for old in CACHE.glob("*"):
            shutil.rmtree(old, ignore_errors=True)
        run("bash", HERE / "make_disk.sh", folder, *packages)
    return folder


def payload(folder, tree):
    from harness.images import image_file
    run("tar", "-C", tree, "--owner=0", "--group=0", "-cf", folder / "programs.tar", ".")
    shutil.copy(image_file("base"), folder / "base.tar")
    shutil.copytree(ROOT / "tests/system/harness", folder / "harness",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("inside.sh", "leftovers_cli.py"):
        shutil.copy(HERE / name, folder / name)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """All that the machine said."""
    work = tmp_path_factory.mktemp("vm")
    tree = work / "tree"
    tree.mkdir()
    machine = disk(installed(tree))
    (work / "payload").mkdir()
    payload(work / "payload", tree)
    run("tar", "-C", work / "payload", "-cf", work / "payload.img", ".")
    run("truncate", "-s", "%1M", work / "payload.img")
    accel = "kvm" if os.access("/dev/kvm", os.W_OK) else "tcg,thread=multi,tb-size=512"
    argv = ["qemu-system-x86_64", "-accel", accel, "-cpu", "max", "-smp", "2", "-m", "2048",
            "-nodefaults", "-no-reboot", "-display", "none", "-device", "virtio-rng-pci",
            "-kernel", machine / "vmlinuz", "-initrd", machine / "initrd",
            "-append", "root=/dev/vda rw console=ttyS0 quiet loglevel=3 mitigations=off "
                       "systemd.show_status=0 systemd.unified_cgroup_hierarchy=1",
            "-drive", f"file={machine}/disk.ext4,format=raw,if=virtio,snapshot=on,cache=unsafe",
            "-drive", f"file={work}/payload.img,format=raw,if=virtio,readonly=on",
            "-serial", f"file:{work}/console", "-serial", f"file:{work}/out"]
    try:
        subprocess.run([str(a) for a in argv], timeout=1800, check=False)
    except subprocess.TimeoutExpired:
        pass
    text = (work / "out").read_text(errors="replace")
    print(text)
    if "END " not in text:
        text += "\n(the machine did not get to its end)\n" + (
            work / "console").read_text(errors="replace")[-3000:]
    shutil.rmtree(work)
    return text


@pytest.mark.parametrize("name", CHECKS)
def test_in_a_machine_with_systemd(said, name):
    if f"\nok {name}\n" in said.replace("\r", ""):
        return
    line = next((x for x in said.splitlines() if x.startswith(f"not ok {name}")), None)
    pytest.fail(line or f"'{name}' was not reached:\n{said[-3000:]}", pytrace=False)

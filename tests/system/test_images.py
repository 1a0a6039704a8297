"""The image recipes: layouts that others can read, layers that say exactly what changed.

The images themselves come from the cache of images/build.sh, which needs root and a Debian mirror
to fill it.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parents[2] / "images"
BUILD = IMAGES / "build.sh"
sys.path.insert(0, str(IMAGES))
import layer_diff  # noqa: E402

# the first to ask for an image waits for its packages
pytestmark = pytest.mark.timeout(3600)
needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mmdebstrap"), reason="needs root and mmdebstrap")


# --- layers ---------------------------------------------------------------------------------------


class Tree:
    """A root folder as a tar, in the order of the calls."""

    def __init__(self, path):
        self.path = path
        self.tar = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)
        self.add(".", tarfile.DIRTYPE, mode=0o755)

    def add(self, name, kind=tarfile.REGTYPE, data=b"", target="", xattrs=None, **attributes):
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size, info.mtime = kind, target, len(data), 1000
        info.mode = attributes.pop("mode", 0o755 if kind == tarfile.DIRTYPE else 0o644)
        info.pax_headers = {f"SCHILY.xattr.{k}": v for k, v in (xattrs or {}).items()}
        for name, value in attributes.items():
            setattr(info, name, value)
        self.tar.addfile(info, io.BytesIO(data))
        return self

    def dir(self, name, **attributes):
        return self.add(name, tarfile.DIRTYPE, **attributes)

    def file(self, name, data=b"x", **attributes):
        return self.add(name, data=data, **attributes)

    def close(self):
        self.tar.close()
        return self.path


@pytest.fixture
def diff(tmp_path):
    """Two functions that fill trees in; gives the members of the layer and their content."""

    def run(below, whole):
        paths = []
        for name, fill in (("below", below), ("whole", whole)):
            tree = Tree(tmp_path / name)
            fill(tree)
            paths.append(tree.close())
        out = io.BytesIO()
        layer_diff.diff(*paths, out)
        out.seek(0)
        with tarfile.open(fileobj=out) as tar:
            return {m.name: (m, tar.extractfile(m).read() if m.isfile() else None) for m in tar}

    return run


def test_equal_trees_make_an_empty_layer(diff):
    def tree(t):
        t.dir("etc").file("etc/passwd").add("etc/alias", tarfile.LNKTYPE, target="etc/passwd")

    assert diff(tree, tree) == {}


def test_a_new_file_comes_with_the_folders_above_it(diff):
    layer = diff(
        lambda t: t.dir("a", mode=0o700).dir("a/b", uid=7).file("a/b/old"),
        lambda t: t.dir("a", mode=0o700).dir("a/b", uid=7).file("a/b/new", b"data").file("a/b/old"),
    )
    assert list(layer) == [".", "a", "a/b", "a/b/new"]
    assert layer["a"][0].mode == 0o700
    assert layer["a/b"][0].uid == 7
    assert layer["a/b/new"][1] == b"data"


@pytest.mark.parametrize("change", [{"mode": 0o600}, {"uid": 5}, {"gid": 5}, {"mtime": 2000},
                                    {"data": b"y"}, {"xattrs": {"security.capability": "\x01\0\0\x02"}}])  # fmt: skip
def test_any_change_of_a_file_is_seen(diff, change):
    layer = diff(lambda t: t.file("f"), lambda t: t.file("f", **change))
    assert list(layer) == [".", "f"]
    for key, value in change.items():
        if key == "xattrs":
            assert layer["f"][0].pax_headers["SCHILY.xattr.security.capability"] == value["security.capability"]
        elif key == "data":
            assert layer["f"][1] == value
        else:
            assert getattr(layer["f"][0], key) == value


def test_what_is_gone_is_whited_out_once(diff):
    layer = diff(
        lambda t: t.dir("a").file("a/keep").dir("a/gone").file("a/gone/x").file("a/file"),
        lambda t: t.dir("a").file("a/keep"),
    )
    assert list(layer) == [".", "a", "a/.wh.file", "a/.wh.gone"]


def test_a_folder_of_which_nothing_remained_is_opaque(diff):
    layer = diff(
        lambda t: t.dir("a").file("a/x").dir("a/y").file("a/y/z"),
        lambda t: t.dir("a").file("a/new"),
    )
    assert list(layer) == [".", "a", "a/.wh..wh..opq", "a/new"]


def test_a_folder_that_became_a_link_needs_no_whiteout(diff):
    layer = diff(
        lambda t: t.dir("lib").file("lib/x"),
        lambda t: t.add("lib", tarfile.SYMTYPE, target="usr/lib"),
    )
    assert list(layer) == [".", "lib"]
    assert layer["lib"][0].linkname == "usr/lib"


@pytest.mark.parametrize("dot", ["", "./"])
def test_a_hard_link_into_the_layer_below_becomes_a_copy(diff, dot):
    layer = diff(
        lambda t: t.file(f"{dot}a", b"data"),
        lambda t: t.file(f"{dot}a", b"data").add(f"{dot}b", tarfile.LNKTYPE, target=f"{dot}a"),
    )
    assert list(layer) == [".", "b"]
    assert layer["b"][0].isreg() and layer["b"][1] == b"data"


@pytest.mark.parametrize("dot", ["", "./"])
def test_a_hard_link_within_the_layer_stays_one(diff, dot):
    def linked(t):
        t.file(f"{dot}a", b"data").add(f"{dot}b", tarfile.LNKTYPE, target=f"{dot}a")

    layer = diff(lambda t: t, linked)
    assert layer["b"][0].islnk() and layer["b"][0].linkname == "a"


# --- images ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")

    def get(name):
        if not (folder / name).exists():
            subprocess.run([BUILD, name, folder / name], check=True)
        return folder / name

    return get


def blob(layout, descriptor):
    data = (layout / "blobs/sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"]
    assert len(data) == descriptor["size"]
    return data


def open_image(layout):
    """Configuration and layers, with every digest checked."""
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(layout, entry))
    config = json.loads(blob(layout, manifest["config"]))
    layers = [gzip.decompress(blob(layout, layer)) for layer in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers]
    return config, layers


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {os.path.normpath(m.name): m for m in tar}


def refused(*args):
    done = subprocess.run([BUILD, *args], capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_a_wrong_call_is_told(tmp_path):
    assert "usage" in refused()
    assert "there is no recipe 'windows'" in refused("windows", tmp_path / "out")


@needs_root
def test_a_folder_that_is_something_else_is_not_replaced(tmp_path):
    (tmp_path / "precious").touch()
    assert "is no OCI layout" in refused("nolibc", tmp_path)
    assert (tmp_path / "precious").exists()


@needs_root
def test_nolibc_is_one_static_program(image, tmp_path):
    config, (layer,) = open_image(image("nolibc"))
    assert set(members(layer)) == {".", "bin", "bin/show"}
    assert config["config"] == {"Cmd": ["/bin/show"], "Env": ["GREETING=hello from nolibc"], "WorkingDir": "/"}
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        tar.extractall(tmp_path)
    shown = subprocess.run(
        [shutil.which("chroot"), tmp_path, "/bin/show", "0"], env={"A": "b c"}, capture_output=True, text=True, check=True
    ).stdout
    assert shown.splitlines()[1:] == ["cwd /", "arg /bin/show", "arg 0", "env A=b c"]
    waiting = subprocess.Popen([tmp_path / "bin/show"], stdout=subprocess.PIPE)
    assert waiting.stdout.readline().startswith(b"pid ")
    waiting.terminate()
    assert waiting.wait(5) == 0
    waiting.stdout.close()


@needs_root
@pytest.mark.parametrize("name", ["base", "mpi", "uid1000", "nolibc"])
def test_others_can_read_it(image, name, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("needs skopeo")
    subprocess.run(["skopeo", "copy", "-q", f"oci:{image(name)}", f"dir:{tmp_path}/copy"], check=True)
    subprocess.run([BUILD, name, tmp_path / "image.tar"], check=True)
    out = subprocess.run(
        ["skopeo", "inspect", "--config", f"oci-archive:{tmp_path}/image.tar"], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(out)["os"] == "linux"


@needs_root
def test_a_second_build_is_instant_and_the_same(image, tmp_path):
    first = image("nolibc")
    began = time.monotonic()
    subprocess.run([BUILD, "nolibc", tmp_path / "again"], check=True)
    assert time.monotonic() - began < 5  # 0.2 s on a quiet machine; a build of base takes a minute
    assert (tmp_path / "again/index.json").read_bytes() == (first / "index.json").read_bytes()


@needs_root
def test_a_build_from_nothing_gives_the_same_image(image, tmp_path):
    subprocess.run([BUILD, "nolibc", tmp_path / "again"], check=True, env=os.environ | {"MUSTER_CACHE": str(tmp_path)})
    assert (tmp_path / "again/index.json").read_bytes() == (image("nolibc") / "index.json").read_bytes()


@needs_root
def test_base_is_small_and_has_its_tools_and_nothing_of_the_host(image):
    config, (layer,) = open_image(image("base"))
    files = members(layer)
    assert sum(m.size for m in files.values()) < 200 << 20
    for tool in ("bash", "curl", "ping", "ps", "nc", "less", "apt-get"):
        assert f"usr/bin/{tool}" in files
    assert "usr/bin/ip" in files or "usr/sbin/ip" in files or "bin/ip" in files
    assert not any("security.capability" in key for m in files.values() for key in m.pax_headers)
    assert "etc/hostname" not in files
    assert files["etc/resolv.conf"].size == 0
    assert not any(m.isdev() for m in files.values())
    assert config["config"]["Cmd"] == ["/bin/bash"]


@needs_root
def test_uid1000_has_a_user_and_takes_things_away(image):
    base_config, base_layers = open_image(image("base"))
    config, layers = open_image(image("uid1000"))
    assert layers[:-1] == base_layers
    assert config["config"]["Env"] == [*base_config["config"]["Env"], "HOME=/home/someone"]
    assert config["config"]["Cmd"] == base_config["config"]["Cmd"]
    files = members(layers[-1])
    assert files["home/someone"].uid == files["home/someone/.keep"].uid == 1000
    assert {"etc/.wh.issue.net", "usr/share/.wh.bash-completion", "etc/skel/.wh..wh..opq"} <= set(files)
    assert files["etc/skel/only"].islnk() or files["etc/skel/again"].islnk()
    # only what the recipe did
    assert {n for n in files if not n.startswith(("home/someone", "etc/skel"))} == {
        ".", "etc", "etc/group", "etc/passwd", "etc/.wh.issue.net", "home", "usr", "usr/share",
        "usr/share/.wh.bash-completion",
    }  # fmt: skip


@needs_root
def test_mpi_adds_open_mpi_to_base(image):
    _, base_layers = open_image(image("base"))
    config, layers = open_image(image("mpi"))
    assert layers[:-1] == base_layers
    assert "OMPI_MCA_plm_rsh_agent=/opt/muster/bin/ssh" in config["config"]["Env"]
    files = members(layers[-1])
    assert {"usr/bin/mpirun.openmpi", "usr/bin/python3"} <= set(files)
    assert "usr/bin/bash" not in files

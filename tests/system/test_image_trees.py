"""Images of Debian packages, written by the tools that people use: ours is the tree that umoci unpacks."""

import os
import shutil
import subprocess

import pytest

from harness.images import image_file
from image_tools import Importer, dump_tree, mounted

NEEDED = ("umoci", "skopeo", "buildah", "mmdebstrap")
pytestmark = [
    pytest.mark.timeout(3600),  # the first to ask for an image waits for its packages
    pytest.mark.skipif(os.geteuid() != 0, reason="owners and mounts need root"),
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"needs {', '.join(NEEDED)}"),
]


def run(*argv, **more):
    subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.DEVNULL, **more)


def skopeo(*argv):
    run("skopeo", "--insecure-policy", "copy", "-q", *argv)


def layout_of(name, folder):
    """The image of images/ as an OCI layout in a folder."""
    skopeo(f"oci-archive:{image_file(name)}", f"oci:{folder}:image")
    return folder


def repacked(name, folder, change):
    """The image with one layer more, of what change does to its unpacked root."""
    layout_of(name, folder / "layout")
    run("umoci", "unpack", "--image", f"{folder}/layout:image", folder / "bundle")
    change(folder / "bundle/rootfs")
    run("umoci", "repack", "--image", f"{folder}/layout:image", folder / "bundle")
    shutil.rmtree(folder / "bundle")
    return folder / "layout"


def remove_things(root):
    shutil.rmtree(root / "usr/share/doc")
    (root / "etc/issue").unlink()
    (root / "usr/share/doc").write_text("a file where a folder was")


def replace_things(root):
    shutil.rmtree(root / "etc/skel")
    (root / "etc/skel").mkdir(mode=0o2750)
    os.chown(root / "etc/skel", 5, 50)
    (root / "etc/skel/new").write_text("new")
    (root / "etc/alias").symlink_to("/etc/skel/new")


def special_things(root):
    data = root / "srv/data"
    data.mkdir()
    (data / "a").write_bytes(os.urandom(300_000))
    os.link(data / "a", data / "b")
    os.mkfifo(data / "fifo", 0o600)
    with open(data / "sparse", "wb") as f:
        f.truncate(5_000_000)
        f.write(b"end")
    (data / ("n" * 255)).write_text("long")
    os.setxattr(data / "a", "user.note", b"x\0y")
    subprocess.run(["setcap", "cap_net_raw+ep", str(data / "b")], check=True)
    os.chmod(data / "sparse", 0o6711)
    os.utime(data, (1, 1_234_567_890.25))


def buildah(folder):
    storage = ["buildah", f"--root={folder}/storage", f"--runroot={folder}/run", "--storage-driver=vfs"]
    work = layout_of("base", folder / "from")
    made = subprocess.run([*storage, "from", f"oci:{work}:image"], check=True, capture_output=True,
                          text=True).stdout.split()[-1]
    (folder / "added").write_text("added by buildah")
    run(*storage, "copy", "-q", "--chown", "7:8", made, folder / "added", "/opt/new/folder/added")
    run(*storage, "config", "--entrypoint", '["/bin/sh"]', made)
    run(*storage, "commit", "-q", made, f"oci:{folder}/layout:image")
    run(*storage, "rm", made)
    return folder / "layout"


def archive_of(name):
    """By way of docker's form; what umoci unpacks is the layout."""
    def make(folder):
        layout_of(name, folder / "layout")
        skopeo(f"oci:{folder}/layout:image", f"docker-archive:{folder}/image.tar:x:y")
        return folder / "layout", folder / "image.tar"
    return make


def compressed(how):
    def make(folder):
        layout_of("mpi", folder / "first")
        skopeo(f"--dest-compress-format={how}", "--dest-compress", f"oci:{folder}/first:image",
               f"dir:{folder}/dir")
        skopeo(f"dir:{folder}/dir", f"oci:{folder}/layout:image")
        return folder / "layout"
    return make


IMAGES = {
    "base": lambda f: layout_of("base", f / "layout"),
    "mpi": lambda f: layout_of("mpi", f / "layout"),
    "uid1000": lambda f: layout_of("uid1000", f / "layout"),
    "nolibc": lambda f: layout_of("nolibc", f / "layout"),
    "umoci, removed": lambda f: repacked("base", f, remove_things),
    "umoci, replaced": lambda f: repacked("uid1000", f, replace_things),
    "umoci, special": lambda f: repacked("mpi", f, special_things),
    "buildah": buildah,
    "docker-archive": archive_of("mpi"),
    "docker-archive, uid1000": archive_of("uid1000"),
    "gzip again": compressed("gzip"),
}


def comparable(tree):
    """Less what is not the same by nature: links between layers are copies with us, the root's time,
    and what overlayfs keeps for itself."""
    for entry in tree.values():
        entry.pop("links", None)
        entry["xattrs"] = {k: v for k, v in entry["xattrs"].items()
                           if not k.startswith(("trusted.overlay.", "user.overlay.", "user.rootlesscontainers"))}
    tree[""]["mtime"] = None
    return tree


@pytest.mark.parametrize("name", IMAGES)
def test_it_is_the_tree_that_umoci_unpacks(name, tmp_path):
    made = IMAGES[name](tmp_path)
    layout, source = made if isinstance(made, tuple) else (made, made)
    run("umoci", "unpack", "--image", f"{layout}:image", tmp_path / "unpacked")
    imp = Importer(tmp_path / "i")
    got = comparable(mounted(imp, imp(source).image))
    want = comparable(dump_tree(str(tmp_path / "unpacked/rootfs")))
    assert sorted(got) == sorted(want)
    different = [p for p in want if got[p] != want[p]]
    assert not different, [(p, got[p], want[p]) for p in different[:5]]


def test_what_mmdebstrap_writes_is_an_image(tmp_path):
    """The first layer of base is mmdebstrap's tar, changed in nothing but order."""
    layout_of("base", tmp_path / "layout")
    run("umoci", "unpack", "--image", f"{tmp_path}/layout:image", tmp_path / "unpacked")
    rootfs = tmp_path / "rootfs.tar"
    run("tar", "--create", "--xattrs", "--xattrs-include=*", "--numeric-owner", "--format=pax",
        "--file", rootfs, "--directory", tmp_path / "unpacked/rootfs", ".")
    imp = Importer(tmp_path / "i")
    got = comparable(mounted(imp, imp(rootfs).image))
    assert got == comparable(dump_tree(str(tmp_path / "unpacked/rootfs")))

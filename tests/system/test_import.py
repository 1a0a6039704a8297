"""muster-import against images made here: what it unpacks, shares, refuses and leaves behind."""

import glob
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

import image_tools as it
from harness.tiers import some
from image_tools import Entry, Importer, Layout, make_tar, mounted, reference



pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


@pytest.fixture
def imp(tmp_path):
    i = Importer(tmp_path)
    yield i
    assert i.leftovers() == []
    if os.path.isdir(i.blobs):
        i.check_blobs()


def same(got, want):
    assert sorted(got) == sorted(want)
    for path in want:
        assert got[path] == want[path], path


def layout(tmp_path, layers, how="gzip", **kw):
    l = Layout(tmp_path / f"layout{len(os.listdir(tmp_path))}")
    form = kw.pop("xattr_form", "SCHILY.xattr.")
    l.index(l.manifest([make_tar(x, form) for x in layers], how, **kw))
    return l


def check(imp, tmp_path, *layers, **kw):
    """Import the layers and compare with the reference; the image."""
    image = imp(layout(tmp_path, layers, **kw).path).image
    same(mounted(imp, image), reference(*layers))
    return image


def d(name, **kw):
    return Entry(name, "dir", **kw)


def f(name, data=b"text", **kw):
    return Entry(name, "file", data, **kw)


def ln(name, target, **kw):
    return Entry(name, "link", target=target, **kw)


def hard(name, target):
    return Entry(name, "hard", target=target)


def wh(path):
    head, _, tail = path.rpartition("/")
    return f((head + "/" if head else "") + ".wh." + tail, b"")


def opq(path):
    return f((path + "/" if path else "") + ".wh..wh..opq", b"")


BASE = [d("usr", mode=0o755), d("usr/lib", mode=0o2775, gid=50), f("usr/lib/a", b"a" * 5000),
        f("usr/lib/b", b"bb", mode=0o4755, uid=3, gid=4), ln("lib", "usr/lib"),
        d("etc", mode=0o750, uid=1, mtime=it.MTIME + 0.25), f("etc/x", b"1"),
        d("etc/sub"), f("etc/sub/y", b"2"), f("etc/sub/z", b"3")]


# ---- layer semantics ---------------------------------------------------------------------------


def test_content_of_any_size_and_kind_is_kept(imp, tmp_path):
    rng = random.Random(7)
    text, noise, zeros = b"some text, again. " * 20000, rng.randbytes(400_000), bytes(400_000)
    sizes = [1, 3000, 4032, 4033, 4095, 4096, 4097, 8192, 131071, 131072, 131073, 300_001]
    files = [f(f"{kind}{n}", data[:n]) for n in sizes
             for kind, data in (("text", text), ("noise", noise), ("zeros", zeros))]
    mixed = noise[:200_000] + zeros + text[:150_000] + zeros * 3 + noise[:5000] + text[:131072]
    files += [f("mixed", mixed), f("late", zeros * 2 + b"x"), f("early", text[:140_000] + zeros * 4)]
    check(imp, tmp_path, [d("d"), *files])


def test_folders_of_many_names_and_attributes_of_many_bytes_are_kept(imp, tmp_path):
    many = [f(f"d/{'n' * (i % 200)}{i}", b"", mode=0o600 + i % 64) for i in range(3000)]
    odd = [d("d"), f("d/!"), f("d/-"), f("d/.a"), f("d/..b"), f("d/~"), ln("d/long", "x/" * 2040)]
    attributes = {f"user.{'n' * 200}{i}": bytes([i]) * 600 for i in range(60)}
    check(imp, tmp_path, [*odd, *many, f("a", b"x" * 4000, xattrs=attributes),
                          d("e", xattrs=attributes), f("e/f")])


def test_the_same_layer_is_the_same_blob_on_every_machine(imp, tmp_path):
    layers = [BASE + [f(f"etc/{i}", os.urandom(20) * i) for i in range(300)]]
    first = imp(layout(tmp_path, layers).path).image["layers"]
    other = Importer(tmp_path / "other")
    assert other(layout(tmp_path, layers).path).image["layers"] == first


def test_fsck_finds_nothing_wrong(imp, tmp_path):
    image = check(imp, tmp_path, [d("d"), f("d/big", bytes(range(256)) * 2000), f("d/small"),
                                  ln("l", "d"), f("x", xattrs={"user.a": b"1"})])
    for l in image["layers"]:
        subprocess.run(["fsck.erofs", "--extract", f"{imp.blobs}/sha256/{l['digest'][7:]}"],
                       check=True)


def test_a_single_layer_keeps_modes_owners_times_links_and_attributes(imp, tmp_path):
    cap = bytes.fromhex("0100000200200000000000000000000000000000")
    check(imp, tmp_path, BASE + [
        hard("usr/lib/a2", "usr/lib/a"), Entry("pipe", "fifo", mode=0o600),
        f("bin/ping", b"#!", mode=0o755, xattrs={"security.capability": cap}),
        f("attr", xattrs={"user.k": b"v", "user.empty": b"", "trusted.t": b"\x00\xff"}),
        f("late", mtime=it.MTIME + 0.015625), f("uid", uid=4000000000, gid=65536)])


def test_attributes_in_libarchives_form_are_kept(imp, tmp_path):
    check(imp, tmp_path, [f("attr", xattrs={"user.k": b"\x00v"})], xattr_form="LIBARCHIVE.xattr.")


def test_overlay_attributes_and_host_labels_of_an_image_are_dropped(imp, tmp_path):
    evil = {"trusted.overlay.opaque": b"y", "trusted.overlay.redirect": b"/etc",
            "security.selinux": b"x"}
    image = check(imp, tmp_path, BASE, [d("etc", xattrs=evil)])
    assert "etc/x" in mounted(imp, image)


def test_a_whiteout_hides_a_file_and_a_tree(imp, tmp_path):
    check(imp, tmp_path, BASE, [wh("usr/lib/a"), wh("etc")])


def test_an_opaque_folder_shows_nothing_from_below_wherever_the_marker_stands(imp, tmp_path):
    check(imp, tmp_path, BASE, [d("etc"), opq("etc"), f("etc/new")])
    check(imp, tmp_path, BASE, [d("etc"), f("etc/new"), opq("etc")])
    check(imp, tmp_path, BASE, [f("etc/sub/new"), opq("etc")])
    check(imp, tmp_path, BASE, [opq("etc"), f("etc/sub/new")])


def test_a_name_whited_out_and_made_again_is_the_new_one_in_either_order(imp, tmp_path):
    for a in ([f("etc/x", b"new")], [d("etc/x"), f("etc/x/in")], [ln("etc/x", "sub")]):
        check(imp, tmp_path, BASE, [wh("etc/x")] + a)
        check(imp, tmp_path, BASE, a + [wh("etc/x")])
    check(imp, tmp_path, BASE, [wh("etc"), d("etc"), f("etc/n")])
    check(imp, tmp_path, BASE, [d("etc"), f("etc/n"), wh("etc")])
    check(imp, tmp_path, BASE, [wh("etc"), f("etc/sub/n")])
    check(imp, tmp_path, BASE, [f("etc/sub/n"), wh("etc")])


def test_a_whiteout_of_what_is_not_there_leaves_no_ghost(imp, tmp_path):
    check(imp, tmp_path, BASE, [d("new"), wh("new/gone"), f("new/here"), wh("nothing")],
          [wh("a/b/c")])
    check(imp, tmp_path, [d("only"), wh("only/x")])


def test_an_opaque_root_drops_the_layers_below(imp, tmp_path):
    image = check(imp, tmp_path, BASE, [opq(""), d("fresh")])
    assert len(image["layers"]) == 1


def test_folders_that_are_only_implied_look_as_they_do_below(imp, tmp_path):
    check(imp, tmp_path, BASE + [d("a", mode=0o711, uid=9, xattrs={"user.a": b"1"}), d("a/b",
          mode=0o1777)], [f("a/b/new"), f("usr/lib/c")], [f("a/b/newer"), wh("a/b/new")])


def test_links_among_the_parents_are_followed_inside_the_root(imp, tmp_path):
    check(imp, tmp_path, BASE + [ln("abs", "/usr/lib"), ln("up", "../../../usr")],
          [f("lib/c"), f("abs/d"), f("up/lib/e"), wh("lib/a"), hard("lib/b2", "lib/c")])
    check(imp, tmp_path, BASE, [ln("here", "etc/sub"), f("here/n"), d("lib"), f("lib/real")])
    check(imp, tmp_path, [d("a"), ln("a/l", "../../../../etc"), f("a/l/passwd", b"root"),
                          ln("x", "/"), f("x/y/z")])


def test_a_hard_link_into_a_lower_layer_is_a_copy(imp, tmp_path):
    check(imp, tmp_path, BASE, [hard("copy", "usr/lib/b"), hard("copy2", "lib/a"),
                                hard("copy3", "copy")])


def test_files_replace_folders_and_folders_files(imp, tmp_path):
    check(imp, tmp_path, BASE, [f("etc", b"file"), d("usr/lib/a"), f("usr/lib/a/in"), d("lib")],
          [d("etc"), f("etc/again")])


def test_a_name_that_comes_twice_in_a_layer_is_the_last_one(imp, tmp_path):
    check(imp, tmp_path, BASE, [f("n", b"1"), hard("m", "n"), f("n", b"2"), d("q"), f("q/r"),
                                f("q", b"file"), d("q"), f("q/s"), d("q", mode=0o700)])


def test_an_unlisted_root_looks_like_the_one_below(imp, tmp_path):
    i1 = check(imp, tmp_path, [d(".", mode=0o555, uid=2)] + BASE, [f("top")])
    i2 = check(imp, tmp_path, BASE, [f("top")])
    assert i1["layers"][1]["digest"] != i2["layers"][1]["digest"]
    check(imp, tmp_path, [d(".", mode=0o700, xattrs={"user.r": b"1"})], [f("top")], [d("./")])


def test_devices_are_skipped_and_a_character_device_0_0_is_no_whiteout(imp, tmp_path):
    null = Entry("usr/lib/a", "dev")
    check(imp, tmp_path, BASE, [null, hard("dev2", "usr/lib/a")][:1])


def test_names_are_bounded_and_normalised(imp, tmp_path):
    deep = "/".join(["d" * 250] * 16)
    check(imp, tmp_path, [f("../../../escape"), f("/abs/./x//y"), f("a/../b/c"),
                          f(deep[:3900].rstrip("/")), f("n" * 254)])
    for name in ("n" * 256, "/".join(["e" * 255] * 17), "/".join("d" * 600)):
        text = imp(layout(tmp_path, [[f(name)]]).path).error
        assert "a part of the name is over 25" in text or "the path is longer than" in text or "too deep" in text
        assert "layer 1 of 1" in text


def test_names_that_are_not_utf_8_are_kept(imp, tmp_path):
    name = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
    check(imp, tmp_path, [f(name), ln("to", name), f("\u96ea\x01\n")])


def test_bookkeeping_of_aufs_is_left_out(imp, tmp_path):
    image = imp(layout(tmp_path, [[d(".wh..wh.plnk"), f(".wh..wh.plnk/1"), f(".wh..wh.aufs"),
                                   f("x")]]).path).image
    assert sorted(mounted(imp, image)) == ["", "x"]


def random_layer(rng, names, n):
    """Entries that a tool could have written; links point at files that are there for sure."""
    entries, files = [], []
    dirs = [""]
    for _ in range(n):
        base = rng.choice(dirs)
        path = (base + "/" if base else "") + rng.choice(names)
        k = rng.random()
        mode, uid = rng.choice([0o755, 0o700, 0o1777, 0o2750]), rng.choice([0, 1, 1000])
        if any(e.name == path or e.name.startswith(path + "/") for e in entries):
            continue
        if k < 0.35:
            entries.append(d(path, mode=mode, uid=uid, mtime=it.MTIME + rng.randrange(1000)))
            dirs.append(path)
        elif k < 0.65:
            entries.append(f(path, bytes([rng.randrange(256)]) * rng.randrange(2000), uid=uid))
            files.append(path)
        elif k < 0.72:
            entries.append(ln(path, rng.choice(["..", ".", "/", "x", "/x/y", "../a"])))
        elif k < 0.78 and files:
            entries.append(hard(path, rng.choice(files)))
        elif k < 0.92:
            entries.append(wh(path))
        else:
            entries.append(opq(base))
            if base == "":
                entries.pop()
    return entries


@pytest.mark.parametrize("seed", some(range(int(os.environ.get("MUSTER_TEST_SEEDS", "25"))), range(8)))
def test_random_layers_equal_the_reference(imp, tmp_path, seed):
    rng = random.Random(seed)
    # Links as parents are in tests of their own: their loops make the reference ambiguous.
    layers = [random_layer(rng, ["a", "b", "c", "x", "y"], rng.randrange(3, 25))
              for _ in range(rng.randrange(2, 6))]
    for l in layers:
        for e in l:
            if e.kind == "link":
                e.target = "dangling/" + e.target.strip("/.")
    print(seed, layers)
    check(imp, tmp_path, *layers, how=rng.choice(["none", "gzip", "zstd"]))


# ---- kinds of source ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["none", "gzip", "zstd", "xz"])
def test_a_rootfs_tar_becomes_an_image(imp, tmp_path, how):
    tar = make_tar(BASE)
    (tmp_path / "rootfs").write_bytes(it.pack(tar, how))
    image = imp(tmp_path / "rootfs", "--name", "lab.example:5000#team/base:1").image
    same(mounted(imp, image), reference(BASE))
    assert image["id"] == it.sha(tar)
    assert image["name"] == "lab.example:5000/team/base:1"
    assert image["config"] == {"env": [], "entrypoint": [], "cmd": [], "workdir": "", "user": "",
                               "stop_signal": "SIGTERM"}
    again = imp(tmp_path / "rootfs")
    assert again.image["layers"] == image["layers"] and again.steps("pack") == []


@pytest.mark.parametrize("how", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("docker", [False, True])
def test_an_oci_layout_becomes_an_image(imp, tmp_path, how, docker):
    l = layout(tmp_path, [BASE, [wh("etc/x")]], how, docker=docker, Env=["A=1", "B=x=y", "bad"],
               Entrypoint=["/e", "a b"], Cmd=["c"], WorkingDir="/w", User="1:2",
               StopSignal="SIGUSR1")
    image = imp(l.path).image
    same(mounted(imp, image), reference(BASE, [wh("etc/x")]))
    assert image["id"] == l.config["digest"]
    assert image["config"] == {"env": ["A=1", "B=x=y"], "entrypoint": ["/e", "a b"], "cmd": ["c"],
                               "workdir": "/w", "user": "1:2", "stop_signal": "SIGUSR1"}
    assert image["size"] == sum(x["size"] for x in image["layers"])


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_of_a_layout_and_a_docker_archive_become_images(imp, tmp_path, mode):
    l = layout(tmp_path, [BASE, [f("two")]])
    i1 = imp(l.tar(tmp_path / "oci.tar", mode)).image
    tars = [make_tar(BASE), make_tar([f("two")])]
    i2 = imp(it.docker_archive(tmp_path / "docker.tar", tars, mode=mode, Cmd=None)).image
    same(mounted(imp, i2), reference(BASE, [f("two")]))
    assert i1["layers"] == i2["layers"]
    assert i2["name"] == "demo:latest"


def test_what_skopeo_writes_as_docker_archive_is_read(imp, tmp_path):
    l = layout(tmp_path, [BASE, [f("two")], [wh("two")]])
    subprocess.run(["skopeo", "--insecure-policy", "copy", f"oci:{l.path}",
                    f"docker-archive:{tmp_path}/d.tar:demo:7"], check=True,
                   stdout=subprocess.DEVNULL)
    image = imp(tmp_path / "d.tar").image
    same(mounted(imp, image), reference(BASE, [f("two")], [wh("two")]))
    assert image["name"].endswith("demo:7")


def test_the_entry_for_this_architecture_is_taken_from_nested_indexes(imp, tmp_path):
    l = Layout(tmp_path / "l")
    other = l.manifest([make_tar([f("arm")])], arch="arm64")
    mine = l.manifest([make_tar([f("amd")])])
    attest = dict(other, platform={"os": "unknown", "architecture": "unknown"})
    inner = l.blob(json.dumps({"schemaVersion": 2, "manifests": [
        attest, dict(other, platform={"os": "linux", "architecture": "arm64", "variant": "v8"}),
        dict(mine, platform={"os": "linux", "architecture": "amd64"})]}).encode(),
        "application/vnd.oci.image.index.v1+json")
    l.index(inner)
    assert "amd" in mounted(imp, imp(l.path, "--arch=amd64").image)
    assert "arm" in mounted(imp, imp(l.path, "--arch=arm64").image)
    assert imp(l.path, "--arch=riscv64").error.endswith(
        "the image is not for linux/riscv64; it is for: unknown/unknown, linux/arm64, linux/amd64")


# ---- sharing -----------------------------------------------------------------------------------


def test_ten_images_on_one_base_keep_the_base_once(imp, tmp_path):
    bases = set()
    for i in range(10):
        r = imp(layout(tmp_path, [BASE, [f(f"mine{i}")]]).path)
        bases.add(r.image["layers"][0]["digest"])
        assert len(r.steps("pack")) == (2 if i == 0 else 1)
    assert len(bases) == 1 and len(imp.blob_files()) == 11


def test_a_layer_that_depends_on_what_is_below_is_shared_only_above_the_same(imp, tmp_path):
    a = check(imp, tmp_path, [d("p", mode=0o700)], [f("p/x")])
    b = check(imp, tmp_path, [d("p", mode=0o711)], [f("p/x")])
    c = check(imp, tmp_path, [d("p", mode=0o700)], [f("p/x")])
    assert a["layers"][1]["diff_id"] == b["layers"][1]["diff_id"]
    assert a["layers"][1]["digest"] != b["layers"][1]["digest"]
    assert a["layers"] == c["layers"]


def test_the_same_layer_twice_is_in_the_stack_once(imp, tmp_path):
    image = check(imp, tmp_path, [f("a"), d("d")], [wh("a")], [f("a"), d("d")])
    assert len(image["layers"]) == 2


def test_a_lost_blob_is_made_again(imp, tmp_path):
    l = layout(tmp_path, [BASE])
    first = imp(l.path).image["layers"][0]["digest"]
    os.unlink(f"{imp.blobs}/sha256/{first[7:]}")
    same(mounted(imp, imp(l.path).image), reference(BASE))


def test_naming_a_diff_id_does_not_give_the_layer_to_who_does_not_have_it(imp, tmp_path):
    secret = make_tar([f("secret", b"key")])
    (tmp_path / "s").write_bytes(secret)
    imp(tmp_path / "s").image
    l = Layout(tmp_path / "thief")
    config = l.blob(it.config_of([secret]), "application/vnd.oci.image.config.v1+json")
    layer = l.blob(it.pack(make_tar([f("mine")]), "gzip"), it.OCI_TYPE["gzip"])
    l.index(l.blob(json.dumps({"schemaVersion": 2, "config": config, "layers": [layer]}).encode(),
                   "application/vnd.oci.image.manifest.v1+json"))
    assert "damaged: its diff id should be" in imp(l.path).error


# ---- damage and attacks ------------------------------------------------------------------------


def flip(path, at=-20):
    data = bytearray(open(path, "rb").read())
    data[at] ^= 1
    open(path, "wb").write(data)


@pytest.mark.parametrize("how", ["none", "gzip", "zstd"])
def test_a_damaged_layer_is_refused(imp, tmp_path, how):
    l = layout(tmp_path, [BASE, [f("big", os.urandom(200000))]], how)
    flip(l.blob_path(l.layers[1]["digest"]), 100000)
    text = imp(l.path).error
    assert text.startswith(f"layer 2 of 2 ({l.layers[1]['digest'][:19]}): ")
    assert "damaged" in text or "decompress" in text or "cannot read the tar" in text
    # The good first layer may stay; the second left nothing.
    assert len(imp.blob_files()) == 1


def test_a_damaged_config_or_manifest_is_refused(imp, tmp_path):
    l = layout(tmp_path, [BASE])
    flip(l.blob_path(l.config["digest"]))
    assert "damaged: 'blobs/sha256/" in imp(l.path).error
    l = layout(tmp_path, [BASE])
    m = json.load(open(l.path + "/index.json"))["manifests"][0]["digest"]
    flip(l.blob_path(m))
    assert "damaged" in imp(l.path).error


def test_a_truncated_or_missing_layer_is_refused(imp, tmp_path):
    l = layout(tmp_path, [BASE])
    p = l.blob_path(l.layers[0]["digest"])
    os.truncate(p, os.path.getsize(p) - 30)
    assert "layer 1 of 1" in imp(l.path).error
    os.unlink(p)
    assert "No such file or directory" in imp(l.path).error


def test_a_wrong_diff_id_is_refused(imp, tmp_path):
    l = Layout(tmp_path / "l")
    config = l.blob(it.config_of([make_tar([f("other")])]),
                    "application/vnd.oci.image.config.v1+json")
    layer = l.blob(it.pack(make_tar(BASE), "gzip"), it.OCI_TYPE["gzip"])
    l.index(l.blob(json.dumps({"schemaVersion": 2, "config": config, "layers": [layer]}).encode(),
                   "application/vnd.oci.image.manifest.v1+json"))
    assert "damaged: its diff id should be" in imp(l.path).error
    assert imp.blob_files() == []


def test_links_and_fifos_in_a_layout_lead_nowhere(imp, tmp_path):
    l = layout(tmp_path, [BASE])
    p = l.blob_path(l.layers[0]["digest"])
    shutil.copy(p, tmp_path / "outside")
    os.unlink(p)
    os.symlink(tmp_path / "outside", p)
    assert "cannot open" in imp(l.path).error
    os.unlink(p)
    os.mkfifo(p)
    assert "no regular file" in imp(l.path, timeout=20).error


def test_nothing_is_written_outside(imp, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    up = "../" * 30
    check(imp, tmp_path, [ln("l", str(victim)), f("l/x"), ln("m", up + str(victim)[1:]),
                          f("m/y"), f(up + str(victim)[1:] + "/z"), hard("h", "l/x")])
    assert list(victim.iterdir()) == []
    text = imp(layout(tmp_path, [[hard("h", "/etc/passwd")]]).path).error
    assert "'h': a hard link to what is not there" in text


def test_loops_of_links_are_refused(imp, tmp_path):
    assert "too many symbolic links" in imp(
        layout(tmp_path, [[ln("a", "b"), ln("b", "a"), f("a/x")]]).path).error


def test_a_bomb_ends_at_the_limits(imp, tmp_path):
    bomb = [f("zeros", bytes(64 << 20))]
    assert "larger than the limit of 1048576 bytes" in imp(
        layout(tmp_path, [bomb]).path, "--max-size=1M").error
    many = [f(f"n{i}", b"") for i in range(2000)]
    assert "limit of 1000 entries" in imp(layout(tmp_path, [many]).path,
                                          "--max-entries=1000").error
    two = [[f("a", bytes(700000))], [f("b", bytes(700000))]]
    assert "layer 2 of 2" in imp(layout(tmp_path, two).path, "--max-size=1M").error


def sparse_tar(path, size):
    p = path / "hole"
    with open(p, "wb") as o:
        o.truncate(size)
        o.seek(size // 2)
        o.write(b"middle")
    subprocess.run(["tar", "-C", str(path), "-S", "-cf", str(path / "s.tar"), "hole"], check=True)
    return path / "s.tar"


def test_a_sparse_file_counts_whole_and_is_kept(imp, tmp_path):
    tar = sparse_tar(tmp_path, 4 << 20)
    got = mounted(imp, imp(tar).image)
    want = hashlib.sha256((tmp_path / "hole").read_bytes()).hexdigest()
    assert got["hole"]["data"] == want
    huge = sparse_tar(tmp_path, 1 << 40)
    assert os.path.getsize(huge) < 1 << 20
    assert "larger than the limit" in imp(huge, "--max-size=1G").error


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f\x8b\x08", os.urandom(5000), b"{}" * 600],
                         ids=["empty", "one", "gzip", "random", "text"])
def test_what_is_no_archive_is_refused(imp, tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    assert str(tmp_path / "x") in imp(tmp_path / "x").error


def test_a_folder_that_is_no_layout_is_refused(imp, tmp_path):
    (tmp_path / "d").mkdir()
    assert "no OCI layout" in imp(tmp_path / "d").error
    assert "No such file" in imp(tmp_path / "none").error


def test_documents_that_are_broken_are_refused_with_their_name(imp, tmp_path):
    l = layout(tmp_path, [BASE])
    index = l.path + "/index.json"
    for text, said in (("{", "index.json: line 1"), ("[]", "index.json: must be an object"),
                       ('{"manifests":[{"digest":"md5:x"}]}', "cannot use the digest 'md5:x'"),
                       ('{"manifests":[]}', "the image is not for linux/"),
                       ('{"schemaVersion":1,"manifests":[]}', "schema version 1")):
        open(index, "w").write(text)
        assert said in imp(l.path).error
    open(index, "w").write("[" * 100000)
    assert "nested deeper" in imp(l.path).error


# ---- being killed, being two -------------------------------------------------------------------


def big_layout(tmp_path):
    rng = random.Random(1)
    files = [f(f"d{i % 50}/f{i}", rng.randbytes(3000)) for i in range(2000)]
    return layout(tmp_path, [[d(f"d{i}") for i in range(50)] + files])


@pytest.mark.parametrize("after", some([round(0.02 * i, 2) for i in range(1, 21)], [0.08, 0.4]))
def test_a_killed_import_leaves_nothing_after_the_next_run(imp, tmp_path, after):
    l = big_layout(tmp_path)
    p = subprocess.Popen(imp.argv(l.path), stdout=subprocess.DEVNULL)
    time.sleep(after)
    p.send_signal(signal.SIGKILL)
    p.wait()
    small = layout(tmp_path, [BASE])
    same(mounted(imp, imp(small.path).image), reference(BASE))
    assert imp.leftovers() == []
    imp(l.path).image


@pytest.mark.parametrize("point", ["import.before_rename", "import.before_record"])
@pytest.mark.parametrize("how", ["kill", "fail"])
def test_a_crash_at_a_named_point_is_repaired_by_the_next_run(imp, tmp_path, point, how):
    l = layout(tmp_path, [BASE])
    r = subprocess.run(imp.argv(l.path), env=dict(os.environ, MUSTER_CRASH=f"{point}={how}"),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode == 0:
        pytest.skip("a build without crash points")
    assert r.returncode == (-signal.SIGKILL if how == "kill" else 1)
    same(mounted(imp, imp(l.path).image), reference(BASE))


def test_two_imports_of_one_image_make_each_layer_once(imp, tmp_path):
    l = big_layout(tmp_path)
    ps = [subprocess.Popen(imp.argv(l.path), stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outs = [p.communicate(timeout=120)[0].splitlines() for p in ps]
    assert [p.returncode for p in ps] == [0, 0, 0]
    images = [json.loads(o[-1]) for o in outs]
    assert images[0]["layers"] == images[1]["layers"] == images[2]["layers"]
    assert sum("\"pack\"" in line for o in outs for line in o) == 1
    assert len(imp.blob_files()) == 1


def test_an_import_does_not_take_the_folders_of_one_that_runs(imp, tmp_path):
    l = big_layout(tmp_path)
    p = subprocess.Popen(imp.argv(l.path), stdout=subprocess.PIPE, text=True)
    small = layout(tmp_path, [BASE])
    for _ in range(5):
        imp(small.path).image
    out, _ = p.communicate(timeout=120)
    assert p.returncode == 0 and json.loads(out.splitlines()[-1])["type"] == "image"


def status_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def test_what_strangers_wrote_is_read_without_rights(imp, tmp_path):
    l = big_layout(tmp_path)
    p = subprocess.Popen(imp.argv(l.path), stdout=subprocess.PIPE, text=True)
    seen = []
    while p.poll() is None:
        try:
            for child in open(f"/proc/{p.pid}/task/{p.pid}/children").read().split():
                s = status_of(child)
                if s["Seccomp"] == "2":
                    fds = [os.readlink(f"/proc/{child}/fd/{n}") for n in os.listdir(f"/proc/{child}/fd")]
                    seen.append((s, fds))
        except OSError:
            pass
    assert p.wait() == 0 and seen
    for s, fds in seen:
        assert s["Uid"].split() == ["65534"] * 4 and s["Gid"].split() == ["65534"] * 4
        assert s["Groups"].strip() == "" and int(s["CapEff"], 16) == 0 and s["NoNewPrivs"] == "1"
        assert not any(".lock" in x or x.endswith("/tmp") for x in fds), fds


def test_no_mount_is_left(imp, tmp_path):
    check(imp, tmp_path, BASE, [f("usr/lib/n")], [f("etc/sub/m")])
    assert str(tmp_path) not in open("/proc/self/mountinfo").read()
    for n in glob.glob("/sys/block/loop*/loop/backing_file"):
        assert str(tmp_path) not in open(n).read()


# ---- squashfs --------------------------------------------------------------------------------


def squash(tmp_path, how, *entries):
    tree, out = tmp_path / "tree", tmp_path / f"{how}.sqsh"
    tree.mkdir()
    subprocess.run(["tar", "--extract", "--xattrs", "--xattrs-include=*", "--same-owner", "--same-permissions",
                    "--directory", tree], input=make_tar(entries), check=True)
    subprocess.run(["mksquashfs", tree, out, "-comp", how, "-quiet", "-no-progress"], check=True,
                   stdout=subprocess.DEVNULL)
    out.chmod(0o600)
    return out


@pytest.mark.parametrize("how", ["zstd", "lzo", "gzip"])
def test_a_squashfs_as_enroot_makes_them_becomes_an_image(imp, tmp_path, how):
    entries = [d("."), d("etc"), d("bin", mode=0o711), f("bin/x", b"y" * 9000, mode=0o4755, uid=3),
               ln("etc/l", "../bin/x"), f("etc/n", uid=1000, gid=7, xattrs={"user.a": b"v"})]
    image = imp(squash(tmp_path, how, *entries)).image
    got, want = mounted(imp, image), reference(entries)
    assert len(image["layers"]) == 1
    for tree in (got, want):
        for e in tree.values():
            e.pop("mtime")  # of the folder that tar made
    same(got, want)


@pytest.mark.parametrize("cut", [200, 5000])
def test_a_damaged_squashfs_is_refused(imp, tmp_path, cut):
    whole = squash(tmp_path, "zstd", d("."), f("a", os.urandom(20000))).read_bytes()
    bad = tmp_path / "bad.sqsh"
    bad.write_bytes(whole[:cut])
    assert "sqfs2tar cannot read the squashfs" in imp(bad).error


# ---- registries --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    if not shutil.which("docker-registry"):
        pytest.skip("no docker-registry")
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    folder = tmp_path_factory.mktemp("registry")
    (folder / "config.yml").write_text(
        "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n"
        f"    rootdirectory: {folder}/data\nhttp:\n  addr: 127.0.0.1:{port}\n")
    p = subprocess.Popen(["docker-registry", "serve", str(folder / "config.yml")],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"127.0.0.1:{port}"
    p.terminate()
    p.wait()


def push(layout_path, ref, *opts):
    subprocess.run(["skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", *opts,
                    f"oci:{layout_path}", f"docker://{ref}"], check=True,
                   stdout=subprocess.DEVNULL)


def test_an_image_of_a_registry_is_fetched(imp, tmp_path, registry):
    l = layout(tmp_path, [BASE, [wh("etc/x")]], Cmd=["run"])
    push(l.path, f"{registry}/team/app:1")
    for ref in (f"docker://{registry}/team/app:1", f"{registry}/team/app:1",
                f"{registry}#team/app:1"):
        r = imp(ref, f"--insecure={registry}")
        same(mounted(imp, r.image), reference(BASE, [wh("etc/x")]))
        assert r.image["config"]["cmd"] == ["run"]
    push(l.path, f"{registry}/team/app:2", "--format=v2s2")
    same(mounted(imp, imp(f"{registry}/team/app:2", f"--insecure={registry}").image),
         reference(BASE, [wh("etc/x")]))
    assert len(imp.blob_files()) == 2


def test_what_a_registry_refuses_is_said(imp, tmp_path, registry):
    text = imp(f"{registry}/none/such:1", f"--insecure={registry}").error
    assert text.startswith(f"registry '{registry}': ") and "HTTP 404, manifest unknown" in text
    text = imp(f"{registry}/none/such:1").error  # HTTP where HTTPS is wanted
    assert text.startswith(f"registry '{registry}': ") and "HTTPS" in text
    text = imp("127.0.0.1:1/x:1", "--insecure=127.0.0.1:1").error
    assert text.startswith("registry '127.0.0.1:1': ") and "Connection refused" in text
    assert "the name may have" in imp("Not A Name").error

"""Making images layer by layer, what they must look like unpacked, and what they look like mounted.

The reference (class Model) is written from the OCI image specification alone and knows nothing of
how muster-import works: it applies one tar after the other to a dictionary.
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

BUILD = os.environ.get("MUSTER_BUILD", os.path.join(os.path.dirname(__file__), "..", "..", "build"))
IMPORT = os.path.abspath(os.path.join(BUILD, "src", "image", "muster-import"))
MTIME = 1_600_000_000


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


# ---- entries -----------------------------------------------------------------------------------


class Entry:
    """One tar entry. kind: dir file link hard fifo dev; whiteouts are files with their names."""

    def __init__(self, name, kind="file", data=b"", mode=None, uid=0, gid=0, target="", xattrs=None,
                 mtime=MTIME):
        self.name, self.kind, self.data, self.target = name, kind, data, target
        self.mode = (0o755 if kind == "dir" else 0o777 if kind == "link" else 0o644) \
            if mode is None else mode
        self.uid, self.gid, self.mtime = uid, gid, mtime
        self.xattrs = dict(xattrs or {})

    def __repr__(self):
        return f"{self.kind}:{self.name}" + (f"->{self.target}" if self.target else "")


TYPES = {"dir": tarfile.DIRTYPE, "file": tarfile.REGTYPE, "link": tarfile.SYMTYPE,
         "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE, "dev": tarfile.CHRTYPE}


def make_tar(entries, xattr_form="SCHILY.xattr.", fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for e in entries:
            h = tarfile.TarInfo(e.name)
            h.type, h.mode, h.uid, h.gid, h.mtime = TYPES[e.kind], e.mode, e.uid, e.gid, e.mtime
            h.size = len(e.data) if e.kind == "file" else 0
            h.linkname = e.target
            h.devmajor, h.devminor = (1, 3) if e.kind == "dev" else (0, 0)
            for k, v in e.xattrs.items():
                if xattr_form.startswith("LIBARCHIVE"):
                    import base64
                    h.pax_headers[xattr_form + k] = base64.b64encode(v).decode()
                else:
                    h.pax_headers[xattr_form + k] = v.decode("utf-8", "surrogateescape")
            t.addfile(h, io.BytesIO(e.data) if e.kind == "file" else None)
    return out.getvalue()


# ---- sources -----------------------------------------------------------------------------------


def pack(data, how):
    if how == "none":
        return data
    if how == "gzip":
        return gzip.compress(data, 1, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-1", "-c"], input=data, stdout=subprocess.PIPE,
                              check=True).stdout
    return subprocess.run(["xz", "-1", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


OCI_TYPE = {"none": "application/vnd.oci.image.layer.v1.tar",
            "gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
            "zstd": "application/vnd.oci.image.layer.v1.tar+zstd"}
DOCKER_TYPE = {"none": "application/vnd.docker.image.rootfs.diff.tar",
               "gzip": "application/vnd.docker.image.rootfs.diff.tar.gzip",
               "zstd": "application/vnd.docker.image.rootfs.diff.tar.zstd"}


def config_of(tars, arch="amd64", **run):
    return json.dumps({"os": "linux", "architecture": arch, "config": run,
                       "rootfs": {"type": "layers", "diff_ids": [sha(t) for t in tars]},
                       }).encode()


class Layout:
    """An OCI layout in a folder."""

    def __init__(self, path):
        self.path = str(path)
        os.makedirs(self.path + "/blobs/sha256")
        with open(self.path + "/oci-layout", "w") as f:
            f.write('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, data, media=None, **more):
        d = sha(data)
        with open(self.blob_path(d), "wb") as f:
            f.write(data)
        return dict({"mediaType": media, "digest": d, "size": len(data)}, **more)

    def blob_path(self, digest):
        return f"{self.path}/blobs/sha256/{digest[7:]}"

    def manifest(self, tars, how="gzip", docker=False, arch="amd64", **run):
        types = DOCKER_TYPE if docker else OCI_TYPE
        config = self.blob(config_of(tars, arch, **run),
                           "application/vnd.docker.container.image.v1+json" if docker
                           else "application/vnd.oci.image.config.v1+json")
        layers = [self.blob(pack(t, how), types[how]) for t in tars]
        media = "application/vnd.docker.distribution.manifest.v2+json" if docker \
            else "application/vnd.oci.image.manifest.v1+json"
        self.config, self.layers = config, layers
        return self.blob(json.dumps({"schemaVersion": 2, "mediaType": media, "config": config,
                                     "layers": layers}).encode(), media)

    def index(self, *manifests):
        with open(self.path + "/index.json", "w") as f:
            json.dump({"schemaVersion": 2, "manifests": list(manifests)}, f)

    def tar(self, path, mode="w"):
        with tarfile.open(path, mode) as t:
            t.add(self.path, arcname=".")
        return path


def docker_archive(path, tars, name="demo:latest", mode="w", **run):
    config = config_of(tars, **run)
    names = [hashlib.sha256(t).hexdigest() + ".tar" for t in tars]
    manifest = [{"Config": sha(config)[7:] + ".json", "RepoTags": [name], "Layers": names}]
    with tarfile.open(path, mode) as t:
        done = set()
        for n, data in list(zip(names, tars)) + [(sha(config)[7:] + ".json", config),
                                                 ("manifest.json", json.dumps(manifest).encode())]:
            if n in done:
                continue
            done.add(n)
            h = tarfile.TarInfo(n)
            h.size = len(data)
            t.addfile(h, io.BytesIO(data))
    return path


# ---- running muster-import ---------------------------------------------------------------------


class Result:
    def __init__(self, p):
        self.code, self.stderr = p.returncode, p.stderr
        self.lines = [json.loads(s) for s in p.stdout.splitlines()]
        self.last = self.lines[-1] if self.lines else None

    @property
    def image(self):
        assert self.code == 0, self.stderr
        assert self.last["type"] == "image"
        return self.last

    @property
    def error(self):
        assert self.code == 1, (self.code, self.lines, self.stderr)
        assert self.last["type"] == "error"
        assert self.last["text"] in self.stderr
        return self.last["text"]

    def steps(self, step):
        return [x for x in self.lines if x.get("step") == step]


class Importer:
    def __init__(self, folder):
        self.blobs, self.tmp = f"{folder}/blobs", f"{folder}/tmp"

    def argv(self, source, *opts):
        return [IMPORT, "--blobs", self.blobs, "--tmp", self.tmp, *opts, str(source)]

    def __call__(self, source, *opts, env=None, timeout=120):
        return Result(subprocess.run(self.argv(source, *opts), stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, timeout=timeout,
                                     env=dict(os.environ, **(env or {}))))

    def leftovers(self):
        return [n for d in (self.tmp, self.blobs + "/tmp") if os.path.isdir(d)
                for n in os.listdir(d) if n != ".lock"]

    def blob_files(self):
        return sorted(os.listdir(self.blobs + "/sha256"))

    def check_blobs(self):
        for name in self.blob_files():
            path = f"{self.blobs}/sha256/{name}"
            with open(path, "rb") as f:
                assert hashlib.sha256(f.read()).hexdigest() == name
            assert os.stat(path).st_mode & 0o777 == 0o444


# ---- the reference -----------------------------------------------------------------------------


class Node:
    def __init__(self, kind, mode=0o755, uid=0, gid=0, mtime=0, xattrs=None, data=b"", target=""):
        self.kind, self.mode, self.uid, self.gid, self.mtime = kind, mode, uid, gid, mtime
        self.xattrs, self.data, self.target = dict(xattrs or {}), data, target
        self.inode = object()
        self.children = {}
        self.made = None  # number of the last layer that put it (or put something into it)

    def copy(self):
        n = Node(self.kind, self.mode, self.uid, self.gid, self.mtime, self.xattrs, self.data,
                 self.target)
        return n


class Model:
    def __init__(self):
        self.root = Node("dir")
        self.layer = 0

    def clean(self, name):
        out = []
        for p in name.split("/"):
            if p == "..":
                out[-1:] = []
            elif p not in ("", "."):
                out.append(p)
        return out

    def parent(self, parts):
        """Folder for parts[:-1], links followed inside the root, missing folders made."""
        at, todo, hops = [self.root], list(parts[:-1]), 0
        at[0].made = self.layer
        while todo:
            p = todo.pop(0)
            if p in ("", "."):
                continue
            if p == "..":
                if len(at) > 1:
                    at.pop()
                continue
            n = at[-1].children.get(p)
            if n is not None and n.kind == "link":
                hops += 1
                assert hops < 40
                if n.target.startswith("/"):
                    at = [self.root]
                todo = n.target.split("/") + todo
                continue
            if n is None or n.kind != "dir":
                n = at[-1].children[p] = Node("dir")
            n.made = self.layer
            at.append(n)
        return at[-1]

    def hide_lower(self, n):
        """Of a folder: what lower layers put into it goes."""
        for k, c in list(n.children.items()):
            if c.made != self.layer:
                del n.children[k]
            elif c.kind == "dir":
                self.hide_lower(c)

    def apply(self, entries):
        self.layer += 1
        for e in entries:
            parts = self.clean(e.name)
            d = self.parent(parts) if parts else None
            base = parts[-1] if parts else ""
            if base == ".wh..wh..opq":
                self.hide_lower(d)
            elif base.startswith(".wh."):
                n = d.children.get(base[4:])
                if n is not None and n.made != self.layer:
                    del d.children[base[4:]]
                elif n is not None and n.kind == "dir":
                    self.hide_lower(n)
            elif e.kind != "dev":
                self.put(d, base, e)

    def put(self, d, base, e):
        keep = {k: v for k, v in e.xattrs.items()
                if k.startswith("user.") or k == "security.capability"
                or (k.startswith("trusted.") and not k.startswith("trusted.overlay."))}
        if d is None:
            self.root.mode, self.root.uid, self.root.gid, self.root.xattrs = \
                e.mode, e.uid, e.gid, keep
            return
        old = d.children.get(base)
        if e.kind == "hard":
            t = self.clean(e.target)
            other = self.parent(t).children[t[-1]]
            n = Node(other.kind, other.mode, other.uid, other.gid, other.mtime, other.xattrs,
                     other.data, other.target)
            if other.made == self.layer:  # else it is in a lower layer: a copy
                n.inode = other.inode
        else:
            n = Node(e.kind, e.mode, e.uid, e.gid, e.mtime, keep, e.data, e.target)
            if e.kind == "dir" and old is not None and old.kind == "dir":
                n.children = old.children
        n.made = self.layer
        d.children[base] = n

    def dump(self):
        out, groups = {}, {}

        def walk(path, n):
            rec = {"kind": n.kind, "mode": n.mode if n.kind != "link" else 0o777, "uid": n.uid,
                   "gid": n.gid, "mtime": int(n.mtime) * 10**9 + int(n.mtime % 1 * 10**9),
                   "xattrs": {k: v.hex() for k, v in n.xattrs.items()}}
            if n.kind == "file":
                rec["data"] = hashlib.sha256(n.data).hexdigest()
            if n.kind == "link":
                rec["target"] = n.target
            if path == "":
                rec["mtime"] = None
            out[path] = rec
            if n.kind != "dir":
                groups.setdefault(id(n.inode), []).append(path)
            for k, c in n.children.items():
                walk(f"{path}/{k}" if path else k, c)

        walk("", self.root)
        for g in groups.values():
            for p in g:
                out[p]["links"] = sorted(g)
        return out


def reference(*layers):
    m = Model()
    for l in layers:
        m.apply(l)
    return m.dump()


# ---- the mounted stack -------------------------------------------------------------------------


def mounted(importer, image):
    """Dump of the image as a container would see it; in a mount namespace of its own."""
    blobs = [f"{importer.blobs}/sha256/{l['digest'][7:]}" for l in image["layers"]]
    p = subprocess.run(["unshare", "-m", "--propagation", "private", sys.executable, __file__,
                        *blobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert p.returncode == 0, p.stderr.decode()
    return json.loads(p.stdout)


def dump_tree(top):
    out, groups = {}, {}

    def walk(path, rel):
        st = os.lstat(path)
        kind = {0o040000: "dir", 0o100000: "file", 0o120000: "link", 0o010000: "fifo",
                0o020000: "dev"}[st.st_mode & 0o170000]
        rec = {"kind": kind, "mode": st.st_mode & 0o7777, "uid": st.st_uid, "gid": st.st_gid,
               "mtime": st.st_mtime_ns if rel else None, "xattrs": {}}
        for k in os.listxattr(path, follow_symlinks=False):
            if k != "security.selinux":
                rec["xattrs"][k] = os.getxattr(path, k, follow_symlinks=False).hex()
        if kind == "file":
            with open(path, "rb") as f:
                rec["data"] = hashlib.sha256(f.read()).hexdigest()
        if kind == "link":
            rec["target"] = os.readlink(path)
        out[rel] = rec
        if kind != "dir":
            groups.setdefault((st.st_dev, st.st_ino), []).append(rel)
            return
        for name in os.listdir(path):
            walk(f"{path}/{name}", f"{rel}/{name}" if rel else name)

    walk(top, "")
    for g in groups.values():
        for p in g:
            out[p]["links"] = sorted(g)
    return out


def main(blobs):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(src, dst, fs, flags, data):
        os.makedirs(dst, exist_ok=True)
        if libc.mount(src.encode(), dst.encode(), fs.encode(), flags, data.encode()) < 0:
            n = ctypes.get_errno()
            if n == 15 and fs == "erofs":  # ENOTBLK: no file-backed mounts before Linux 6.12
                subprocess.run(["mount", "-t", fs, "-o", "ro,loop", src, dst], check=True)
            else:
                raise OSError(n, os.strerror(n), dst)

    sys.setrecursionlimit(5000)
    top = "/mnt"  # in a mount namespace of our own
    mount("tmpfs", top, "tmpfs", 0, "")
    os.chdir(top)
    for i, b in enumerate(blobs):
        mount(b, f"{top}/{i}", "erofs", 1, "")
    os.mkdir("upper")
    os.mkdir("work")
    st = os.stat(str(len(blobs) - 1))
    os.chmod("upper", st.st_mode & 0o7777)
    os.chown("upper", st.st_uid, st.st_gid)
    for k in os.listxattr(str(len(blobs) - 1)):
        if not k.startswith("trusted.overlay."):
            os.setxattr("upper", k, os.getxattr(str(len(blobs) - 1), k))
    lower = ":".join(str(i) for i in reversed(range(len(blobs))))
    mount("overlay", f"{top}/m", "overlay", 0, f"lowerdir={lower},upperdir=upper,workdir=work")
    json.dump(dump_tree(f"{top}/m"), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])

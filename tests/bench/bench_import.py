"""Images: import from a registry beside podman pull and skopeo with umoci.

The registry is Debian's docker-registry on this machine; all take the same images from it, in turns, each
into an empty folder. The images are made of this machine's own /usr: what people's images are made of.
CPU is that of the program and its children, without the registry's.
"""
import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from harness.images import image_file

RUNS = 3
IMPORT = Path(os.environ["MUSTER_BUILD"]) / "src/image/muster-import"


class Layout:
    """An OCI layout of layers that are tars of files."""

    def __init__(self, folder):
        self.folder, self.layers, self.diff_ids = Path(folder), [], []
        (self.folder / "blobs/sha256").mkdir(parents=True)
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, data, media):
        name = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs/sha256" / name).write_bytes(data)
        return {"mediaType": media, "digest": "sha256:" + name, "size": len(data)}

    def add(self, files):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for f in files:
                tar.add(f, recursive=False)
        self.diff_ids.append("sha256:" + hashlib.sha256(out.getbuffer()).hexdigest())
        self.layers.append(self.blob(gzip.compress(out.getvalue(), 5),
                                     "application/vnd.oci.image.layer.v1.tar+gzip"))

    def close(self):
        config = self.blob(json.dumps({"os": "linux", "architecture": "amd64", "config": {},
                                       "rootfs": {"type": "layers", "diff_ids": self.diff_ids}}
                                      ).encode(), "application/vnd.oci.image.config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": config, "layers": self.layers}
        entry = self.blob(json.dumps(manifest).encode(), manifest["mediaType"])
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        return f"oci:{self.folder}"


def usr_files(most):
    """Folders and files of /usr, to so many bytes."""
    left = most
    for top, folders, files in os.walk("/usr"):
        folders.sort()
        yield top
        for name in sorted(files):
            path = os.path.join(top, name)
            size = os.lstat(path).st_size
            if size > left or size > most // 10:
                continue
            left -= size
            yield path
        if left < most // 1000:
            return


def parts(files, count):
    files = list(files)
    return [files[i * len(files) // count:(i + 1) * len(files) // count] for i in range(count)]


def make_images(folder):
    large, many = Layout(folder / "large"), Layout(folder / "many")
    large.add(usr_files(1 << 30))
    for part in parts(usr_files(200 << 20), 40):
        many.add(part)
    return {"small": f"oci-archive:{image_file('base')}", "1 GiB": large.close(),
            "40 layers": many.close()}


class Registry:
    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.host = f"127.0.0.1:{s.getsockname()[1]}"
        config = folder / "registry.yml"
        config.write_text(f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: "
                          f"{folder}/registry\nhttp:\n  addr: {self.host}\n")
        self.process = subprocess.Popen(["docker-registry", "serve", str(config)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = int(self.host.rsplit(":", 1)[1])
        for _ in range(100):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError("docker-registry does not answer")

    def push(self, source, ref):
        subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", source,
                        f"docker://{ref}"], check=True)


def timed(*commands):
    """Seconds of wall and CPU of the commands, one after the other."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for argv in commands:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.monotonic() - start,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def on_disk(folder):
    return sum(os.lstat(os.path.join(top, f)).st_blocks for top, _, files in os.walk(folder)
               for f in files) * 512


def one_run(name, ref, host, folder):
    """Seconds, CPU seconds, bytes on disk."""
    folder.mkdir()
    if name == "muster-import":
        commands = [[str(IMPORT), f"--blobs={folder}/blobs", f"--tmp={folder}/tmp",
                     f"--insecure={host}", ref]]
    elif name == "podman pull":
        commands = [["podman", f"--root={folder}/root", f"--runroot={folder}/run", "pull", "-q",
                     "--tls-verify=false", ref]]
    else:
        commands = [["skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false",
                     f"docker://{ref}", f"oci:{folder}/layout:image"],
                    ["umoci", "unpack", "--image", f"{folder}/layout:image", f"{folder}/bundle"]]
    result = (*timed(*commands), on_disk(folder))
    # Podman's storage has mounts of itself on itself.
    for line in open("/proc/self/mountinfo").read().splitlines()[::-1]:
        if line.split()[4].startswith(str(folder) + "/"):
            subprocess.run(["umount", line.split()[4]], check=True)
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    return result


def measure(report):
    names = ["muster-import", "podman pull", "skopeo copy and umoci unpack"]
    missing = [p for p in ("podman", "skopeo", "umoci", "docker-registry") if not shutil.which(p)]
    if missing:
        report.line(f"(not measured: {', '.join(missing)} is not here)")
        return
    with tempfile.TemporaryDirectory(prefix="muster-bench-", dir="/var/tmp") as top:
        folder = Path(top)
        registry = Registry(folder)
        try:
            rows = []
            for image, source in make_images(folder).items():
                ref = f"{registry.host}/bench/{image.replace(' ', '').lower()}:1"
                registry.push(source, ref)
                seen = {n: [] for n in names}
                for _ in range(RUNS):
                    for n in names:
                        seen[n].append(one_run(n, ref, registry.host, folder / "work"))
                medians = {n: [statistics.median(x) for x in zip(*seen[n])] for n in names}
                for n in names:
                    wall, cpu, disk = medians[n]
                    w, c, _ = medians["podman pull"]
                    rows.append([image, n, f"{wall:.2f}", f"{cpu:.2f}", f"{disk / 2**20:.0f}",
                                 f"{wall / w:.2f}", f"{cpu / c:.2f}"])
        finally:
            registry.process.terminate()
            registry.process.wait()
    report.line(f"Medians of {RUNS} runs in turns; the last two columns are parts of podman's.")
    report.table(["image", "", "wall s", "CPU s", "MiB on disk", "of its wall", "of its CPU"], rows)

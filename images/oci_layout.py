#!/usr/bin/python3
"""OCI image layouts of one image.

  oci_layout.py write OUT --name REF --config FILE [--below LAYOUT] LAYER.tar
  oci_layout.py layer LAYOUT >LAYER.tar

write makes OUT anew. --below is the layout of an image whose layers and configuration this one
starts from. FILE holds the "config" of the OCI image specification (Env, Cmd, WorkingDir, ...). The
result depends on the inputs only: times come from SOURCE_DATE_EPOCH. layer unpacks the only layer.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path

OCI = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "riscv64": "riscv64"}


class Layout:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.blobs = self.folder / "blobs/sha256"

    def create(self):
        self.blobs.mkdir(parents=True)
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, descriptor):
        return self.blobs / descriptor["digest"].removeprefix("sha256:")

    def read(self, descriptor):
        return json.loads(self.blob(descriptor).read_bytes())

    def image(self):
        """Manifest and configuration of the only image."""
        (entry,) = json.loads((self.folder / "index.json").read_bytes())["manifests"]
        manifest = self.read(entry)
        return manifest, self.read(manifest["config"])

    def add_json(self, value, media_type):
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.sha256(data).hexdigest()
        (self.blobs / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add_layer(self, path):
        """Its descriptor, and the digest of the layer before compression."""
        plain, packed = hashlib.sha256(), hashlib.sha256()
        temporary = self.blobs / "new"
        with open(path, "rb") as layer, open(temporary, "wb") as file:
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as out:
                while block := layer.read(1 << 20):
                    plain.update(block)
                    out.write(block)
        with open(temporary, "rb") as file:
            while block := file.read(1 << 20):
                packed.update(block)
        size = temporary.stat().st_size
        temporary.rename(self.blobs / packed.hexdigest())
        descriptor = {
            "mediaType": f"{OCI}.layer.v1.tar+gzip",
            "digest": f"sha256:{packed.hexdigest()}",
            "size": size,
        }
        return descriptor, f"sha256:{plain.hexdigest()}"

    def finish(self, manifest, name):
        entry = self.add_json(manifest, f"{OCI}.manifest.v1+json")
        entry["annotations"] = {"org.opencontainers.image.ref.name": name}
        index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [entry]}
        (self.folder / "index.json").write_text(json.dumps(index))


def merge_config(below, ours):
    """Ours wins key by key; of Env, variable by variable."""
    env = {}
    for variable in below.get("Env", []) + ours.get("Env", []):
        env[variable.split("=", 1)[0]] = variable
    merged = below | ours
    if env:
        merged["Env"] = list(env.values())
    return merged


def write(args):
    out = Layout(args.out)
    out.create()
    created = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    created = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    config, history, diff_ids, layers = {}, [], [], []
    if args.below:
        below = Layout(args.below)
        manifest, image = below.image()
        config, history, diff_ids = image["config"], image["history"], image["rootfs"]["diff_ids"]
        layers = manifest["layers"]
        for layer in layers:
            shutil.copyfile(below.blob(layer), out.blob(layer))
    descriptor, diff_id = out.add_layer(args.layer)
    layers.append(descriptor)
    diff_ids.append(diff_id)
    history.append({"created": created, "created_by": f"images/build.sh {args.name}"})

    machine = os.uname().machine
    image = {
        "created": created,
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": merge_config(config, json.loads(Path(args.config).read_text())),
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": history,
    }
    out.finish(
        {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": out.add_json(image, f"{OCI}.config.v1+json"),
            "layers": layers,
        },
        args.name,
    )


def layer(args):
    layout = Layout(args.layout)
    layers = layout.image()[0]["layers"]
    if len(layers) != 1:
        sys.exit(f"oci_layout: '{args.layout}' has {len(layers)} layers; only an image of one can be built upon")
    with gzip.open(layout.blob(layers[0])) as file:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("write")
    command.set_defaults(run=write)
    command.add_argument("out")
    command.add_argument("layer", metavar="LAYER.tar")
    command.add_argument("--name", required=True, help="the reference in the index")
    command.add_argument("--config", required=True)
    command.add_argument("--below", help="layout of the image to start from")
    command = commands.add_parser("layer")
    command.set_defaults(run=layer)
    command.add_argument("layout")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()

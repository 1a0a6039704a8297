#!/usr/bin/python3
"""The layer that turns one root folder into another: layer_diff.py BELOW.tar WHOLE.tar >LAYER.tar

What is new or changed, the folders above it, and a whiteout (.wh.NAME) for what is gone. A folder
of which nothing remained gets one opaque mark (.wh..wh..opq) instead. No entry of the layer needs
the layer below: a hard link to a file that is not in the layer becomes a copy.

Both files are read twice and nothing is unpacked, so neither root nor a mount is needed.
"""

import copy
import hashlib
import posixpath
import sys
import tarfile

XATTR = "SCHILY.xattr."


def name_of(member):
    """'etc/passwd'; the root folder is ''."""
    name = posixpath.normpath(member.name)
    return "" if name == "." else name.removeprefix("./").lstrip("/")


def content_of(tar, member):
    digest = hashlib.sha256()
    with tar.extractfile(member) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def attributes_of(member):
    xattrs = sorted((k, v) for k, v in member.pax_headers.items() if k.startswith(XATTR))
    return (member.mode, member.uid, member.gid, int(member.mtime), tuple(xattrs))


def read(path):
    """name -> all that makes an entry what it is; a hard link is the file that it means."""
    entries, links = {}, {}
    with tarfile.open(path) as tar:
        for member in tar:
            name = name_of(member)
            if member.islnk():
                links[name] = name_of(tar.getmember(member.linkname))
            elif member.isfile():
                entries[name] = ("file", content_of(tar, member), attributes_of(member))
            else:
                special = (member.type, member.linkname, member.devmajor, member.devminor)
                entries[name] = (special, None, attributes_of(member))
    for name, target in links.items():
        entries[name] = entries[target]
    return entries


def parents(name):
    while name:
        name = posixpath.dirname(name)
        yield name


def is_folder(entry):
    return entry is not None and entry[0][0] == tarfile.DIRTYPE


def removals(below, whole):
    """The folders to mark opaque, and the names to white out."""
    kept = {p for name in below if name in whole for p in parents(name)}
    opaque = {
        folder
        for folder in {posixpath.dirname(name) for name in below if name and name not in whole}
        if is_folder(whole.get(folder)) and is_folder(below.get(folder)) and folder and folder not in kept
    }
    gone = {
        name
        for name in below
        if name and name not in whole
        and is_folder(whole.get(posixpath.dirname(name)))  # else a name above it is gone or no folder
        and posixpath.dirname(name) not in opaque
    }  # fmt: skip
    return opaque, gone


def marker(name):
    info = tarfile.TarInfo(name)
    info.mode = 0o600
    return info


def diff(below_path, whole_path, out):
    below, whole = read(below_path), read(whole_path)
    changed = {name for name, entry in whole.items() if below.get(name) != entry}
    opaque, gone = removals(below, whole)
    listed = changed | {p for name in changed | gone for p in parents(name)}
    listed |= opaque | {p for name in opaque for p in parents(name)}
    written = set()

    with tarfile.open(whole_path) as tar, tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as layer:
        for member in tar:
            name = name_of(member)
            if name not in listed:
                continue
            member = copy.copy(member)  # links are looked up by the names that the archive has
            member.pax_headers = {k: v for k, v in member.pax_headers.items() if k.startswith(XATTR)}
            member.mtime = int(member.mtime)
            member.name = name or "./"
            data = None
            if member.islnk():
                original = tar.getmember(member.linkname)
                member.linkname = name_of(original)
                if member.linkname not in written:
                    data = tar.extractfile(original)
                    member.type, member.linkname, member.size = tarfile.REGTYPE, "", original.size
            elif member.isfile():
                data = tar.extractfile(member)
            layer.addfile(member, data)
            written.add(name)
            if name in opaque:
                layer.addfile(marker(f"{name}/.wh..wh..opq"))
        for name in sorted(gone):
            folder, base = posixpath.split(name)
            layer.addfile(marker(posixpath.join(folder, f".wh.{base}")))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: layer_diff.py BELOW.tar WHOLE.tar >LAYER.tar")
    diff(sys.argv[1], sys.argv[2], sys.stdout.buffer)

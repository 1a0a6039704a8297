#!/usr/bin/python3
"""Puts files into a C source, for src/manager/static.h; YAML becomes JSON on the way.

usage: embed.py OUTPUT PATH=TYPE=FILE...
PATH is where it is served, TYPE its media type.
"""
import json
import sys
from pathlib import Path

import yaml


def content(file):
    if file.suffix == ".yaml":
        doc = yaml.safe_load(file.read_text(encoding="utf-8"))
        return json.dumps(doc, ensure_ascii=False, separators=(",", ":")).encode()
    return file.read_bytes()


def array(name, data):
    rows = (data[i:i + 24] for i in range(0, len(data), 24))
    body = "\n".join("    " + "".join(f"{byte}," for byte in row) for row in rows)
    return f"static const unsigned char {name}[] = {{\n{body}\n}};\n"


def main(output, *specs):
    arrays, entries = [], []
    for number, spec in enumerate(specs):
        path, kind, file = spec.split("=", 2)
        arrays.append(array(f"file_{number}", content(Path(file))))
        entries.append(f'    {{"{path}", "{kind}", file_{number}, sizeof(file_{number})}},\n')
    Path(output).write_text(
        "/* Made by scripts/embed.py. */\n#include \"manager/static.h\"\n\n" + "\n".join(arrays) +
        "\nconst struct static_file static_files[] = {\n" + "".join(entries) + "    {0},\n};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

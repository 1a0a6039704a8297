#!/usr/bin/python3
"""All lints, or those named: ./run lint [--full] [NAME...]; --fix-format formats the whole tree."""
import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rules  # noqa: E402
import tools  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def quick(fn):
    return lambda root, full=False: fn(root)


LINTS = {
    "layers": quick(rules.layers),
    "banned": quick(rules.banned),
    "crash-points": quick(rules.crash_points),
    "machine-paths": quick(rules.machine_paths),
    "shape": quick(rules.shape),
    "contract": tools.contract,
    "pyflakes": tools.pyflakes,
    "shellcheck": tools.shellcheck,
    "clang-format": tools.clang_format,
    "cppcheck": tools.cppcheck,
    "clang-tidy": tools.clang_tidy,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="clang-tidy on all files")
    parser.add_argument("--fix-format", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LINTS))
    args = parser.parse_args()
    if args.fix_format:
        tools.clang_format_fix(ROOT)
        return 0
    unknown = set(args.names) - set(LINTS)
    if unknown:
        parser.error(f"there is no lint '{unknown.pop()}'; there are {', '.join(LINTS)}")
    bad = 0
    for name in args.names or LINTS:
        start = time.monotonic()
        try:
            found = LINTS[name](ROOT, args.full)
        except tools.MissingTool as e:
            found = [str(e)]
        for line in found:
            print(line)
        print(f"lint: {name}: {len(found) or 'no'} findings ({time.monotonic() - start:.1f} s)",
              file=sys.stderr)
        bad += bool(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

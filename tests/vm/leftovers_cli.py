"""Inside the machine: note what is there, or say what is new. usage: leftovers_cli.py before|after"""
import json
import sys

from harness import leftovers

NOTE = "/srv/before.json"

if sys.argv[1] == "before":
    with open(NOTE, "w") as f:
        json.dump(sorted(leftovers.snapshot()), f)
else:
    with open(NOTE) as f:
        left = leftovers.settle(set(json.load(f)))
    print("\n".join(left))
    sys.exit(1 if left else 0)

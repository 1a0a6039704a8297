"""The HTTP API is what docs/openapi.yaml says: the document is good OpenAPI 3.1 and complete in
itself, and its routes, roles, error codes and reasons are those of the source."""
import re
import sys
from pathlib import Path

import yaml

from rules import lines, read, tracked

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import jsonschema  # noqa: E402
from openapi import Document, deepest  # noqa: E402

OPEN = {"LinkMessage", "OpenApi"}  # described elsewhere
DOCUMENT = "docs/openapi.yaml"
ROUTES = "src/manager/api.c"
ROLES = {"WHO_ANYONE": "none", "WHO_USER": "user", "WHO_OPERATOR": "operator",
         "WHO_ADMIN": "admin", "WHO_AGENT": "agent"}


def contract(root):
    """Everything of the above; nothing to say of a tree that has no API."""
    if not tracked(root, ROUTES):
        return []
    if not tracked(root, DOCUMENT):
        return [f"{DOCUMENT}:1: is not there"]
    text = read(root, DOCUMENT)
    try:
        found = form(yaml.safe_load(text))
        document = Document(text) if not found else None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as e:
        return [f"{DOCUMENT}:1: cannot be read: {' '.join(str(e).split())}"]
    if document:
        for check in (references, operations, examples, schemas):
            found += check(document)
        found += routes(root, document) + codes(root, document) + reasons(root, document)
    return [line if re.match(r"\S+:\d+: ", line) else f"{DOCUMENT}:{place(text, line)}: {line}"
            for line in found]


def place(text, line):
    """The line of the first word in quotes that stands in the document, to jump to."""
    for word in re.findall(r"'([^']+)'", line):
        for number, has in lines(text):
            if word in has:
                return number
    return 1


# --- the document in itself -------------------------------------------------------------------

def form(doc):
    schema = yaml.safe_load((HERE / "openapi-3.1.yaml").read_text())
    found = []
    for e in jsonschema.Draft202012Validator(schema).iter_errors(doc):
        e = deepest(e)
        found.append(f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}")
    return found


def every(node, path=()):
    yield path, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from every(child, (*path, key))


def references(document):
    """All lead somewhere, and nothing is there to which none leads."""
    found, used = [], set()
    for path, node in every(document.doc):
        ref = node.get("$ref") if isinstance(node, dict) else None
        if not isinstance(ref, str):
            continue
        used.add("/".join(ref.split("/")[:4]))
        try:
            document.at(ref)
        except (KeyError, TypeError):
            found.append(f"'{ref}' leads nowhere")
    for kind, things in document.doc["components"].items():
        for name in things:
            if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in used:
                found.append(f"nothing refers to '{name}' in components.{kind}")
    return found


def operations(document):
    found, ids = [], set()
    tags = {t["name"] for t in document.doc["tags"]}
    for o in document.operations:
        if o.own["operationId"] in ids:
            found.append(f"the operationId '{o.own['operationId']}' is given twice")
        ids.add(o.own["operationId"])
        if o.own["tags"][0] not in tags:
            found.append(f"{o.name}: there is no tag '{o.own['tags'][0]}'")
        declared = {p["name"] for p in o.parameters if p["in"] == "path"}
        if declared != set(re.findall(r"\{([^}]*)\}", o.path)):
            found.append(f"{o.name}: the path parameters are not those of '{o.path}'")
        if (o.role == "none") != (o.own.get("security") == []):
            found.append(f"{o.name}: 'security: []' and the role none belong together")
        wanted = {"none": set()}.get(o.role, {"401", "403"}) | ({"400"} if declared else set())
        for status in sorted(wanted - set(o.responses)):
            found.append(f"{o.name}: says nothing of {status}")
        if ("101" in o.responses) != ("426" in o.responses):
            found.append(f"{o.name}: a WebSocket has both 101 and 426")
    return found


def examples(document):
    """Each is what its schema says."""
    found = []
    for path, node in every(document.doc):
        if not isinstance(node, dict) or "properties" in path or "schema" not in node:
            continue
        values = [node["example"]] if "example" in node else []
        values += [document.resolve(e)["value"] for e in node.get("examples", {}).values()]
        for value in values:
            if path[-1] == "text/event-stream" or path[-1] == "application/x-ndjson":
                continue
            found += [f"the example of {'.'.join(map(str, path))}: {line}"
                      for line in document.problems(node["schema"], value)]
    return found


def schemas(document):
    """Objects are closed, and say what is always there; only requests may leave members away."""
    found = []
    for path, node in every(document.doc):
        if not isinstance(node, dict) or node.get("type") != "object" or "x-muster-errors" in path:
            continue
        where = ".".join(map(str, path))
        if "additionalProperties" not in node and path[-1] not in OPEN:
            found.append(f"{where}: 'additionalProperties' is not said")
        unknown = set(node.get("required", [])) - set(node.get("properties", {}))
        found += [f"{where}: '{name}' is required but not described" for name in unknown]
    return found


# --- against the source -----------------------------------------------------------------------

def routes(root, document):
    found, source = [], {}
    for number, line in lines(read(root, ROUTES)):
        m = re.match(r'\s*\{ "([A-Z]+)", "(/[^"]*)", (WHO_\w+), ([^,]*),', line)
        if m:
            source[m.group(1), m.group(2)] = (number, ROLES[m.group(3)], "UPGRADE" in m.group(4))
    written = {(o.method, o.pattern()): o for o in document.operations}
    for key, (number, role, upgrade) in source.items():
        where, name = f"{ROUTES}:{number}: ", " ".join(key)
        o = written.get(key)
        if not o:
            found.append(where + f"{name} is not in {DOCUMENT}")
        elif o.role != role:
            found.append(where + f"{name} is for '{role}', {DOCUMENT} says '{o.role}'")
        elif upgrade != ("101" in o.responses):
            found.append(where + f"{name}: one of table and {DOCUMENT} says WebSocket")
    return found + [f"{o.name}: '{o.path}' is not in {ROUTES}"
                    for key, o in written.items() if key not in source]


# How the source gives an error: a reply, a row of errno or status -> code, the end of a stream.
GIVEN = [
    (r'\breply_error(?:_more)?\(\s*[^,]+,\s*(\d{3}),\s*"(\w+)"', None),
    (r'^\s*\{ -E\w+, (\d{3}), "(\w+)" \},', None),
    (r'^\s*\{ (\d{3}), "(\w+)" \},', None),
    (r'\bstream_(?:fail|error)\(\s*\w+,()\s*"(\w+)"', "websocket"),
    (r'\bjson_set_str\(last,()\s*"code",\s*"(\w+)"', "line"),
    (r'-ESTALE \?() "(\w+)"', "event"),
    (r'"\{\\"error\\":\{()\\"code\\":\\"(\w+)\\"', 400),
]


def given(root):
    """(where it comes, code) -> the first place."""
    found = {}
    for path in tracked(root, "src/manager/*.c", "src/net/*.c", "src/agent/*.c"):
        text = read(root, path)
        for pattern, way in GIVEN:
            for m in re.finditer(pattern, text, re.M):
                number = text.count("\n", 0, m.start(2)) + 1
                found.setdefault((way or int(m.group(1)), m.group(2)), f"{path}:{number}: ")
    return found


def codes(root, document):
    source = given(root)
    found = [where + f"the error '{code}' with {way} is not in x-muster-errors of {DOCUMENT}"
             for (way, code), where in source.items() if (way, code) not in document.errors]
    known = {code for _, code in source} | {"internal"}  # what no row of a table names
    for way, code in sorted(document.errors, key=str):
        if code not in known or (isinstance(way, int) and code != "internal" and
                                 (way, code) not in source):
            found.append(f"code: '{code}' with {way} is nowhere in the source")
    listed = {code for _, code in document.errors}
    for path, node in every(document.doc["components"]["schemas"]):
        if path and path[0].startswith("Error") and path[-1] == "enum":
            found += [f"{path[0]}: '{code}' is not in x-muster-errors" for code in node
                      if code not in listed]
    return found


def reasons(root, document):
    """The codes of a session's reason: those of the scheduler are a table, the others words."""
    written = set(document.at("#/components/schemas/ReasonCode")["enum"]) - {""}
    found = []
    for number, line in lines(read(root, "src/sched/explain.c")):
        m = re.match(r'\s*\[(?:CODE|LEDGER)_\w+\] = \{?"([a-z_]+)",', line)
        if m and m.group(1) not in written:
            found.append(f"src/sched/explain.c:{number}: the reason '{m.group(1)}' is not in {DOCUMENT}")
    source = "".join(read(root, p) for p in tracked(root, "src/sched/*.c", "src/manager/*.c"))
    return found + [f"ReasonCode: '{code}' is nowhere in the source" for code in sorted(written)
                    if f'"{code}"' not in source]

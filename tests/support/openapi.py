"""docs/openapi.yaml as something to ask: which operation a request is, and what is wrong with a reply.

References are put in place once, and a validator is kept for each schema that was asked for, since
most replies of a run have one of a few. A reply that was found good is not looked at again: tests
that wait ask the same over and over.
"""
import hashlib
import json
import re
from pathlib import Path

import jsonschema
import yaml

METHODS = ("get", "put", "post", "delete", "patch")
PATH = Path(__file__).resolve().parents[2] / "docs/openapi.yaml"
# Given for what is no path or method of the document.
OUTSIDE = {(404, "no_such_address"), (405, "bad_method")}


class Operation:
    def __init__(self, document, method, path, item):
        self.method, self.path = method.upper(), path
        self.own = item[method]
        self.role = self.own.get("x-muster-role")
        self.parameters = [document.resolve(p)
                           for p in (*item.get("parameters", []), *self.own.get("parameters", []))]
        self.responses = {status: document.resolve(r)
                          for status, r in self.own["responses"].items()}
        rest = {p["name"] for p in self.parameters if p.get("x-muster-rest")}
        self.regex = re.compile("".join(
            (r"(?:.+)" if part[1:-1] in rest else r"(?:[^/]+)") if part.startswith("{") else
            re.escape(part) for part in re.split(r"(\{[^}]*\})", path)) + r"\Z")

    @property
    def name(self):
        return f"{self.method} {self.path}"

    def pattern(self):
        """As the route table of the manager writes it."""
        rest = {p["name"] for p in self.parameters if p.get("x-muster-rest")}
        return re.sub(r"\{([^}]*)\}", lambda m: "{*}" if m.group(1) in rest else "{}", self.path)


class Document:
    def __init__(self, text):
        self.doc = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.operations = [Operation(self, method, path, item)
                           for path, item in self.doc["paths"].items()
                           for method in METHODS if method in item]
        self.errors = {(status, e["code"]) for e in self.doc["x-muster-errors"] for status in e["in"]}
        self._validators, self._inlined, self._good = {}, {}, set()

    @classmethod
    def load(cls, path=PATH):
        return cls(Path(path).read_text(encoding="utf-8"))

    # --- references -------------------------------------------------------------------------

    def at(self, ref):
        """What "#/a/b" points at; KeyError when nothing is there."""
        node = self.doc
        for step in ref.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
        return node

    def resolve(self, node):
        return self.resolve(self.at(node["$ref"])) if "$ref" in node else node

    def inline(self, schema):
        """The schema without references. Ours never lead back to themselves."""
        if id(schema) in self._inlined:
            return self._inlined[id(schema)][0]
        if isinstance(schema, list):
            made = [self.inline(s) for s in schema]
        elif isinstance(schema, dict):
            made = {k: self.inline(v) for k, v in schema.items()
                    if k not in ("$ref", "description", "example", "examples")}
            if isinstance(schema.get("$ref"), str):
                target = self.inline(self.at(schema["$ref"]))
                made = {"allOf": [target, made]} if made else target
        else:
            return schema
        self._inlined[id(schema)] = (made, schema)  # which keeps its id from being used again
        return made

    def validator(self, schema):
        if id(schema) not in self._validators:
            made = jsonschema.Draft202012Validator(self.inline(schema))
            self._validators[id(schema)] = (made, schema)
        return self._validators[id(schema)][0]

    def problems(self, schema, value):
        """What the schema has against the value, a line each."""
        return sorted(f"{'.'.join(map(str, e.absolute_path)) or 'the whole'}: {short(deepest(e))}"
                      for e in self.validator(schema).iter_errors(value))

    # --- replies ----------------------------------------------------------------------------

    def find(self, method, path):
        """The operation, or None; and whether the path has others."""
        fits = [o for o in self.operations if o.regex.match(path)]
        own = [o for o in fits if o.method == method]
        return own[0] if own else None, bool(fits)

    def check_reply(self, method, path, status, content_type, body):
        """What is not as the document says, a line each; path without its query."""
        key = (method, path, status, content_type, hashlib.sha256(body).digest())
        if key in self._good:
            return []
        found = self._check_reply(method, path, status, (content_type or "").split(";")[0], body)
        if not found:
            self._good.add(key)
        return found

    def _check_reply(self, method, path, status, content_type, body):
        operation, known = self.find(method, path)
        if not operation:
            code = 405 if known else 404
            if status == code:
                return self._check_error(status, body)
            return [f"{method} {path}: no such operation, but answered with {status}"]
        response = operation.responses.get(str(status), operation.responses.get("default"))
        content = response.get("content", {})
        where = f"{operation.name}: {status}"
        if content_type not in content:
            if not body and not content:
                return []
            return [f"{where}: content type '{content_type}' is not there"]
        if content_type != "application/json":
            return [f"{where}: {line}" for line in self._check_stream(operation, content_type, body)]
        try:
            value = json.loads(body)
        except ValueError as e:
            return [f"{where}: no JSON: {e}"]
        found = [f"{where}: {line}"
                 for line in self.problems(content[content_type]["schema"], value)]
        return found + (self._check_error(status, body) if status >= 400 else [])

    def _check_error(self, status, body):
        try:
            code = json.loads(body)["error"]["code"]
        except (ValueError, LookupError, TypeError):
            return [f"{status}: the body is no error: {body[:80]!r}"]
        if (status, code) not in self.errors:
            return [f"{status}: the error code '{code}' is not in x-muster-errors with this status"]
        return []

    # --- streams ----------------------------------------------------------------------------

    @staticmethod
    def frames(operation, kind, side):
        return [f["schema"] for f in operation.own.get("x-muster-frames", [])
                if f["type"] == kind and f["from"] == side and "schema" in f]

    def _check_stream(self, operation, content_type, body):
        if content_type == "application/x-ndjson":
            values, kind = body.splitlines(), "line"
        elif content_type == "text/event-stream":
            values, kind = re.findall(rb"^data: (.*)$", body, re.M), "event"
        else:
            return []
        return [line for v in values for line in self.check_frame(operation, kind, v)]

    def check_frame(self, operation, kind, text, side="server"):
        """A line or an event of a stream, a text message of a WebSocket: one of those of its kind."""
        try:
            value = json.loads(text)
        except ValueError as e:
            return [f"{kind} {text[:80]!r}: no JSON: {e}"]
        found = [self.problems(schema, value) for schema in self.frames(operation, kind, side)]
        if not found or all(found):
            best = min(found, key=len, default=["there are none of this kind"])
            return [f"{kind} {text[:80]!r}: {line}" for line in best]
        return []

    def check_text(self, method, path, text, side):
        """A text message of a WebSocket that was opened."""
        operation, _ = self.find(method, path)
        return [f"{operation.name}: from the {side}: {line}"
                for line in self.check_frame(operation, "text", text, side)]


def deepest(error):
    """Of alternatives, the reason of the one that came closest."""
    while error.context:
        error = max(error.context, key=lambda e: len(e.absolute_path))
    return error


def short(error):
    return f"{error.message[:300]}"

/*
 * Shows /v1/openapi.json: operations by tag, with parameters, bodies, replies, frames and examples;
 * error codes; schemas. Everything is made of elements and text, never of markup in strings.
 */
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
let doc;

/* --- elements ------------------------------------------------------------------------------ */

/* make("p.note", {id: "x"}, "text", child, ...): null children are left out. */
function make(what, ...rest) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length)
    element.className = classes.join(" ");
  for (const item of rest.flat(3)) {
    if (item === null || item === undefined || item === false)
      continue;
    if (typeof item === "object" && !(item instanceof Node))
      Object.entries(item).forEach(([key, value]) => element.setAttribute(key, value));
    else
      element.append(item);
  }
  return element;
}

/* `code`, *emphasis* and addresses in one line of text. */
function inline(text) {
  return text.split(/(`[^`]+`|\*[^*\s][^*]*\*)/).map(part => {
    if (part.startsWith("`"))
      return make("code", part.slice(1, -1));
    return /^\*.+\*$/.test(part) ? make("em", part.slice(1, -1)) : part;
  });
}

/* Paragraphs, and lists whose items begin with "* ". */
function prose(text) {
  return (text || "").trim().split(/\n\s*\n/).filter(Boolean).map(block => {
    if (!block.startsWith("* "))
      return make("p", inline(block.replace(/\s+/g, " ")));
    return make("ul", block.slice(2).split(/\n\* /).map(
      item => make("li", inline(item.replace(/\s+/g, " ")))));
  });
}

function json(value) {
  return make("pre", typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

/* --- the document -------------------------------------------------------------------------- */

function at(ref) {
  return ref.slice(2).split("/").reduce((node, step) => node[step], doc);
}

/* What a reference means, with what stands beside it; .from is the name that it went by. */
function resolve(node) {
  if (!node || !node.$ref)
    return node;
  const { $ref, ...beside } = node;
  return { from: $ref.split("/").pop(), ...resolve(at($ref)), ...beside };
}

function exampleOf(content) {
  if (content.example !== undefined)
    return content.example;
  const first = Object.values(content.examples || {})[0];
  return first && resolve(first).value;
}

/* --- schemas ------------------------------------------------------------------------------- */

const isNamed = schema => schema && schema.$ref && /^#\/components\/schemas\/[^/]+$/.test(schema.$ref);

/* Words and numbers are said in place; only objects have a section of their own. */
function linkOf(schema) {
  if (!isNamed(schema))
    return null;
  const name = schema.$ref.split("/").pop(), target = resolve(schema);
  return target.properties ? make("a", { href: `#schema-${name}` }, name) : null;
}

function join(parts, between) {
  return parts.flatMap((part, i) => i ? [between, part] : [part]);
}

/* The type in a few words. */
function typeOf(schema) {
  const link = linkOf(schema);
  if (link)
    return [link];
  const s = resolve(schema), either = s.oneOf || s.anyOf;
  if (either)
    return join(either.map(typeOf), " or ");
  if (s.const !== undefined)
    return [make("code", JSON.stringify(s.const))];
  if (s.enum && s.enum.length <= 8)
    return join(s.enum.map(value => make("code", value === null ? "null" : String(value) || '""')), " ");
  if (s.from === "Flag" || s.from === "Time")
    return [s.from.toLowerCase()];
  const types = [s.type || "anything"].flat().map(type => {
    if (type === "array" && s.items)
      return ["list of ", typeOf(s.items)];
    if (type === "object" && s.additionalProperties && !s.properties)
      return ["object of ", typeOf(s.additionalProperties)];
    return type;
  });
  return join(types, " or ");
}

function limitsOf(schema) {
  const s = resolve(schema), said = [];
  if (s.minimum !== undefined && s.maximum !== undefined)
    said.push(`${s.minimum} to ${s.maximum}`);
  else if (s.minimum)
    said.push(`at least ${s.minimum}`);
  if (s.maxLength)
    said.push(`at most ${s.maxLength} characters`);
  if (s.maxItems)
    said.push(`at most ${s.maxItems}`);
  if (s.default !== undefined && s.default !== "0")
    said.push(`default ${JSON.stringify(s.default)}`);
  return said.length ? make("span.limits", said.join(", ")) : null;
}

/* Rows for the members of an object, those of unnamed objects within below them. */
function memberRows(schema, depth = 0) {
  const s = resolve(schema), required = s.required || [];
  return Object.entries(s.properties || {}).flatMap(([name, member]) => {
    const m = resolve(member);
    const within = !linkOf(member) && (m.properties ? m : m.items && !linkOf(m.items) ? m.items : null);
    return [
      make("tr",
        make("td.name", { class: `name depth${Math.min(depth, 3)}` }, make("code", name),
          required.includes(name) ? null : make("span.optional", "optional")),
        make("td.type", typeOf(member)),
        make("td", prose(m.description), limitsOf(member))),
      ...(within ? memberRows(within, depth + 1) : []),
    ];
  });
}

function schemaView(schema) {
  if (!schema)
    return [];
  const s = resolve(schema), rows = memberRows(schema);
  if (/^Error./.test(s.from || "")) /* its codes stand beside it */
    return [];
  if (linkOf(schema) || s.oneOf || !rows.length)
    return s.type === "string" && !s.enum ? [] : [make("p.is", typeOf(schema))];
  return [make("table.members", make("tbody", rows))];
}

/* --- operations ---------------------------------------------------------------------------- */

function parameterTable(parameters) {
  if (!parameters.length)
    return null;
  return [make("h4", "Parameters"), make("table.members", make("tbody", parameters.map(p =>
    make("tr",
      make("td.name", make("code", p.name), make("span.where", p.in),
        p.required ? null : make("span.optional", "optional")),
      make("td.type", typeOf(p.schema)),
      make("td", prose(p.description || resolve(p.schema).description), limitsOf(p.schema),
        p.example !== undefined ? make("span.limits", `example ${p.example}`) : null)))))];
}

function bodyView(title, content) {
  return Object.entries(content || {}).map(([type, c]) => [
    title && make("h4", title, make("span.media", type)),
    !title && make("p.media", type),
    schemaView(c.schema),
    exampleOf(c) === undefined ? null : json(exampleOf(c)),
  ]);
}

function codesOf(response) {
  const content = (response.content || {})["application/json"];
  const error = content && (resolve(content.schema).properties || {}).error;
  const code = error && error.properties && error.properties.code;
  return (code && code.enum) || [];
}

function responseView(status, response) {
  const r = resolve(response), codes = codesOf(r);
  const kind = status === "default" ? "other" : `s${status[0]}`;
  return make("details.response",
    make("summary", make("span.status", { class: `status ${kind}` }, status === "default" ? "any" : status),
      make("span.about", inline((r.description || "").trim().split("\n\n")[0].replace(/\s+/g, " "))),
      make("span.codes", codes.map(code => make("a.code", { href: `#error-${code}` }, code)))),
    Object.entries(r.headers || {}).map(([name, h]) =>
      make("p", make("code", name), ": ", inline(h.description))),
    bodyView(null, r.content));
}

function frameView(frame) {
  return make("details.response",
    make("summary", make("span.status", { class: `status ${frame.from}` },
      frame.from === "client" ? "\u2192" : "\u2190"),
      make("span.about", make("strong", frame.name), make("span.media", `${frame.from}, ${frame.type}`))),
    prose(frame.description), schemaView(frame.schema),
    frame.example === undefined ? null : json(frame.example));
}

function operationView(path, method, item, operation) {
  const parameters = [...(item.parameters || []), ...(operation.parameters || [])].map(resolve);
  const body = resolve(operation.requestBody);
  const frames = operation["x-muster-frames"] || [];
  return make("section.operation", { id: operation.operationId },
    make("h3", make("span.method", { class: `method ${method}` }, method.toUpperCase()),
      make("code.path", path), make("span.role", { title: "the role it needs" }, operation["x-muster-role"])),
    make("p.summary", make("strong", operation.summary), operation.deprecated && make("em", " deprecated")),
    prose(operation.description),
    parameterTable(parameters),
    body && bodyView("Body", body.content),
    make("h4", "Replies"),
    Object.entries(operation.responses).sort().map(([status, r]) => responseView(status, r)),
    frames.length > 0 && [make("h4", "Frames"), frames.map(frameView)]);
}

function operationsOf(tag) {
  return Object.entries(doc.paths).flatMap(([path, item]) =>
    METHODS.filter(method => item[method] && item[method].tags.includes(tag)).map(
      method => ({ path, method, item, operation: item[method] })));
}

/* --- the page ------------------------------------------------------------------------------ */

function indexOf(tag) {
  return make("details.tag", { open: "" }, make("summary", tag.name),
    operationsOf(tag.name).map(({ path, method, operation }) =>
      make("a.entry", { href: `#${operation.operationId}`, title: operation.summary },
        make("span.method", { class: `method ${method}` }, method.toUpperCase()),
        make("span", path.replace("/v1", "")))));
}

function errorTable() {
  return make("section", { id: "errors" }, make("h2", "Error codes"),
    make("table.members", make("tbody", doc["x-muster-errors"].map(e =>
      make("tr", { id: `error-${e.code}` }, make("td.name", make("code", e.code)),
        make("td.type", e.in.join(", ")), make("td", inline(e.text)))))));
}

function schemaSections() {
  const shown = Object.entries(doc.components.schemas).filter(
    ([name, s]) => s.properties && !/^Error./.test(name));
  return make("section", { id: "schemas" }, make("h2", "Schemas"), shown.map(([name, s]) =>
    make("section.operation", { id: `schema-${name}` }, make("h3", make("code.path", name)),
      prose(s.description), make("table.members", make("tbody", memberRows(s))))));
}

function show() {
  const main = document.getElementById("top");
  main.replaceChildren(
    make("header", make("h2", doc.info.summary), prose(doc.info.description),
      make("p", make("a", { href: "/v1/openapi.json" }, "openapi.json"), " is this document for programs.")),
    ...doc.tags.map(tag => make("section", { id: `tag-${tag.name}` },
      make("h2", tag.name), prose(tag.description),
      operationsOf(tag.name).map(o => operationView(o.path, o.method, o.item, o.operation)))),
    errorTable(), schemaSections());
  document.getElementById("index").replaceChildren(...doc.tags.map(indexOf),
    make("a.entry.plain", { href: "#errors" }, "Error codes"),
    make("a.entry.plain", { href: "#schemas" }, "Schemas"));
}

/* Only operations with all of the words in path, summary or name. */
function filter(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of document.querySelectorAll("#index .entry")) {
    const about = `${entry.textContent} ${entry.title} ${entry.hash}`.toLowerCase();
    entry.hidden = !words.every(word => about.includes(word));
  }
}

function jump() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target)
    target.scrollIntoView();
}

async function start() {
  try {
    const reply = await fetch("/v1/openapi.json");
    if (!reply.ok)
      throw new Error(`the manager answered with ${reply.status}`);
    doc = await reply.json();
    show();
    jump(); /* what the address names was not there before */
  } catch (e) {
    document.getElementById("top").replaceChildren(
      make("p.failed", `The document cannot be shown: ${e.message}. Load the page again.`));
  }
}

document.getElementById("filter").addEventListener("input", e => filter(e.target.value));
start();

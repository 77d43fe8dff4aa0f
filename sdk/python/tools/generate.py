"""Writes src/lubdub/types.py and src/lubdub/_calls.py from api/openapi.json; with --check it only reports whether they are current."""

import json
import pathlib
import re
import sys
import textwrap
from typing import Any, Dict, List, Tuple, cast

HERE = pathlib.Path(__file__).resolve().parent.parent
SPEC = HERE.parent.parent / "api" / "openapi.json"
Json = Dict[str, Any]

SKIPPED = {"openapi"}
WIDTH = 132


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().replace("-_", "_").replace("-", "_")


def ref(schema: Json) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[1]


def class_name(name: str) -> str:
    return name[0].upper() + name[1:]


def type_of(schema: Json) -> str:
    if "$ref" in schema:
        return class_name(ref(schema))
    if "anyOf" in schema:
        return union([type_of(s) for s in schema["anyOf"]])
    if "enum" in schema:
        values: List[Any] = schema["enum"]
        literal = "Literal[" + ", ".join(json.dumps(v) for v in values if v is not None) + "]"
        return f"Optional[{literal}]" if None in values else literal
    if "type" not in schema:
        return "Json"
    declared: Any = schema["type"]
    kinds = cast(List[str], declared) if isinstance(declared, list) else [str(declared)]
    if len(kinds) > 4:
        return "Json"
    return union([plain(kind, schema) for kind in kinds])


def plain(kind: str, schema: Json) -> str:
    if kind == "array":
        return f"List[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        values: Any = schema.get("additionalProperties")
        return f"Dict[str, {type_of(cast(Json, values)) if isinstance(values, dict) else 'Json'}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}[kind]


def union(types: List[str]) -> str:
    flat = [part for t in types for part in ([t[9:-1], "None"] if t.startswith("Optional[") else [t])]
    unique = list(dict.fromkeys(flat))
    some = [t for t in unique if t != "None"]
    if not some:
        return "None"
    inner = some[0] if len(some) == 1 else f"Union[{', '.join(some)}]"
    return f"Optional[{inner}]" if "None" in unique else inner


def comment(text: str, indent: str) -> List[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(text, WIDTH - len(indent) - 2)]


def docstring(text: str, indent: str) -> List[str]:
    lines = textwrap.wrap(text.replace("\\", "\\\\"), WIDTH - len(indent) - 3) or ["-"]
    lines[0] = indent + '"""' + lines[0]
    return (
        [lines[0]] + [indent + line for line in lines[1:-1]] + ([indent + lines[-1] + '"""'] if len(lines) > 1 else [])
        if len(lines) > 1
        else [lines[0] + '"""']
    )


def fields(lines: List[str], properties: Json, names: List[str]) -> None:
    for name in names:
        lines += comment(properties[name].get("description", ""), "    ")
        lines.append(f"    {name}: {type_of(properties[name])}")


def typed_dict(name: str, schema: Json) -> List[str]:
    properties: Json = schema.get("properties", {})
    required = [p for p in sorted(properties) if p in schema.get("required", [])]
    optional = [p for p in sorted(properties) if p not in required]
    if any(p in ("from", "to", "class") for p in properties):
        inner = ", ".join(f'"{p}": {type_of(properties[p])!r}' for p in sorted(properties))
        return [f'{name} = TypedDict("{name}", {{{inner}}}, total={bool(required)})', "", ""]
    lines: List[str] = []
    base, about = "TypedDict", schema.get("description", "It has no fields.")
    if required and optional:
        base = f"_{name}"
        lines += [f"class {base}(TypedDict):"]
        fields(lines, properties, required)
        lines += ["", ""]
    lines.append(f"class {name}({base}{'' if required and not optional else ', total=False'}):")
    lines += docstring(about, "    ")
    body = optional if optional else required
    if body:
        lines.append("")
        fields(lines, properties, body)
    return lines + ["", ""]


def types_file(spec: Json) -> str:
    lines = [
        '"""The bodies of all calls, as api/openapi.json describes them. Written by tools/generate.py; change it there."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any, Dict, List, Literal, Optional, TypedDict, Union",
        "",
        "# Any JSON value.",
        "Json = Any",
        "",
        "",
    ]
    schemas: Json = spec["components"]["schemas"]
    for name in sorted(schemas):
        schema = schemas[name]
        if "properties" in schema and (schema["properties"] or schema.get("type") == "object"):
            lines += typed_dict(class_name(name), schema)
        else:
            lines += [f"{class_name(name)} = {type_of(schema)}", "", ""]
    return "\n".join(lines).rstrip() + "\n"


def answer_of(operation: Json) -> Tuple[str, bool]:
    found: List[str] = []
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2") and "content" in answer:
            found.append(type_of(answer["content"]["application/json"]["schema"]))
    return prefixed(union(found or ["Json"])), bool(found)


def prefixed(kind: str) -> str:
    known = {"List", "Dict", "Optional", "Union", "Literal", "Json", "None", "Any"}
    outside = re.split(r'("[^"]*")', kind)
    for i in range(0, len(outside), 2):
        outside[i] = re.sub(r"\b([A-Z]\w+)\b", lambda m: m[0] if m[1] in known - {"Json"} else "t." + m[1], outside[i])
    return "".join(outside)


def call(method: str, path: str, operation: Json, schemas: Json) -> Tuple[List[str], List[str]]:
    """A call's method of Calls, and that of AsyncCalls."""
    op = operation["operationId"]
    parameters: List[Json] = operation.get("parameters", [])
    ids = [p for p in parameters if p["in"] == "path"]
    query = [p for p in parameters if p["in"] == "query" and p["name"] not in ("tenantId", "workspaceId")]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answer, _ = answer_of(operation)
    securities = [key for s in operation.get("security", []) for key in s]
    arguments = ["self"] + [f"{snake(p['name'])}: str" for p in ids]
    given = [f'"{method.upper()}"', json.dumps(re.sub(r"\{[^}]*\}", "{}", path))]
    if ids:
        given.append("ids=(" + ", ".join(snake(p["name"]) for p in ids) + ",)")
    if body is not None and ref(body) == "noFields":
        given.append("body={}")
    elif body is not None:
        needed = schemas[ref(body)].get("required", [])
        arguments.append(f"body: t.{ref(body)}" if needed else f"body: Optional[t.{ref(body)}] = None")
        given.append("body=body" if needed else "body=body or {}")
    later: List[str] = []
    later += [f"{snake(p['name'])}: {prefixed(union([type_of(p['schema']), 'None']))} = None" for p in query]
    if query:
        given.append("query={" + ", ".join(f'"{p["name"]}": {snake(p["name"])}' for p in query) + "}")
    for header in (p for p in parameters if p["in"] == "header" and p["name"] in ("Idempotency-Key", "traceparent")):
        if op != "registerWorker" or header["name"] != "Idempotency-Key":
            later.append(f"{snake(header['name'])}: Optional[str] = None")
            given.append(f"{snake(header['name'])}={snake(header['name'])}")
    if "taskToken" in securities:
        later.append("token: str")
        given.append("token=token")
    elif "workerToken" in securities and "controlToken" in securities:
        later.append("token: Optional[str] = None")
        given.append("token=token")
    elif "workerToken" in securities:
        later.append("token: str")
        given.append("token=token")
    if not securities:
        given.append("opened=False")
    if path.startswith("/v1/") and any(p["name"] == "tenantId" for p in parameters):
        given.append("scoped=True")
    if not operation.get("x-idempotent", True):
        given.append("once=True")
    if "x-idempotent-by" in operation:
        given.append(f'drawn="{operation["x-idempotent-by"]}"')
    if op == "createTask":
        given.append("keyed=True")
    if op in ("claimTasks", "waitTasks"):
        given.append('waits=float((body or {}).get("waitMs") or 0) / 1000')
    if any(p["name"] == "waitMs" for p in parameters):
        given.append("waits=(wait_ms or 0) / 1000")
    if later:
        arguments += ["*"] + later
    head = wrapped(f"    def {snake(op)}(", arguments, f") -> {answer}:")
    about = operation["summary"] + ". " + operation.get("description", "")
    lines = head + docstring(about.strip(), "        ")
    lines += wrapped(f"        return cast({json.dumps(answer) if '[' in answer else answer}, self.ask(", given, "))")
    head = wrapped(f"    async def {snake(op)}(", arguments, f") -> {answer}:")
    names = [argument.split(":")[0] for argument in arguments]
    before = names.index("*") if "*" in names else len(names)
    passed = names[1:before] + [f"{name}={name}" for name in names[before + 1 :]]
    coroutine = head + docstring(about.strip(), "        ")
    coroutine += wrapped(f"        return await self.call(lambda: self.client.{snake(op)}(", passed, "))")
    return lines + [""], coroutine + [""]


def wrapped(before: str, items: List[str], after: str) -> List[str]:
    line = before + ", ".join(items) + after
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(before) - len(before.lstrip()) + 4)
    return (
        [before]
        + textwrap.wrap(
            ", ".join(items) + ",",
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        + [indent[4:] + after]
    )


def pages(operation: Json, schemas: Json) -> Tuple[List[str], List[str]]:
    """The iteration over all pages of a list: the method of Calls, and that of AsyncCalls."""
    op = operation["operationId"]
    query = [
        p
        for p in operation["parameters"]
        if p["in"] == "query" and p["name"] not in ("tenantId", "workspaceId", "pageToken")
    ]
    ids = [p for p in operation["parameters"] if p["in"] == "path"]
    answer = ref(operation["responses"]["200"]["content"]["application/json"]["schema"])
    entries = [
        n
        for n, s in schemas[answer]["properties"].items()
        if s.get("type") == "array" or "array" in (s.get("type") or [])
    ][0]
    item = prefixed(type_of(schemas[answer]["properties"][entries]["items"]))
    name = snake(op).replace("list_", "iter_", 1)
    arguments = ["self"] + [f"{snake(p['name'])}: str" for p in ids] + ["*"]
    arguments += [f"{snake(p['name'])}: {prefixed(union([type_of(p['schema']), 'None']))} = None" for p in query]
    given = (
        [snake(p["name"]) for p in ids]
        + [f"{snake(p['name'])}={snake(p['name'])}" for p in query]
        + ["page_token=token"]
    )
    about = docstring(f"Goes through all entries of {snake(op)}, page by page.", "        ")
    both: List[List[str]] = []
    for kind, before, each in (
        ("", "", [f'            yield from page["{entries}"]']),
        ("Async", "await ", [f'            for one in page["{entries}"]:', "                yield one"]),
    ):
        define = "async def" if kind else "def"
        lines = wrapped(f"    {define} {name}(", arguments, f") -> {kind}Iterator[{item}]:") + about
        lines += ["        token: Optional[str] = None", "        while True:"]
        lines += wrapped(f"            page = {before}self.{snake(op)}(", given, ")") + each
        lines += [
            '            token = page.get("nextPageToken")',
            "            if not token:",
            "                return",
            "",
        ]
        both.append(lines)
    return both[0], both[1]


def calls_file(spec: Json) -> str:
    head = (
        "Any, AsyncIterator, Callable, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, TypeVar, Union, "
        "cast"
    )
    lines = [
        '"""All calls of the wire contract, as api/openapi.json lists them. Written by tools/generate.py; change it there."""',
        "",
        "from __future__ import annotations",
        "",
        f"from typing import {head}",
        "",
        "from . import types as t",
        "",
        'T = TypeVar("T")',
        "",
        "",
        "class Calls:",
        '    """One method for each call. Client has them all."""',
        "",
        "    def ask(",
        "        self, method: str, path: str, *, ids: Sequence[str] = (), body: Optional[Mapping[str, Any]] = None,",
        "        query: Optional[Mapping[str, Any]] = None, token: Optional[str] = None, idempotency_key: Optional[str] = None,",
        "        traceparent: Optional[str] = None, opened: bool = True, scoped: bool = False, once: bool = False,",
        "        drawn: Optional[str] = None, keyed: bool = False, waits: float = 0,",
        "    ) -> Any:",
        '        """Makes a call and returns its answer. {} in the path are the ids, in their order."""',
        "        raise NotImplementedError",
        "",
    ]
    coroutines = [
        "",
        "class AsyncCalls:",
        '    """The same calls as coroutines. AsyncClient has them all."""',
        "",
        "    @property",
        "    def client(self) -> Calls:",
        '        """Makes the calls."""',
        "        raise NotImplementedError",
        "",
        "    async def call(self, make: Callable[[], T]) -> T:",
        '        """Makes a call in a thread."""',
        "        raise NotImplementedError",
        "",
    ]
    schemas = spec["components"]["schemas"]
    for path in sorted(spec["paths"]):
        for method, operation in sorted(spec["paths"][path].items()):
            if method == "parameters" or operation["operationId"] in SKIPPED:
                continue
            found = [call(method, path, operation, schemas)]
            if any(p["name"] == "pageToken" for p in operation.get("parameters", [])):
                found.append(pages(operation, schemas))
            for one, coroutine in found:
                lines += one
                coroutines += coroutine
    lines += coroutines
    text = "\n".join(lines).rstrip() + "\n"
    unused = [n for n in ("Dict", "List", "Literal", "Union") if not re.search(rf"\b{n}\[", text)]
    used = ", ".join(n for n in head.split(", ") if n not in unused)
    return text.replace(head, used, 1)


def files() -> Dict[pathlib.Path, str]:
    """The expected content of the generated files."""
    spec = json.loads(SPEC.read_text(encoding="utf-8"))
    source = HERE / "src" / "lubdub"
    return {source / "types.py": types_file(spec), source / "_calls.py": calls_file(spec)}


def main() -> int:
    stale = 0
    for path, text in files().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = 1
        if "--check" in sys.argv:
            print(f"{path} does not match api/openapi.json: run sdk/python/tools/generate.py")
        else:
            path.write_text(text, encoding="utf-8")
    return stale if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())

"""The OpenAPI document: our own routes from their types, the others from FastAPI."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from o2pl.serving.access_control import OPEN
from o2pl.serving.front import ROUTES
from o2pl.serving.problems import ErrorBody
from o2pl.serving.service import Route

_REF = "#/components/schemas/{name}"
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ERRORS = {
    "400": "Invalid request; the message says why",
    "401": "Missing or unknown key",
    "403": "The key does not allow this",
    "404": "No such event or model",
    "409": "The event id already exists, with another request",
    "412": "The settings were changed meanwhile",
    "413": "Too large",
    "429": "Rate limit exceeded for this application",
    "503": "The store is not available now",
}
SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def document(base: dict[str, Any]) -> dict[str, Any]:
    """Return the document. base: FastAPI's document of its routes."""
    shown = [route for route in ROUTES if route.documented]
    types = [
        kind for route in shown for kind in (route.request, route.answer, route.error) if kind not in (None, bytes)
    ]
    types = list(dict.fromkeys([*types, ErrorBody]))
    refs, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    of = dict(zip(types, refs, strict=True))
    paths: dict[str, Any] = {path: dict(operations) for path, operations in base.get("paths", {}).items()}
    for path in OPEN & paths.keys():
        for operation in paths[path].values():
            operation["security"] = []  # no key
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, of)
    components = base.get("components", {})
    return {
        **base,
        "paths": paths,
        "components": {
            **components,
            "schemas": {**components.get("schemas", {}), **schemas},
            "securitySchemes": SCHEMES,
        },
        "security": [{name: []} for name in SCHEMES],
    }


def _operation(route: Route, of: dict[Any, Any]) -> dict[str, Any]:
    name = re.sub("{(.*?)(Id)?}", r"\1", route.path).replace("/", "_")
    found: dict[str, Any] = {
        "summary": route.summary,
        "tags": [route.tag],
        "operationId": f"{route.method.lower()}{name}",
        "responses": {str(route.status): _answer(route, of)},
    }
    for status, said in _ERRORS.items():
        kind = route.error if status in ("400", "404") else ErrorBody
        found["responses"][status] = {"description": said, "content": {"application/json": {"schema": of[kind]}}}
    for name in re.findall("{(.*?)}", route.path):
        text = {"type": "string", "minLength": 1, "maxLength": 256}
        found["parameters"] = [{"name": name, "in": "path", "required": True, "schema": text}]
    if route.request is not None:
        content = _FILE if route.request is bytes else {"application/json": {"schema": of[route.request]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _answer(route: Route, of: dict[Any, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {"description": "Done"}
    content = _FILE if route.answer is bytes else {"application/json": {"schema": of[route.answer]}}
    return {"description": "Done", "content": content}

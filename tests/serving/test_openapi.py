"""The document describes every route once, with types that exist."""

from __future__ import annotations

import json

from o2pl.serving.front import ROUTES
from o2pl.serving.openapi import document


def test_every_documented_route_is_there() -> None:
    found = document({"openapi": "3.1.0", "paths": {"/health": {"get": {}}}, "components": {"schemas": {"Own": {}}}})
    assert found["paths"]["/health"]["get"]["security"] == []  # all others need a key
    assert found["security"] == [{name: []} for name in found["components"]["securitySchemes"]]
    assert not any(
        "security" in found["paths"][route.path][route.method.lower()] for route in ROUTES if route.documented
    )
    shown = [route for route in ROUTES if route.documented]
    assert {(route.path, route.method.lower()) for route in shown} == {
        (path, method) for path, own in found["paths"].items() for method in own if path != "/health"
    }
    schemas = found["components"]["schemas"]
    assert {"Own", "RankRequest", "DecideResponse", "ErrorBody"} <= set(schemas)
    for part in json.dumps(found).split('"$ref": "')[1:]:
        assert part.partition('"')[0].removeprefix("#/components/schemas/") in schemas
    names = [
        operation["operationId"]
        for own in found["paths"].values()
        for operation in own.values()
        if "operationId" in operation
    ]
    assert len(names) == len(set(names)) == len(shown)
    features = schemas["RankableAction"]["properties"]["features"]
    assert '"type": "object"' in json.dumps(features)

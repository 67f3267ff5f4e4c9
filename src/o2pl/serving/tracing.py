"""OpenTelemetry traces: a span per call, continuing the caller's trace, and one for its write to the store."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.extras import extra

_HEADERS = (b"traceparent", b"tracestate", b"baggage")


class Untraced:
    """Writes no spans; what a server uses unless it is told where to send them."""

    def span(self, name: str) -> AbstractContextManager[Any]:
        return nullcontext()

    def close(self) -> None:
        pass


class Traced:
    """Makes spans of OpenTelemetry's tracer."""

    def __init__(self, provider: Any) -> None:
        with extra("otel", "traces"):
            from opentelemetry import propagate, trace
        self._tracer, self._propagate, self._trace = provider.get_tracer("o2pl"), propagate, trace
        self._provider = provider

    def span(self, name: str) -> AbstractContextManager[Any]:
        """Return a span within the one of the call."""
        return self._tracer.start_as_current_span(name)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Send what waits."""
        self._provider.shutdown()

    def around(self, app: Any) -> Any:
        """Wrap the ASGI application. The front says in `scope["told"]` what the call was."""
        kind = self._trace.SpanKind.SERVER

        async def traced(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            came = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
            told: dict[str, Any] = {}
            with self._tracer.start_as_current_span(
                scope["method"], context=self._propagate.extract(came), kind=kind
            ) as span:
                await app({**scope, "told": told}, receive, send)
                span.update_name(f"{scope['method']} {told.get('http.route', 'other')}")
                span.set_attribute("http.request.method", scope["method"])
                for name, value in told.items():
                    span.set_attribute(name, value)
                if told.get("http.response.status_code", 0) >= 500:
                    span.set_status(self._trace.StatusCode.ERROR)

        return traced


Traces = Untraced | Traced


def traces_to(address: str) -> Traced:
    """Return traces that are sent in batches to an OTLP/HTTP address, such as http://localhost:4318/v1/traces."""
    if not address.startswith(("http://", "https://")):
        raise InvalidInput(f"traces: found {address!r}, expected the address of a collector: http://…:4318/v1/traces")
    with extra("otel", "traces"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    # `Resource.create` adds OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
    provider = TracerProvider(resource=Resource.create({"service.name": "o2pl"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    return Traced(provider)

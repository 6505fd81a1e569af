"""Log lines for tracing requests: one for each failed request, and one for each slow execution.

A line consists of an event and fields::

    request_failed model=thumbnail version=1 request=abc-17 fault=client kind=operator operator=penstock.fn.decoders.image sample=0 message=...
    slow_execution model=thumbnail version=1 samples=2 seconds=0.812 slowest=penstock.fn.resize slowest_seconds=0.640 requests=a,b

Unknown values are omitted. In values, all characters except visible ASCII ones are percent-encoded as in URLs, and so are ``%``,
``=``, ``,``, quotes and backslashes, so that no request can forge a field. A message is always the last field and extends to the end
of the line; its line breaks are replaced by blanks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from penstock.serving.refusals import Refusal

_PLAIN = "!#$&'()*+-./:;<>?@[]^_`{|}~"


def failed_request(model: str, version: str, request: str, refusal: Refusal) -> str:
    """Return the line for a failed request."""
    fields = {
        "model": model,
        "version": version,
        "request": request,
        "fault": refusal.fault.value,
        "kind": refusal.kind.value,
        "operator": refusal.operator,
        "sample": "" if refusal.sample is None else str(refusal.sample),
    }
    return f"request_failed {_joined(fields)} message={' '.join(refusal.message.split())}"


def slow_execution(
    model: str, version: str, requests: Iterable[str], samples: int, seconds: float, operators: Mapping[str, float]
) -> str:
    """Return the line for a slow execution.

    Args:
        model, version: the model and version of the execution.
        requests: the ids of the requests; empty ones are omitted.
        samples: the number of samples.
        seconds: how long the execution took, in seconds.
        operators: the seconds that each operator took, by name.
    """
    slowest = max(operators, key=operators.__getitem__, default="")
    fields = {
        "model": model,
        "version": version,
        "samples": str(samples),
        "seconds": f"{seconds:.3f}",
        "slowest": slowest,
        "slowest_seconds": f"{operators[slowest]:.3f}" if slowest else "",
    }
    ids = ",".join(quote(request, _PLAIN) for request in requests if request)
    return f"slow_execution {_joined(fields)}" + (f" requests={ids}" if ids else "")


def _joined(fields: Mapping[str, str]) -> str:
    return " ".join(f"{name}={quote(value, _PLAIN)}" for name, value in fields.items() if value)

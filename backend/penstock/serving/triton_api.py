"""Triton's functions, log and metrics page, for the Python that Triton hosts in its process.

The functions are those of the Triton in this process, called through :mod:`ctypes`; the calls that each request needs are made by
`backend/native`.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Mapping

from penstock.serving.metrics import Family
from penstock.serving.metrics_page import SeriesOnPage

logger = logging.getLogger(__name__)

_Address = ctypes.c_void_p
_LEVELS = ((logging.ERROR, 2), (logging.WARNING, 1), (logging.INFO, 0))
_VERBOSE_LEVEL = 3
_KINDS = {"COUNTER": 0, "GAUGE": 1, "HISTOGRAM": 2}
_STRING_TYPE = 0

# The return types of the functions that do not return errors, and the types of the arguments.
_RESULTS: dict[str, type | None] = {
    "ErrorMessage": ctypes.c_char_p,
    "ErrorDelete": None,
    "ParameterNew": _Address,
    "ParameterDelete": None,
    "InferenceResponseError": _Address,
}
_ARGUMENTS: dict[str, tuple[type, ...]] = {
    "ErrorMessage": (_Address,),
    "ErrorDelete": (_Address,),
    "LogMessage": (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p),
    "ParameterNew": (ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p),
    "ParameterDelete": (_Address,),
    "MetricFamilyNew": (_Address, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p),
    "MetricArgsNew": (_Address,),
    "MetricArgsSetHistogram": (_Address, _Address, ctypes.c_uint64),
    "MetricArgsDelete": (_Address,),
    "MetricNew": (_Address, _Address, _Address, ctypes.c_uint64),
    "MetricNewWithArgs": (_Address, _Address, _Address, ctypes.c_uint64, _Address),
    "MetricIncrement": (_Address, ctypes.c_double),
    "MetricSet": (_Address, ctypes.c_double),
    "MetricObserve": (_Address, ctypes.c_double),
    "MessageSerializeToJson": (_Address, _Address, _Address),
    "MessageDelete": (_Address,),
    "ServerModelConfig": (_Address, ctypes.c_char_p, ctypes.c_int64, ctypes.c_uint32, _Address),
    "ServerInferAsync": (_Address, _Address, _Address),
    "InferenceRequestNew": (_Address, _Address, ctypes.c_char_p, ctypes.c_int64),
    "InferenceRequestDelete": (_Address,),
    "InferenceRequestCancel": (_Address,),
    "InferenceRequestSetId": (_Address, ctypes.c_char_p),
    "InferenceRequestAddInput": (_Address, ctypes.c_char_p, ctypes.c_int, _Address, ctypes.c_uint64),
    "InferenceRequestAppendInputData": (
        _Address,
        ctypes.c_char_p,
        _Address,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int64,
    ),
    "InferenceRequestAddRequestedOutput": (_Address, ctypes.c_char_p),
    "InferenceRequestSetReleaseCallback": (_Address, _Address, _Address),
    "InferenceRequestSetResponseCallback": (_Address, _Address, _Address, _Address, _Address),
    "InferenceTraceSpawnChildTrace": (_Address, _Address),
    "InferenceTraceDelete": (_Address,),
    "InferenceResponseError": (_Address,),
    "InferenceResponseDelete": (_Address,),
    "InferenceResponseOutputCount": (_Address, _Address),
    "InferenceResponseOutput": (_Address, ctypes.c_uint32, *[_Address] * 9),
    "ResponseAllocatorNew": (_Address, _Address, _Address, _Address),
}


@functools.cache
def function(name: str) -> ctypes._NamedFuncPointer:  # private: its type has no public name
    """Return a function of Triton; raise RuntimeError if this Triton lacks it."""
    try:
        function = ctypes.CDLL(None)[f"TRITONSERVER_{name}"]
    except AttributeError:
        raise RuntimeError(f"this Triton has no TRITONSERVER_{name}") from None
    function.argtypes = _ARGUMENTS[name]
    function.restype = _RESULTS.get(name, _Address)
    return function


def call(name: str, *arguments: object) -> None:
    """Call a function that returns an error or null, and raise the error as RuntimeError."""
    error = function(name)(*arguments)
    if error:
        message = function("ErrorMessage")(error)
        function("ErrorDelete")(error)
        raise RuntimeError(message.decode(errors="replace"))


def log(level: int, text: str) -> None:
    """Write a line to the server's log; levels are those of :mod:`logging`."""
    number = next((number for min_level, number in _LEVELS if level >= min_level), _VERBOSE_LEVEL)
    call("LogMessage", number, b"penstock", 0, text.encode())


class _Series:
    """A series on the metrics page."""

    def __init__(self, metric: _Address) -> None:
        self._metric = metric

    def increment(self, value: float) -> None:
        call("MetricIncrement", self._metric, value)

    def set(self, value: float) -> None:
        call("MetricSet", self._metric, value)

    def observe(self, value: float) -> None:
        call("MetricObserve", self._metric, value)


class _NoSeries(_Series):
    """A histogram that has no effect, for a Triton older than 2.51."""

    def __init__(self) -> None:
        pass

    def observe(self, value: float) -> None:
        pass


_known: dict[tuple[str, tuple[tuple[str, str], ...]], SeriesOnPage] = {}


def series(family: Family, labels: Mapping[str, str]) -> SeriesOnPage:
    """Return the series with these labels. Series are never deleted, so that counters continue when a model is reloaded."""
    key = family.name, tuple(labels.items())
    if key not in _known:
        try:
            _known[key] = _Series(_new_metric(family, labels))
        except RuntimeError as error:
            if not family.buckets:
                raise
            logger.warning("%s is left out, as histograms need Triton 2.51 or newer: %s", family.name, error)
            _known[key] = _NoSeries()
    return _known[key]


def _new_metric(family: Family, labels: Mapping[str, str]) -> _Address:
    owner, metric, settings = _Address(), _Address(), _Address()
    call("MetricFamilyNew", ctypes.byref(owner), _KINDS[family.kind], family.name.encode(), family.doc.encode())
    tags = [function("ParameterNew")(name.encode(), _STRING_TYPE, value.encode()) for name, value in labels.items()]
    parameters = (_Address * len(tags))(*tags)
    try:
        if not family.buckets:
            call("MetricNew", ctypes.byref(metric), owner, parameters, len(tags))
            return metric
        call("MetricArgsNew", ctypes.byref(settings))
        bounds = (ctypes.c_double * len(family.buckets))(*family.buckets)
        call("MetricArgsSetHistogram", settings, bounds, len(bounds))
        call("MetricNewWithArgs", ctypes.byref(metric), owner, parameters, len(tags), settings)
    finally:
        for parameter in tags:
            function("ParameterDelete")(parameter)
        if settings:
            call("MetricArgsDelete", settings)
    return metric

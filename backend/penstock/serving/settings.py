"""The settings of a served model: the ``parameters`` in its configuration, which override the server's settings.

The server decides what a model may do: see :class:`Scope`.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from enum import Enum, auto
from typing import Any

from penstock.errors import PenstockError, did_you_mean
from penstock.serving.isolation import OWN_PROCESS

logger = logging.getLogger(__name__)

SERVER_SETTINGS = "PENSTOCK_BACKEND_CONFIG"
"""The environment variable with the server's settings: JSON with a section for each backend name; values are strings."""

_SECTIONS = ("dali", "penstock")  # the later section takes precedence
ISOLATION = ("auto", "all", "none")
DEVICES = ("auto", "cpu")
MODEL_ISOLATION = ("none", OWN_PROCESS)
PILLOW_PIXEL_LIMIT = 178_956_970
ONE_GIBIBYTE = 1 << 30
FOUR_GIBIBYTES = 4 << 30
AUTOMATIC = "auto"
_BUDGET = "memory_budget"


ModelConfig = Mapping[str, Any]
"""A model's configuration, in Triton's JSON form."""


class Scope(Enum):
    """How a model's parameter may change the server's value of a setting."""

    REPLACE = auto()
    NARROW = auto()
    """A model may set a part of what the server grants; :func:`penstock.serving.trust.check_trust` refuses anything more."""
    SERVER = auto()
    """Models cannot set it; only the server can."""


class ConfigurationError(PenstockError, ValueError):
    """Raised if a model's configuration is invalid, or does not match its pipeline."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Invalid argument: {message}")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _flag(text: str) -> bool:
    try:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
    except KeyError:
        raise ValueError from None


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return parse


def _seconds(text: str) -> float | None:
    if text == "none":
        return None
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError
    return seconds


def _list(separator: str) -> Callable[[str], tuple[str, ...]]:
    return lambda text: tuple(item.strip() for item in text.split(separator) if item.strip())


def _values(text: str) -> dict[str, object]:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError
    return values


def _limit(text: str) -> int | None:
    return None if text == "none" else _count(text)


def _budget(text: str) -> int | str | None:
    return text if text == AUTOMATIC else _limit(text)


def _setting(
    default: object, parse: Callable[[str], object], wanted: str, doc: str, scope: Scope = Scope.REPLACE
) -> Any:
    metadata = {"parse": parse, "wanted": wanted, "doc": doc, "scope": scope}
    return field(default_factory=lambda: default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """The settings of a model; each is declared with its default, its parser and its documentation."""

    num_threads: int | None = _setting(
        None, _count, "a number from 1", "CPU threads of the pipeline; by default its own, else one for each core."
    )
    allowed_modules: tuple[str, ...] = _setting(
        (),
        _list(","),
        "names, separated by commas",
        "Modules from which Python operators of saved pipelines may come. A model's parameter can only name fewer.",
        Scope.NARROW,
    )
    allowed_paths: tuple[str, ...] = _setting(
        (),
        _list(","),
        "paths, separated by commas",
        "What saved pipelines may read besides the model's folder: folders, and beginnings of remote paths. A model's "
        "parameter can only name less, and confines a Python file, too.",
        Scope.NARROW,
    )
    allowed_models: tuple[str, ...] = _setting(
        (),
        _list(","),
        "names, separated by commas",
        "Other models of the server that saved pipelines may call (fn.triton_model). A model's parameter can only name fewer.",
        Scope.NARROW,
    )
    allowed_hosts: tuple[str, ...] = _setting(
        (),
        _list(","),
        "hosts, separated by commas",
        "Web servers whose files requests may name in url_inputs: images.example.com, *.example.com, example.com:8443. A model's "
        "parameter can only name fewer.",
        Scope.NARROW,
    )
    trust_repository: bool = _setting(
        False,
        _flag,
        "true or false",
        "Let models' own config.pbtxt grant allowed_modules, allowed_paths, allowed_models, allowed_hosts and environments (EXECUTION_ENV_PATH).",
        Scope.SERVER,
    )
    allow_model_upload: bool = _setting(
        False,
        _flag,
        "true or false",
        "Let clients that may load models upload their files, which run here as code.",
        Scope.SERVER,
    )
    unsafe_response_cache: bool = _setting(
        False,
        _flag,
        "true or false",
        "Accept models with response_cache in Triton's Python stub, from which it also repeats failed and cancelled requests, as "
        "successes without outputs.",
        Scope.SERVER,
    )
    split_along_outer_axis: tuple[str, ...] = _setting(
        (), _list(":"), "names, separated by colons", "Outputs whose samples are cut along their first dimension."
    )
    response_parameters: tuple[str, ...] = _setting(
        (),
        _list(":"),
        "names, separated by colons",
        "Outputs that are sent as parameters of the response rather than as tensors: one number or string, or several as JSON.",
    )
    defaults: Mapping[str, object] = _setting(
        {},
        _values,
        "a JSON object of samples by input",
        "Values for inputs that a request leaves out; those named here are optional.",
    )
    url_inputs: tuple[str, ...] = _setting(
        (),
        _list(":"),
        "names, separated by colons",
        "Inputs whose strings may also be a file's address, of one of the allowed_hosts, or its base64 (data:image/jpeg;base64,...).",
    )
    max_fetched_bytes: int | None = _setting(
        32 << 20,
        _limit,
        "a number from 1, or none",
        "The most bytes of a file that a request names or brings as base64.",
    )
    fetch_seconds: float | None = _setting(
        10.0, _seconds, "a number of seconds, or none", "How long it may take to fetch a file that a request names."
    )
    max_pixels: int | None = _setting(
        PILLOW_PIXEL_LIMIT, _limit, "a number from 1, or none", "The most pixels that an encoded image may have."
    )
    max_bytes: int | None = _setting(
        ONE_GIBIBYTE, _limit, "a number from 1, or none", "The most bytes that a decoded image, sound or clip may take."
    )
    max_frames: int | None = _setting(
        None, _limit, "a number from 1, or none", "The most frames that an encoded video may have."
    )
    # A photo of 100 megapixels takes 0.3 to 0.9 GiB, or 1.6 GiB if it is a PNG of 16 bits; 64 photos of 12 megapixels take 2.2 GiB.
    max_memory: int | None = _setting(
        FOUR_GIBIBYTES,
        _limit,
        "a number from 1, or none",
        "The most bytes that a request may take at a time: to decode its files, for outputs, and for what lies between.",
    )
    max_model_memory: int | None = _setting(
        None, _limit, "a number from 1, or none", "The most bytes that all requests of the model may take at a time."
    )
    memory_budget: int | str | None = _setting(
        AUTOMATIC,
        _budget,
        "a number from 1, auto or none",
        "The most bytes that all requests may take at a time, in all models of a process. auto: 60 % of what the machine or its "
        "container has.",
    )
    memory_wait_seconds: float | None = _setting(
        10.0,
        _seconds,
        "a number of seconds, or none",
        "How long a request may wait for memory that others take; then it is refused as UNAVAILABLE.",
    )
    overlap_batches: bool = _setting(
        False,
        _flag,
        "true or false",
        "While a GPU computes a batch, begin the next one. Measure before you set it: batches get smaller. Ignored for models with "
        "Python functions.",
    )
    isolate_decoders: str = _setting(
        "auto",
        _one_of(*ISOLATION),
        "auto, all or none",
        "Which decoders run in worker processes, where a crash costs one sample.",
    )
    isolation: str = _setting(
        "none",
        _one_of(*MODEL_ISOLATION),
        "none or process",
        "With process, each instance of the model has a process of its own, Triton's Python stub, and may die alone.",
    )
    log_failures: str = _setting(
        "warning",
        _one_of("none", "info", "warning", "error"),
        "none, info, warning or error",
        "The level at which each request that fails is logged.",
    )
    slow_execution_seconds: float | None = _setting(
        None, _seconds, "a number of seconds, or none", "An execution that takes at least this long is logged."
    )
    self_check_seconds: float | None = _setting(
        30.0,
        _seconds,
        "a number of seconds, or none",
        "How often to check, at most, whether a model without traffic can still answer; none: never, even if requests fail.",
    )
    device: str = _setting(
        "auto",
        _one_of(*DEVICES),
        "auto or cpu",
        "cpu: everything runs on the CPU, even what asks for a GPU. auto: each operator runs where the pipeline says.",
    )
    release_after_unload: bool = _setting(
        False,
        _flag,
        "true or false",
        "Accepted, as by DALI's backend, without effect: an unloaded model holds nothing.",
    )
    plugin_libs: tuple[str, ...] = _setting(
        (),
        _list(":"),
        "paths, separated by colons",
        "Accepted, as by DALI's backend, without effect: operators in C++ libraries are not loaded.",
    )

    def without_limits(self) -> Settings:
        """Return a copy without limits, for a pipeline that decodes only trusted data."""
        return replace(self, max_pixels=None, max_bytes=None, max_frames=None, max_memory=None)


def declared() -> Iterator[Field[object]]:
    """Yield the fields of the settings, in order; ``metadata`` contains ``doc`` and ``wanted``."""
    return iter(fields(Settings))


def settings_of(config: Mapping[str, object], environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a model: its parameters, or else the server's settings, or else the defaults.

    Args:
        config: the model's configuration.
        environment: environment variables, which may include :data:`SERVER_SETTINGS`; by default those of the process.

    Raises:
        ConfigurationError: a value is invalid for its setting, or the model sets a setting that only the server can set.
    """
    sources = _configured(config, environment)
    parameters = _parameters(config)
    for item in declared():
        if item.metadata["scope"] is Scope.SERVER and item.name in parameters:
            option = item.name.replace("_", "-")
            raise ConfigurationError(
                f"the parameter '{item.name}' cannot be set by a model: it is an option of the server, `penstock serve --{option}`"
            )
    return Settings(**{item.name: _parsed(item, *sources[item.name]) for item in declared() if item.name in sources})


def server_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the server's settings; for ``environment``, see :func:`settings_of`."""
    return settings_of({}, environment)


def warn_of_unknown(config: Mapping[str, object], environment: Mapping[str, str] | None = None) -> None:
    """Log parameters of a model that are not settings, with the most similar setting, because Triton accepts any parameter."""
    if _BUDGET in _parameters(config):
        logger.warning("the parameter '%s' has no effect: it is the server's, for all models of a process", _BUDGET)
    known = [item.name for item in declared()]
    for name, (_, called) in _configured(config, environment).items():
        # Names in capitals are parameters of Triton's Python backend.
        if name not in known and not name.isupper():
            logger.warning("%s has no effect: it is not a setting of Penstock.%s", called, did_you_mean(name, known))


def _configured(config: Mapping[str, object], environment: Mapping[str, str] | None) -> dict[str, tuple[str, str]]:
    """Return the value of each configured setting as text, with the setting's name in messages."""
    return _server_settings(os.environ if environment is None else environment) | _parameters(config)


def _server_settings(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    text = environment.get(SERVER_SETTINGS)
    if not text:
        return {}
    try:
        sections = json.loads(text)
        return {
            name: (str(value), f"the server's setting {section},{name}")
            for section in _SECTIONS
            for name, value in sections.get(section, {}).items()
        }
    except (ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"{SERVER_SETTINGS} must be a JSON object of objects, got {text!r}: {error}"
        ) from error


def _parameters(config: ModelConfig) -> dict[str, tuple[str, str]]:
    """Return the values of a model's parameters as text, each with the parameter's name in messages."""
    entries = config.get("parameters") or {}
    return {
        name: (entry["string_value"] if isinstance(entry, Mapping) else str(entry), f"the parameter '{name}'")
        for name, entry in entries.items()
    }


def _parsed(item: Field[object], text: str, called: str) -> Any:
    try:
        return item.metadata["parse"](text.strip())
    except ValueError:
        raise ConfigurationError(f"{called} must be {item.metadata['wanted']}, got {text!r}") from None

"""Lists what the installed release of transformers adds to the recorded one: classes, model types, and settings of classes.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/new_release.py [--write]

It takes only seconds, as it runs no processors; `classes.py` compares their results. For each new class, it prints whether a preset
supports the class; for each new setting of a supported class, whether the preset knows the setting.
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from classes import Class, classes, is_followed
from libraries import versions

from penstock.presets import PresetError, read_configuration
from penstock.presets.family import known_settings

RECORDED = Path(__file__).parent / "recorded" / "release.json"
Release = Mapping[str, Mapping[str, list[str]]]
"""For each class, a dictionary of its model types and its settings."""


def release(found: Mapping[str, Class]) -> dict[str, dict[str, list[str]]]:
    """Return the model types and settings of each class of the installed release."""
    return {name: {"types": list(each.types), "settings": settings_of(each)} for name, each in found.items()}


def settings_of(each: Class) -> list[str]:
    """Return the settings that a class of transformers declares, or an empty list if the class needs a library that is not
    installed.
    """
    import transformers

    kind = getattr(transformers, each.name)
    try:
        keywords = getattr(kind, "valid_kwargs", None)
    except ImportError:
        return []
    own = set(inspect.signature(kind.__init__).parameters) | set(getattr(keywords, "__annotations__", ()))
    return sorted(own - {"self", "args", "kwargs", "super_kwargs"})


def added(before: Release, now: Release, known: Mapping[str, frozenset[str] | None]) -> Iterator[str]:
    """Yield a line for each class that is gone, and for each new class, model type and setting.

    Args:
        before, now: the recorded release and the installed one.
        known: for each class, the settings that its preset knows, or None if no preset supports the class.
    """
    for name in sorted(before.keys() - now.keys()):
        yield f"gone: {name}"
    for name, each in now.items():
        followed = known[name]
        if name not in before:
            yield f"new class: {name} ({', '.join(each['types'])}): {'no preset' if followed is None else 'followed'}"
            continue
        for model in sorted(set(each["types"]) - set(before[name]["types"])):
            yield f"new model type: {model} of {name}: {'no preset' if followed is None else 'followed'}"
        for setting in sorted(set(each["settings"]) - set(before[name]["settings"])):
            told = "no preset" if followed is None else "known" if setting in followed else "unknown to the preset"
            yield f"new setting: {setting} of {name}: {told}"


def known_to_presets(each: Class) -> frozenset[str] | None:
    """Return the settings that the preset of a class knows, or None if no preset supports the class."""
    if not is_followed(each.name, each.key):
        return None
    configuration: dict[str, Any] = {each.key: each.name}
    try:
        return known_settings(read_configuration(configuration))
    except PresetError:
        # The preset does not support the class's default settings.
        return frozenset()


def main() -> None:
    """Print the additions; with --write, record the installed release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the installed release")
    options = parser.parse_args()
    found = {each.name: each for each in classes()}
    now, recorded = release(found), json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    print(f"{versions('transformers')}, beside {recorded.get('versions', 'nothing')}")
    lines = list(
        added(recorded.get("classes", {}), now, {name: known_to_presets(each) for name, each in found.items()})
    )
    print(*lines or ["nothing is new"], sep="\n")
    if options.write:
        held = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in now.items())
        RECORDED.write_text(f'{{"versions": {json.dumps(versions("transformers"))},\n"classes": {{\n{held}\n}}}}\n')


if __name__ == "__main__":
    main()

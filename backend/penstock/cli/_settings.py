"""The options of commands that serve models: the settings of all models."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from penstock.serving.settings import Scope, Settings, declared
from penstock.storage import is_remote

_SETTINGS = {
    "device": "auto|cpu",
    "max_pixels": "N|none",
    "max_bytes": "N|none",
    "max_frames": "N|none",
    "max_memory": "N|none",
    "max_model_memory": "N|none",
    "memory_budget": "N|auto|none",
    "memory_wait_seconds": "N|none",
    "isolate_decoders": "auto|all|none",
}
"""The settings of all models for which there is an option, with the option's metavar."""


_GRANTS = {
    "allow_module": ("allowed_modules", "NAME"),
    "allow_path": ("allowed_paths", "PATH"),
    "allow_model": ("allowed_models", "NAME"),
    "allow_host": ("allowed_hosts", "HOST"),
}
"""The options that each add one item to a setting that is a list, with the setting and the option's metavar."""

_SWITCHES = [item.name for item in declared() if item.metadata["scope"] is Scope.SERVER]
"""The settings whose options are flags, without a value."""


def setting_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for settings to a command, which gets their values as text."""
    grants = {setting: (option, metavar) for option, (setting, metavar) in _GRANTS.items()}
    for item in reversed(list(declared())):  # reversed, as the help shows the option that was added last first
        if item.name in _SWITCHES:
            function = click.option(f"--{item.name.replace('_', '-')}", is_flag=True, help=item.metadata["doc"])(
                function
            )
        elif item.name in grants:
            option, metavar = grants[item.name]
            function = click.option(
                f"--{option.replace('_', '-')}",
                multiple=True,
                metavar=metavar,
                callback=_check_grants,
                help=f"{item.metadata['doc']} May be repeated.",
            )(function)
        elif item.name in _SETTINGS:
            default = "none" if (value := getattr(Settings(), item.name)) is None else value
            function = click.option(
                f"--{item.name.replace('_', '-')}",
                metavar=_SETTINGS[item.name],
                callback=_check_setting,
                help=f"{item.metadata['doc']} [default: {default}]",
            )(function)
    return function


def _check_setting(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    (item,) = (item for item in declared() if item.name == option.name)
    try:
        if text is not None:
            item.metadata["parse"](text)
    except ValueError:
        raise click.BadParameter(f"it must be {item.metadata['wanted']}, not {text!r}") from None
    return text


def _check_grants(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if "," in value or not value.strip():
            raise click.BadParameter(f"it must be one name without commas, not {value!r}")
    is_path = option.name == "allow_path"
    return tuple(os.path.abspath(value) if is_path and not is_remote(value) else value for value in values)


def settings_from_options(options: dict[str, Any]) -> dict[str, str]:
    """Remove the options that are settings from ``options``, and return the settings as text."""
    settings = {name: text for name in _SETTINGS if (text := options.pop(name)) is not None}
    settings |= {setting: ",".join(values) for name, (setting, _) in _GRANTS.items() if (values := options.pop(name))}
    return settings | {name: "true" for name in _SWITCHES if options.pop(name)}

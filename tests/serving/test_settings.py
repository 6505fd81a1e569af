"""Precedence of settings: a model's, the server's, the defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.serving.settings import ConfigurationError, Settings, declared, settings_of, warn_of_unknown


def config(**parameters: str) -> dict[str, Any]:
    return {"parameters": {name: {"string_value": text} for name, text in parameters.items()}}


def test_defaults() -> None:
    assert settings_of({}, {}) == Settings()
    assert Settings().max_pixels == 178_956_970
    assert Settings().max_bytes == 1 << 30
    assert all(item.metadata["doc"] and item.metadata["wanted"] for item in declared())


def test_parameters_are_read_by_their_kinds() -> None:
    settings = settings_of(
        config(
            num_threads="4",
            allowed_modules="a, b.c",
            allowed_paths="/data, s3://more",
            split_along_outer_axis="X:Y",
            max_pixels="none",
            max_frames="30",
            isolate_decoders="all",
            release_after_unload="true",
        ),
        {},
    )
    assert settings == Settings(
        num_threads=4,
        allowed_modules=("a", "b.c"),
        allowed_paths=("/data", "s3://more"),
        split_along_outer_axis=("X", "Y"),
        max_pixels=None,
        max_frames=30,
        isolate_decoders="all",
        release_after_unload=True,
    )


def test_a_models_parameter_overrides_the_servers_and_that_of_dalis_section() -> None:
    server = {"dali": {"max_pixels": "1", "num_threads": "1"}, "penstock": {"max_pixels": "2", "max_frames": 3}}
    environment = {"PENSTOCK_BACKEND_CONFIG": json.dumps(server)}
    assert settings_of({}, environment) == Settings(max_pixels=2, num_threads=1, max_frames=3)
    assert settings_of(config(max_pixels="5"), environment).max_pixels == 5


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("num_threads", "many", "a number from 1"),
        ("num_threads", "0", "a number from 1"),
        ("max_bytes", "-3", "or none"),
        ("isolate_decoders", "some", "auto, all or none"),
        ("release_after_unload", "maybe", "true or false"),
    ],
)
def test_wrong_values_are_refused(name: str, text: str, wanted: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the parameter '{name}' must be .*{wanted}, got '{text}'"):
        settings_of(config(**{name: text}), {})


@pytest.mark.parametrize("text", ["{", "[]", '{"penstock": 3}'])
def test_server_settings_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_BACKEND_CONFIG must be a JSON object"):
        settings_of({}, {"PENSTOCK_BACKEND_CONFIG": text})


def test_unknown_parameters_are_logged_with_the_nearest_setting(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_unknown(
        config(max_pixel="1", Num_Threads="1", colour_of_the_house="red", EXECUTION_ENV_PATH="/env", max_bytes="1"),
        {"PENSTOCK_BACKEND_CONFIG": '{"penstock": {"isolate_decoder": "all", "max_bytes": "3"}}'},
    )
    assert [record.getMessage() for record in caplog.records] == [
        "the server's setting penstock,isolate_decoder has no effect: it is not a setting of Penstock. Did you mean 'isolate_decoders'?",
        "the parameter 'max_pixel' has no effect: it is not a setting of Penstock. Did you mean 'max_pixels'?",
        "the parameter 'Num_Threads' has no effect: it is not a setting of Penstock. Did you mean 'num_threads'?",
        "the parameter 'colour_of_the_house' has no effect: it is not a setting of Penstock.",
    ]


def test_a_model_does_not_set_the_budget_of_all(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_unknown({"parameters": {"memory_budget": {"string_value": "1"}, "max_memory": {"string_value": "1"}}}, {})
    (record,) = caplog.records
    assert "'memory_budget' has no effect: it is the server's" in record.getMessage()

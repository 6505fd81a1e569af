"""The operator reference is generated from the operators' schemas."""

from __future__ import annotations

import importlib
import io
import re
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from commands import commands_page
from docstrings import as_markdown
from drawing import drawn
from operator_pages import navigation, operator_pages
from PIL import Image
from repository import LinkError, page_markdown

from penstock import fn  # noqa: F401  (loads the operators)
from penstock.schema import Schema, all_schemas
from penstock.schema.catalogue import public_operators
from penstock.schema.examples import shown_calls

OPERATORS = [schema for _, schema in public_operators()]
EQUIVALENTS = sorted({equivalent.name for schema in OPERATORS for equivalent in schema.equivalents})


def pages_of(*names: str) -> dict[str, str | bytes]:
    return dict(operator_pages(names))


def test_every_operator_has_a_page() -> None:
    families = navigation()[1:]
    listed = [page for family in families for pages in family.values() for entry in pages for page in entry.values()]
    assert listed == [f"operators/{schema.fn_path}.md" for schema in OPERATORS]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # deprecated operators have pages, too
@pytest.mark.parametrize("schema", OPERATORS, ids=lambda schema: schema.name)
def test_every_page_is_made(schema: Schema) -> None:
    assert f"operators/{schema.fn_path}.md" in pages_of(schema.name)


def test_a_page_tells_what_the_schema_declares() -> None:
    page = pages_of("Rotate")["operators/rotate.md"]
    assert isinstance(page, str)
    for part in (
        "# fn.rotate\n",
        "**CPU** ✓ · **GPU** ✓",
        "| `angle` | float | **required** | either, per frame too |",
    ):
        assert part in page
    assert "`HWC`, `FHWC`, `DHWC`, `FDHWC`" in page
    assert "| `PIL.Image.Image.rotate` |" in page
    assert "ops.Rotate" in page


def test_a_page_tells_how_fast_it_is_beside_its_best_peer() -> None:
    page = pages_of("Flip")["operators/flip.md"]
    assert isinstance(page, str)
    speeds = page.partition("## Speed")[2].partition("\n## ")[0]
    assert "(../benchmarks.md#every-public-operator-on-the-cpu)" in speeds
    head, line, *rows = [line for line in speeds.splitlines() if line.startswith("|")]
    assert {text.count("|") for text in (head, line, *rows)} == {head.count("|")}
    assert any("vertical" in row for row in rows)
    # Operators that only run on GPUs are not measured on the CPU.
    assert "## Speed" not in str(pages_of("Jitter")["operators/jitter.md"])


def test_pictures_show_what_goes_in_and_what_comes_out() -> None:
    pages = pages_of("Rotate")
    before, after = (
        np.asarray(Image.open(io.BytesIO(pages[f"operators/pictures/rotate-1-{number}-0.webp"]))) for number in (0, 1)
    )
    assert before.shape == after.shape == (160, 240, 3)
    # The image is rotated by 30 degrees around its middle: a pixel to the right of the middle moves up.
    y, x = 40 * np.sin(np.pi / 6), 40 * np.cos(np.pi / 6)
    assert np.abs(after[round(80 - y), round(120 + x)].astype(int) - before[80, 160]).max() < 40
    page = pages["operators/rotate.md"]
    assert isinstance(page, str)
    for name in pages:
        assert name.endswith(".md") or f'src="pictures/{Path(name).name}"' in page


def test_numbers_are_shown_where_there_is_no_picture() -> None:
    page = pages_of("transforms__Scale")["operators/transforms.scale.md"]
    assert "output = [[2. , 0. , 0. ], [0. , 0.5, 0. ]]  # float, 2x3" in page


def test_a_function_written_by_hand_is_documented_by_its_docstring() -> None:
    page = pages_of("PythonFunction")["operators/python_function.md"]
    assert "::: penstock.python_function.python_function" in page


@pytest.mark.parametrize(
    ("array", "layout", "shape"),
    [
        (np.zeros((80, 90, 3), np.uint8), "HWC", (80, 90)),
        (np.zeros((3, 80, 90), np.float32), "CHW", (80, 90)),
        (np.zeros((2, 80, 90, 1), np.uint8), "FHWC", (80, 184)),
        (np.zeros((80, 90), np.uint16), "HW", (80, 90)),
        (np.ones((257, 100), np.float32), "ft", (257, 100)),
        (np.zeros(16000, np.float32), "", (100, 300)),
    ],
)
def test_arrays_are_drawn(array: np.ndarray, layout: str, shape: tuple[int, int]) -> None:
    picture = drawn(array, layout)
    assert picture is not None
    assert Image.open(io.BytesIO(picture.content)).size == shape[::-1]


def test_numbers_are_not_drawn() -> None:
    assert drawn(np.zeros((4, 4), np.float32), "") is None
    assert drawn(np.zeros((80, 90, 6), np.uint8), "HWC") is None


def takes_images(schema: Schema) -> bool:
    return bool(schema.inputs) and "HWC" in schema.inputs[0].layouts


@pytest.mark.parametrize("schema", [own for own in OPERATORS if takes_images(own)], ids=lambda schema: schema.name)
def test_what_takes_images_is_shown_on_a_photograph(schema: Schema) -> None:
    for call in shown_calls(schema):
        assert call.inputs[0].layout in ("HWC", "HW")
        assert call.inputs[0].make(0).shape[:2] == (160, 240)


@pytest.mark.parametrize("name", EQUIVALENTS)
def test_equivalents_exist(name: str) -> None:
    """Equivalents in installed libraries exist under their declared names."""
    parts = name.split(".")
    try:
        importlib.import_module(parts[0])
    except (ImportError, RuntimeError):
        # The library is not installed; or it is torchvision, whose compiled part needs a PyTorch for CUDA.
        assert parts[0] in ("kaldi_native_fbank", "librosa", "silero_vad", "tokenizers", "torch", "torchvision")
        return
    for split in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        assert reduce(getattr, parts[split:], module) is not None
        return
    pytest.fail(f"{name} is nowhere")


def test_docstrings_become_markdown() -> None:
    text = "Doubles, as :func:`triple`.\n\n>>> double(\n...     2)  # doctest: +SKIP\n4\n\n===  ===\na    b\n===  ===\n1    2\n===  ===\n\nEnd."
    assert as_markdown(text).split() == [
        "Doubles,",
        "as",
        "`triple`.",
        "```python",
        "double(",
        "2)",
        "```",
        "```text",
        "4",
        "```",
        "```text",
        "===",
        "===",
        "a",
        "b",
        "===",
        "===",
        "1",
        "2",
        "===",
        "===",
        "```",
        "End.",
    ]


def test_the_commands_page_has_every_command() -> None:
    headings = re.findall(r"^## penstock (.*)$", commands_page(), re.MULTILINE)
    assert headings == sorted(headings)
    assert {"export", "inspect", "operators", "serve", "setup", "show"} <= set(headings)


def test_links_to_the_repository_become_links_to_pages() -> None:
    text = "[a](../CONTRIBUTING.md), [`b`](../docker/README.md#one-machine), [c](../Makefile), [d](https://x.org), `[e](f)`"
    assert page_markdown("docs/glossary.md", f"{text}\n```\n[f](g)\n```") == (
        "[a](contributing.md), [`b`](guides/containers.md#one-machine), c (`Makefile`), [d](https://x.org), `[e](f)`"
        "\n```\n[f](g)\n```"
    )


def test_links_into_the_void_are_errors() -> None:
    with pytest.raises(LinkError, match=r"README.md links to nothing.md"):
        page_markdown("docker/README.md", "[here](nothing.md)")


def test_the_schemas_of_aliases_have_no_page() -> None:
    names = {schema.name for schema in OPERATORS}
    assert names < {schema.name for schema in all_schemas()}
    assert "CoinFlip" not in names

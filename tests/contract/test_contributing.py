"""The operator that CONTRIBUTING shows works, and the sweeps find and test it without further registration."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
# Contributors may add operators of these names, so the documentation's operators are renamed here.
RENAMED = {"Invert": "ShownInvert", "fn.invert": "fn.shown_invert"}
PROGRAM = """
import invert
import numpy as np
from penstock import fn, ops, pipeline_def

@pipeline_def(batch_size=2, num_threads=1)
def define():
    image = fn.external_source(lambda: [np.arange(12, dtype=np.uint8).reshape(2, 2, 3)] * 2, layout="HWC")
    frames = fn.external_source(lambda: [np.zeros((2, 2, 2, 3), np.uint8)] * 2, layout="FHWC")
    white = fn.external_source(lambda: [np.int32(250), np.int32(100)])
    return fn.shown_invert(image, white=white), ops.ShownInvert()(image), fn.shown_invert(frames)

@pipeline_def(batch_size=2, num_threads=1)
def define_floats():
    return fn.shown_invert(fn.external_source(lambda: [np.zeros((2, 2, 3), np.float32)] * 2, layout="HWC"))

try:
    define_floats().run()
    raise AssertionError("floats are accepted")
except RuntimeError as error:
    assert "Unsupported input type: float. Supported are: uint8" in str(error), error

computed, default, frames = define().run()
assert computed.at(1).ravel().tolist() == list(range(100, 88, -1))
assert default.at(0)[0, 0, 0] == 255
assert frames.layout() == "FHWC" and frames.at(0).min() == 255
"""


SOLARIZE = '''
import numpy as np

from penstock.data_types import UINT8
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator


@register_operator
class ShownSolarize(Operator):
    """Inverts the values above a threshold."""

    schema = Schema(
        name="ShownSolarize",
        inputs=(Input("input", ("HWC", "CHW"), doc="Images of uint8."),),
        arguments=(Argument("threshold", "float", 128.0, "Values from here on are inverted.", tensor=True),),
        sequences=True,
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError("Images must be uint8")
        return [OutputSpec(batch.dtype, self.input_layout(workspace), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        data = sample.inputs[0]
        sample.outputs[0][...] = np.where(data < sample["threshold"], data, 255 - data)
'''


def shown() -> tuple[str, str]:
    """Return the code of the operator and of the test that CONTRIBUTING shows."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name, other in RENAMED.items():
        text = text.replace(name, other)
    operator, test = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return textwrap.dedent(operator), textwrap.dedent(test)


def test_the_operator_in_ten_minutes(tmp_path: Path) -> None:
    (tmp_path / "invert.py").write_text(shown()[0], encoding="utf-8")
    # A separate process is used, as an operator cannot be unregistered.
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)


def test_its_test(tmp_path: Path) -> None:
    for name, text in zip(("invert.py", "test_invert.py"), shown(), strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    # In the repository, the test would be in a subfolder of `tests/operators`, whose helpers it could import.
    paths = [str(tmp_path), str(ROOT / "tests"), str(ROOT / "tests" / "operators"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "pytest", "-p", "invert", "-p", "conftest", str(tmp_path / "test_invert.py")]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)


def swept(module: str, operator: str, folder: Path) -> set[str]:
    """Run the sweeps for the operator that a module declares; return the names of the tests that passed."""
    command = [sys.executable, "-m", "pytest", "-p", module, "tests/sweeps", "-k", operator, "--junitxml"]
    paths = [str(folder), str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([*command, str(folder / "report.xml")], cwd=ROOT, env=environment, check=True)
    cases = ElementTree.parse(folder / "report.xml").iter("testcase")
    return {case.attrib["name"].partition("[")[0] for case in cases if not len(case)}


@pytest.mark.parametrize(
    ("operator", "text"),
    [("ShownInvert", shown()[0]), ("ShownSolarize", SOLARIZE)],
    ids=["Invert", "Solarize"],
)
def test_a_new_operator_is_swept(operator: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "declared.py").write_text(text, encoding="utf-8")
    # The new operators refuse no samples and have no aliases, so these tests have no cases for them.
    missing = {"test_a_bad_sample_fails_alone", "test_aliases_are_the_operator"}
    assert swept("declared", operator, tmp_path) == sweeps_of("test_promises.py", "test_declarations.py") - missing


def sweeps_of(*files: str) -> set[str]:
    """Return the names of the tests in files of sweeps."""
    texts = [(ROOT / "tests" / "sweeps" / file).read_text(encoding="utf-8") for file in files]
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}

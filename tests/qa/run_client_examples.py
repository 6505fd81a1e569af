"""Runs Triton's client examples and perf_analyzer against Penstock's models.

    python tests/qa/run_client_examples.py CHECKOUT [NAME ...]

CHECKOUT is a checkout of https://github.com/triton-inference-server/client. The examples in ``src/python/examples`` are run, unchanged
except for ports and listed edits, each against a Penstock model with the same name, inputs and outputs as the model for which it was
written. With ``--perf-analyzer PROGRAM``, that program, which the wheel of tritonclient 2.50 contains, measures the same models.
``--table FILE`` replaces the table in a Markdown file such as docs/triton-clients.md. The exit status is 1 if an example that can run here
is not answered.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from penstock.serving.server import LocalServer

_TIMEOUT = 120.0

_IMPORTS = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

"""
_DECORATORS = """
@autoserialize
@pipeline_def(batch_size=8, num_threads=1, output_ndim={ranks})
"""

# -- the models ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """The contents of a model folder that Penstock serves.

    Attributes:
        definition: the code that defines the pipeline; empty for an ensemble.
        config: the lines of `config.pbtxt` besides the name and the backend.
        files: the names and contents of further files next to `config.pbtxt`.
        functions: the code of functions that the pipeline calls.
        ranks: the number of dimensions of each output, if running the pipeline with generated data does not reveal it.
    """

    definition: str
    config: str = "max_batch_size: 8"
    files: tuple[tuple[str, str], ...] = ()
    functions: str = ""
    ranks: int | None = None


def _sums(kind: str) -> Model:
    """Return a model that computes the sum and the difference of two vectors."""
    definition = f"""
    def simple():
        a = fn.external_source(name="INPUT0", dtype=types.{kind}, ndim=1)
        b = fn.external_source(name="INPUT1", dtype=types.{kind}, ndim=1)
        total, difference = fn.cast(a + b, dtype=types.{kind}), fn.cast(a - b, dtype=types.{kind})
        return fn.copy(total, name="OUTPUT0"), fn.copy(difference, name="OUTPUT1")
    """
    tensors = "\n".join(
        f'{direction} [ {{ name: "{direction.upper()}0" data_type: TYPE_{kind} dims: [ 16 ] }}, '
        f'{{ name: "{direction.upper()}1" data_type: TYPE_{kind} dims: [ 16 ] }} ]'
        for direction in ("input", "output")
    )
    return Model(definition, f"max_batch_size: 8\n{tensors}")


_SEQUENCE = """
max_batch_size: 8
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }
  ]
}
"""

_CLASSES = ("red", "green", "blue")
_CLASSIFIED = """
max_batch_size: 8
input [ { name: "input" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 299, 299, 3 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]
"""
_LABELS = (("labels.txt", "\n".join(_CLASSES) + "\n"),)

MODELS = {
    "simple": _sums("INT32"),
    "simple_int8": _sums("INT8"),
    "simple_string": Model(
        """
        def simple_string():
            a, b = (fn.external_source(name=name, dtype=types.UINT8, ndim=2) for name in ("INPUT0", "INPUT1"))
            total, difference = fn.python_function(a, b, function=sum_and_difference, num_outputs=2)
            return fn.copy(total, name="OUTPUT0"), fn.copy(difference, name="OUTPUT1")
        """,
        "max_batch_size: 8\n"
        'input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_STRING dims: [ 16 ] } ]\n'
        'output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_STRING dims: [ 16 ] } ]',
        functions="""
        def numbers(strings):
            return strings.view(f"S{strings.shape[-1]}")[..., 0].astype(int)


        def strings(numbers):
            return numbers.astype("S20")[..., None].view("u1")


        def sum_and_difference(a, b):
            return strings(numbers(a) + numbers(b)), strings(numbers(a) - numbers(b))

        """,
        ranks=2,
    ),
    "simple_identity": Model(
        """
        def simple_identity():
            return fn.copy(fn.external_source(name="INPUT0", dtype=types.UINT8, ndim=2), name="OUTPUT0")
        """,
        "max_batch_size: 8\n"
        'input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]\n'
        'output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]',
    ),
    "simple_sequence": Model(
        """
        def simple_sequence():
            value = fn.external_source(name="INPUT", dtype=types.INT32, ndim=1)
            start = fn.external_source(name="START", dtype=types.INT32, ndim=1)
            return fn.cast(value + start, dtype=types.INT32, name="OUTPUT")
        """,
        _SEQUENCE,
    ),
    "custom_identity_int32": Model(
        """
        def custom_identity_int32():
            return fn.copy(fn.external_source(name="INPUT0", dtype=types.INT32, ndim=1), name="OUTPUT0")
        """
    ),
    # This model has no batches in Triton's sense: the channels of an image are its samples.
    "densenet_onnx": Model(
        """
        def densenet_onnx():
            channel = fn.external_source(name="data_0", dtype=types.FLOAT, ndim=2)
            return fn.reductions.mean(channel, axes=[0, 1], name="fc6_1")
        """,
        "max_batch_size: 0",
    ),
    "inception_graphdef": Model(
        """
        def inception_graphdef():
            pixels = fn.external_source(name="input", dtype=types.FLOAT, ndim=3, layout="HWC")
            return fn.reductions.mean(pixels, axes=[0, 1], name="scores")
        """,
        _CLASSIFIED,
        _LABELS,
    ),
    "decoded_inception": Model(
        """
        def decoded_inception():
            images = fn.decoders.image(fn.external_source(name="encoded"), output_type=types.RGB)
            return fn.cast(fn.resize(images, size=[299, 299]), dtype=types.FLOAT, name="pixels")
        """,
        'max_batch_size: 8\ninput [ { name: "encoded" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
        'output [ { name: "pixels" data_type: TYPE_FP32 dims: [ 299, 299, 3 ] } ]',
    ),
    "preprocess_inception_ensemble": Model(
        "",
        """
platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]
ensemble_scheduling {
  step [
    { model_name: "decoded_inception" model_version: -1
      input_map { key: "encoded" value: "INPUT" } output_map { key: "pixels" value: "pixels" } },
    { model_name: "inception_graphdef" model_version: -1
      input_map { key: "input" value: "pixels" } output_map { key: "scores" value: "OUTPUT" } }
  ]
}
""",
        _LABELS,
    ),
}
"""The models by the names that the examples use. Models for images report which of red, green and blue is the strongest."""


def write_models(folder: Path) -> None:
    """Write the model folders into a folder."""
    for name, model in MODELS.items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        backend = 'backend: "penstock"\n' if model.definition else ""
        (folder / name / "config.pbtxt").write_text(f'name: "{name}"\n{backend}{model.config}\n')
        if model.definition:
            parts = [
                _IMPORTS,
                textwrap.dedent(model.functions),
                _DECORATORS.format(ranks=model.ranks),
                textwrap.dedent(model.definition).lstrip(),
            ]
            (version / "pipeline.py").write_text("".join(parts).lstrip())
        for file, text in model.files:
            (folder / name / file).write_text(text)


# -- the examples ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """One run of a client example.

    Attributes:
        script: the example's path in the folder of examples, without the suffix.
        model: the Penstock models to which the example sends requests.
        arguments: the command-line arguments besides the server's address; ``IMAGE`` is replaced by the path of a red image.
        expects: a text that the example must print; if empty, only the exit status counts.
        missing: the reason why the example cannot run here; empty if it can.
        change: a description of the edits; empty if there are none.
        edits: texts in the script, and their replacements.
    """

    script: str
    model: str
    arguments: tuple[str, ...] = ()
    expects: str = ""
    missing: str = ""
    change: str = ""
    edits: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The example's name in the table."""
        return " ".join((self.script, *self.arguments))


_NO_GPU = "shares GPU memory; this machine has no GPU"
_CONTROLLED = (
    "expects as many models as are served here; the configuration with which it loads a model names our backend"
)
_BACKEND_NAMED = ("""config = '{"max""", """config = '{"backend":"penstock","max""")
_ATTRDICT = "over HTTP, imports attrdict, which Python from 3.10 on cannot"
_IMAGE = ("-m", "inception_graphdef", "-s", "INCEPTION", "IMAGE")

EXAMPLES = (
    *(
        Example(script, "simple")
        for script in (
            "simple_http_infer_client",
            "simple_http_async_infer_client",
            "simple_http_aio_infer_client",
            "simple_http_health_metadata",
            "simple_http_shm_client",
            "simple_grpc_infer_client",
            "simple_grpc_async_infer_client",
            "simple_grpc_aio_infer_client",
            "simple_grpc_custom_args_client",
            "simple_grpc_health_metadata",
            "simple_grpc_keepalive_client",
            "simple_grpc_shm_client",
            "grpc_explicit_int_content_client",
        )
    ),
    Example(
        "simple_http_model_control",
        "simple",
        change=_CONTROLLED,
        edits=(("_index()) != 7", f"_index()) != {len(MODELS)}"), _BACKEND_NAMED),
    ),
    Example(
        "simple_grpc_model_control",
        "",
        missing="checks that a file name of 256 characters is refused, which crashes Triton 2.51; fixed in later versions",
    ),
    Example("simple_http_infer_client", "simple", ("--request-compression-algorithm", "gzip")),
    Example("reuse_infer_objects_client", "simple"),
    Example("reuse_infer_objects_client", "simple", ("-i", "grpc")),
    Example("grpc_explicit_int8_content_client", "simple_int8"),
    Example("memory_growth_test", "custom_identity_int32", ("-r", "20")),
    Example("memory_growth_test", "custom_identity_int32", ("-r", "20", "-i", "grpc")),
    Example("grpc_client", "densenet_onnx"),
    Example("image_client", "inception_graphdef", _IMAGE, missing=_ATTRDICT),
    Example("image_client", "inception_graphdef", ("-i", "grpc", "-a", *_IMAGE), "red"),
    Example("image_client", "inception_graphdef", ("-i", "grpc", "-c", "3", "-b", "2", *_IMAGE), "red"),
    Example("image_client", "inception_graphdef", ("-i", "grpc", "--streaming", *_IMAGE), "red"),
    Example("grpc_image_client", "inception_graphdef", _IMAGE, "red"),
    Example("ensemble_image_client", "preprocess_inception_ensemble", ("IMAGE",), "red"),
    Example("ensemble_image_client", "preprocess_inception_ensemble", ("-i", "grpc", "IMAGE"), "red"),
    Example("simple_http_string_infer_client", "simple_string, simple_identity"),
    Example("simple_grpc_string_infer_client", "simple_string, simple_identity"),
    Example("simple_http_shm_string_client", "simple_string"),
    Example("simple_grpc_shm_string_client", "simple_string"),
    Example("grpc_explicit_byte_content_client", "simple_string"),
    Example("simple_http_sequence_sync_infer_client", "simple_sequence"),
    Example("simple_grpc_sequence_sync_infer_client", "simple_sequence"),
    Example("simple_grpc_sequence_stream_infer_client", "simple_sequence"),
    Example("simple_grpc_aio_sequence_stream_infer_client", "simple_sequence"),
    Example("simple_grpc_custom_repeat", "", missing="a pipeline answers a request once, unless it reads a video"),
    Example("simple_http_cudashm_client", "", missing=_NO_GPU),
    Example("simple_grpc_cudashm_client", "", missing=_NO_GPU),
)

# perf_analyzer repeats measurements until they are stable. Speed is not judged here, so variations of 999 % count as stable.
_PERF = ("--measurement-mode", "count_windows", "--measurement-request-count", "200", "-s", "999", "-r", "3")
MEASUREMENTS = (
    ("simple", ("-i", "http")),
    ("simple", ("-i", "grpc")),
    ("simple", ("-i", "grpc", "--streaming")),
    ("simple", ("-i", "grpc", "--async", "--concurrency-range", "4")),
    ("simple", ("-i", "http", "--shared-memory", "system")),
    ("inception_graphdef", ("-i", "http", "-b", "2")),
    ("simple_sequence", ("-i", "grpc", "--streaming")),
)
"""The measurements of perf_analyzer: the name of a model, and the command-line options."""


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: the name of the example.
        model: the model to which requests were sent.
        result: ``answered``, ``not answered`` or ``cannot run``.
        note: a description of the edits, or the reason for the result.
    """

    name: str
    model: str
    result: str
    note: str = ""

    def __str__(self) -> str:
        return f"| `{self.name}` | {f'`{self.model}`' if self.model else ''} | {self.result} | {self.note.replace('|', '/')} |"


class Runner:
    """Runs the examples against one server.

    Args:
        checkout: the checkout of Triton's clients.
        server: a server that serves `MODELS`.
        folder: a folder for copies of the examples, and for their files.
    """

    def __init__(self, checkout: Path, server: LocalServer, folder: Path) -> None:
        self._examples = checkout / "src" / "python" / "examples"
        self._server = server
        self._folder = folder
        self._image = folder / "red.png"
        buffer = io.BytesIO()
        Image.fromarray(np.full((40, 60, 3), (200, 30, 60), np.uint8)).save(buffer, "PNG")
        self._image.write_bytes(buffer.getvalue())

    def run(self, example: Example) -> Row:
        """Run an example, and return its row of the table."""
        if example.missing:
            return Row(example.name, example.model, "cannot run", example.missing)
        # In every example, the ports are replaced by this server's, as not all examples have an option for them.
        text = (self._examples / f"{example.script}.py").read_text()
        script = self._folder / f"{example.script}.py"
        ports = (("localhost:8000", self._server.http_url), ("localhost:8001", self._server.grpc_url))
        for given, replacement in (*example.edits, *ports):
            text = text.replace(given, replacement)
        script.write_text(text)
        arguments = [str(self._image) if each == "IMAGE" else each for each in example.arguments]
        if "grpc" in arguments and '"--url"' in text:
            arguments += ["-u", self._server.grpc_url]
        command = [sys.executable, str(script), *arguments]
        return self._call(command, example.name, example.model, example.expects, example.change)

    def measure(self, program: Path, model: str, arguments: Sequence[str]) -> Row:
        """Run perf_analyzer on a model, and return the row of the table."""
        url = self._server.http_url if "http" in arguments else self._server.grpc_url
        name = " ".join(("perf_analyzer", *arguments))
        return self._call([str(program), "-m", model, "-u", url, *arguments, *_PERF], name, model, "Throughput: ")

    def _call(self, command: Sequence[str], name: str, model: str, expects: str, change: str = "") -> Row:
        try:
            done = subprocess.run(
                command, cwd=self._folder, capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return Row(name, model, "not answered", f"no end after {_TIMEOUT:.0f} s")
        output = done.stdout + done.stderr
        if done.returncode == 0 and expects in output and "Traceback" not in output:
            return Row(name, model, "answered", change)
        return Row(name, model, "not answered", _reason(output))


def _reason(output: str) -> str:
    """Return the line of an output that describes the error, without temporary paths, which differ in each run."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|fail|exception|expect", line, re.IGNORECASE)]
    return re.sub(r"/tmp/\S+/", "", (telling or lines or ["no output"])[-1])[:200]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown."""
    head = ["| example | our model | result | what was changed, or why not |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *map(str, rows)])


def main() -> None:
    """Run the examples that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of triton-inference-server/client")
    parser.add_argument("names", nargs="*", help="parts of names; by default all")
    parser.add_argument("--perf-analyzer", type=Path, help="the program, to measure with, too")
    parser.add_argument("--table", type=Path, help="file with a table, which is replaced")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository, scratch = Path(folder, "models"), Path(folder, "scratch")
        scratch.mkdir()
        write_models(repository)
        flags = ["--model-control-mode=explicit", "--load-model=*"]
        with LocalServer(repository, flags=flags, allow_failures=True) as server:
            for model in server.models():
                print(f"{model.name}: {model.state} {model.reason}", flush=True)
            runner, rows = Runner(given.checkout.resolve(), server, scratch), []
            wanted = [each for each in EXAMPLES if _asked(each.name, given.names)]
            # Examples that unload a model run last.
            for example in sorted(wanted, key=lambda each: "model_control" in each.script):
                server.control.load("simple")
                rows.append(runner.run(example))
                print(rows[-1], flush=True)
            server.control.load("simple")
            for model, arguments in MEASUREMENTS if given.perf_analyzer else ():
                if _asked("perf_analyzer", given.names):
                    rows.append(runner.measure(given.perf_analyzer.resolve(), model, arguments))
                    print(rows[-1], flush=True)
    if given.table:
        _replace_table(given.table, table(rows))
    sys.exit(any(row.result == "not answered" for row in rows))


def _asked(name: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in name for part in parts)


def _replace_table(path: Path, text: str) -> None:
    """Replace the table in a Markdown file."""
    lines = path.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| example "))
    last = next((number for number in range(first, len(lines)) if not lines[number].startswith("|")), len(lines))
    path.write_text("\n".join([*lines[:first], text, *lines[last:]]) + os.linesep)


if __name__ == "__main__":
    main()

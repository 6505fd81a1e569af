"""A Triton Python model that reads a page: PaddleOCR's steps in OpenCV, and calls of both networks' models from Python (BLS)."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import triton_python_backend_utils as pb_utils
from paddle_ocr import PageReader


class TritonPythonModel:
    """Answers requests one after the other."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the list of characters, which is in the folder of this file."""
        cv2.setNumThreads(1)
        folder = Path(args["model_repository"]) / args["model_version"]
        characters = (folder / "characters.txt").read_text(encoding="utf-8").split("\n")
        self.reader = PageReader(
            lambda image: _call("detector", "image", "likely", image)[0],
            lambda lines: _call("recognizer", "line", "characters", lines),
            characters,
        )

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response for each request: the lines of its page."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        content = pb_utils.get_input_tensor_by_name(request, "encoded_image").as_numpy().reshape(-1)[0]
        lines = [line.encode() for line in self.reader.read(content)]
        texts = np.array(lines, np.object_).reshape(-1, 1)
        return pb_utils.InferenceResponse([pb_utils.Tensor("text", texts)])


def _call(model: str, name: str, output: str, values: np.ndarray) -> Any:
    request = pb_utils.InferenceRequest(
        model_name=model, requested_output_names=[output], inputs=[pb_utils.Tensor(name, values)]
    )
    response = request.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, output).as_numpy()

"""Runs the code on a documentation page in the working folder, and compares its output with the output on the page.

    python tests/docs/run_page.py docs/tutorials/first-pipeline.md [--write]

- A block of `python` is run; all blocks on a page share variables. A block of `text` right after it contains its output.
- A block with a title is written to a file of that name.
- In a block of `console`, lines that begin with `$` are run in a shell; the other lines are the output. A command that ends with `&` is a
  server, which runs until the page ends.
- After the comment `<!-- needs torch -->`, a block is left out if that module is not installed.
- In output on the page, `...` matches anything. The ports 8000 to 8002 are replaced by free ports in each run.

With ``--write``, the output is written into the page instead.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

from free_ports import free_ports

_FENCE = re.compile(
    r"(?:<!-- needs (?P<needs>\w+) -->\s*\n)?"
    r'^(?P<indent> *)```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^(?P=indent)```$',
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_PORTS = ("8000", "8001", "8002")
_PATIENCE = 240.0  # seconds until a server must be ready; it may have to compile kernels
_CHECKER = doctest.OutputChecker()


class WrongOutputError(AssertionError):
    """The output on the page differs from what the code prints."""


@dataclass
class Block:
    """A block of a page.

    Attributes:
        language: the language after the opening fence, such as `python`.
        title: the file name to which the block is written; empty for other blocks.
        body: the text without its indentation.
        start, end: the offsets of the body in the page.
        follows: whether the block comes directly after another block, with only blank lines between.
    """

    language: str
    title: str
    body: str
    start: int
    end: int
    follows: bool
    indent: str


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order, except those whose required module is not installed."""
    last, left_out = 0, False
    for fence in _FENCE.finditer(page):
        follows = not page[last : fence.start()].strip()
        last = fence.end()
        needs = fence["needs"]
        left_out = importlib.util.find_spec(needs) is None if needs else left_out and follows
        if not left_out:
            indent = fence["indent"]
            body = re.sub(f"^{indent}", "", fence["body"], flags=re.MULTILINE)
            yield Block(
                fence["language"], fence["title"] or "", body, fence.start("body"), fence.end("body"), follows, indent
            )


class PageRun:
    """Runs the blocks of one page."""

    def __init__(self, name: str) -> None:
        self._script = Path(name.replace("-", "_") + ".py")
        self._lines = 0
        self._names: dict[str, object] = {"__name__": "__main__"}
        self._ports = dict(zip(_PORTS, map(str, free_ports(len(_PORTS)))))
        self._background: list[subprocess.Popen[bytes]] = []
        self._script.write_text("", encoding="utf-8")

    def python(self, body: str) -> str:
        """Run a block of Python, and return its output.

        The code is also written to a file, as conditionals and error messages read its source there.
        """
        with self._script.open("a", encoding="utf-8") as file:
            file.write(self._local(body))
        code = compile("\n" * self._lines + self._local(body), str(self._script), "exec", dont_inherit=True)
        self._lines += body.count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self._names)
        return self._public(printed.getvalue())

    def shell(self, command: str) -> str:
        """Run a shell command and return its output; a command that ends with `&` is left running as a server."""
        if command.endswith("&"):
            process = subprocess.Popen(["bash", "-c", self._local(command[:-1])], start_new_session=True)
            self._background.append(process)
            self._await_server(process)
            return ""
        ended = subprocess.run(["bash", "-c", self._local(command)], capture_output=True, text=True)
        if ended.returncode:
            raise WrongOutputError(f"$ {command}\nended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return self._public(ended.stdout)

    def _await_server(self, process: subprocess.Popen[bytes]) -> None:
        url = f"http://localhost:{self._ports[_PORTS[0]]}/v2/health/ready"
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=_PATIENCE):
                return
            time.sleep(0.1)
        raise WrongOutputError(f"No server answers at {url}")

    def close(self) -> None:
        """Stop the servers that the page started."""
        for process in self._background:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(60)

    def _local(self, text: str) -> str:
        for port, own in self._ports.items():
            text = text.replace(port, own)
        return text

    def _public(self, text: str) -> str:
        for port, own in self._ports.items():
            text = text.replace(own, port)
        return text.replace(os.getcwd(), "/home/you/project")


def run_page(name: str, page: str, write: bool = False) -> str:
    """Run a page, and return its text; with ``write``, output on the page is replaced by the actual output.

    Raises:
        WrongOutputError: without ``write``, if the output on the page differs.
    """
    run = PageRun(name)
    printed, source, edits = "", "", []
    try:
        for block in blocks_of(page):
            if block.title:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.body, encoding="utf-8")
                continue
            if block.language == "python":
                _nothing_left(printed, source)
                printed, source = run.python(block.body), block.body
            elif block.language == "text" and block.follows and source:
                edits.append((block, _checked(source, block.body, printed, write)))
                printed = source = ""
            elif block.language == "console":
                edits.append((block, _COMMAND.sub(lambda match: _command(run, match, write), block.body)))
        _nothing_left(printed, source)
    finally:
        run.close()
    for block, text in reversed(edits):
        indented = re.sub("^(?=.)", block.indent, text, flags=re.MULTILINE)
        page = page[: block.start] + indented + page[block.end :]
    return page


def _command(run: PageRun, match: re.Match[str], write: bool) -> str:
    command, shown = match[1], match[2]
    printed = run.shell(command.replace("\\\n", " "))
    return f"$ {command}\n{_checked(command, shown, printed, write) if shown or write else ''}"


def _nothing_left(printed: str, source: str) -> None:
    if printed:
        raise WrongOutputError(f"This prints something that the page does not show:\n\n{source}\n{printed}")


def _checked(source: str, shown: str, printed: str, write: bool) -> str:
    # Trailing blanks are removed, as readers cannot see them on a page.
    tidy = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    if _CHECKER.check_output(shown, tidy, doctest.ELLIPSIS):
        return shown
    if write:
        return tidy
    raise WrongOutputError(f"{source}\nThe page shows\n\n{shown}\nand this is printed\n\n{tidy}")


def main() -> None:
    """Run the page that the command line names."""
    path = Path(sys.argv[1]).resolve()
    # If a script starts this process in the background, it ignores Ctrl-C, and so would the servers that it has to stop with Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Shell commands on the page use this Python environment.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sys.path.insert(0, os.getcwd())
    page = path.read_text(encoding="utf-8")
    try:
        page = run_page(path.stem, page, write="--write" in sys.argv)
    except Exception:
        traceback.print_exc()
        sys.exit(f"{path} does not hold")
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

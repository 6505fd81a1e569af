"""Checks the images and manifests as far as possible without Docker."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from penstock.cli.setup import command as setup
from penstock.serving.environment import describe
from penstock.serving.model_hosts import DEFAULT_VARIABLES
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
from dockerfile import DOCKERFILE, ROOT, build_arguments, instructions, run_commands
from free_ports import free_ports

COMPOSE = ROOT / "docker" / "compose.yaml"
KUBERNETES = ROOT / "docker" / "kubernetes"


def copied() -> list[str]:
    copies = [text.split() for name, text in instructions() if name == "COPY"]
    return sorted({source for words in copies if not words[0].startswith("--from=") for source in words[:-1]})


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def exposed_ports() -> set[int]:
    return {int(port) for name, text in instructions() if name == "EXPOSE" for port in text.split()}


@pytest.mark.parametrize("source", copied())
def test_copied_path_exists(source: str) -> None:
    assert (ROOT / source).exists()


@pytest.mark.parametrize("source", copied())
def test_copied_path_reaches_the_build(source: str) -> None:
    kept = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines()
    assert f"!{source}" in kept


def test_extras_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    section = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    known = set(re.findall(r"^([a-z0-9]+) = \[", section, re.MULTILINE))
    compose = yaml.safe_load(COMPOSE.read_text())
    used = [build_arguments()["EXTRAS"], compose["services"]["triton-cpu"]["build"]["args"]["EXTRAS"]]
    assert {extra for text in used for extra in text.split(",")} <= known


def test_network_reaches_the_front() -> None:
    (command,) = (text for name, text in instructions() if name == "CMD")
    assert "--listen" in command
    compose = yaml.safe_load(COMPOSE.read_text())
    for extras in (build_arguments()["EXTRAS"], compose["services"]["triton-cpu"]["build"]["args"]["EXTRAS"]):
        assert "front" in extras.split(",")


def test_commands_install_what_was_built() -> None:
    tools, build, install, setup = run_commands()
    assert shlex.split(tools)[:2] == ["pip", "install"]
    # The kernels are compiled before the wheel is packed, so the wheel contains them.
    cuda, levels, wheel = build.split(" && ")[1:]
    assert "penstock.kernels.building --cuda" in cuda
    assert "penstock.kernels.building --levels" in levels
    assert wheel.startswith("pip wheel --no-deps --no-build-isolation ")
    assert shlex.split(install)[:2] == ["pip", "install"]
    assert f"dist/penstock_triton-*.whl)[{build_arguments()['EXTRAS']}]" in install
    assert setup.startswith("penstock setup && ")
    assert {text.split()[1] for name, text in instructions() if name == "COPY" and "--from=wheel" in text} == {
        "/opt/penstock/dist"
    }
    assert {text for name, text in instructions() if name == "WORKDIR"} == {"/opt/penstock"}


def test_memory_is_set_up_as_penstock_serve_does() -> None:
    (given,) = (text for name, text in instructions() if name == "ENV" and text.startswith("MALLOC_"))
    assert dict(word.split("=") for word in given.split()) == DEFAULT_VARIABLES["native"]


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_an_installed_triton_hosts_models_by_itself_after_setup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Triton is copied from its wheel to the path at which NVIDIA's images have it, with the libraries to which it has relative paths.
    triton = describe(sys.executable).triton
    assert triton is not None
    packages = triton.parents[3]
    for part in ("pytriton/tritonserver", "nvidia_pytriton.libs"):
        shutil.copytree(packages / part, tmp_path / "opt" / part, copy_function=os.link)
    root = tmp_path / "opt" / "pytriton" / "tritonserver"
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(root / "bin"), str(Path(sys.executable).parent)]), prepend=os.pathsep
    )
    monkeypatch.delenv("PENSTOCK_SERVE_ENV", raising=False)
    monkeypatch.setattr("penstock.serving.environment._warm", lambda environment, report: None)
    told = CliRunner().invoke(setup, [])
    assert told.exit_code == 0, told.output
    assert f"the backend is in '{root / 'backends'}'" in told.output
    laid_out = {path: path.stat().st_mtime_ns for path in (root / "backends").rglob("*") if path.is_file()}
    assert {path.parent.name for path in laid_out} >= {"penstock", "penstock_stub", "python"}

    repository = tmp_path / "models"
    shutil.copytree(ROOT / "model_repository" / "digits_preprocess", repository / "digits_preprocess")
    with LocalServer(repository, model_host="native") as server:
        assert [model.name for model in server.models() if model.ready] == ["digits_preprocess"]
        assert server.stubs() == []
    assert {path: path.stat().st_mtime_ns for path in laid_out} == laid_out

    # The command starts Triton without `penstock serve`, as NVIDIA's image does.
    listening = [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), free_ports(3))]
    command = [
        "tritonserver",
        f"--model-repository={repository}",
        f"--backend-directory={root / 'backends'}",
        *listening,
    ]
    libraries = str(describe(sys.executable).libraries)
    with subprocess.Popen(
        command, env=os.environ | {"LD_LIBRARY_PATH": libraries}, stderr=subprocess.PIPE, text=True
    ) as alone:
        assert alone.stderr is not None
        lines = []
        for line in alone.stderr:
            lines.append(line)
            if "Started Metrics Service" in line or "Error:" in line:
                break
        alone.terminate()
        alone.stderr.read()
    assert any("successfully loaded 'digits_preprocess'" in line for line in lines), lines


def test_triton_is_one_that_knows_numpy_2() -> None:
    year, month = map(int, build_arguments()["TRITON_VERSION"].split("."))
    assert (year, month) >= (24, 11)


def test_command_is_one_that_penstock_understands() -> None:
    from click.testing import CliRunner

    from penstock.cli.serve import command

    (text,) = (text for name, text in instructions() if name == "CMD")
    program, verb, *arguments = yaml.safe_load(text)
    assert (program, verb) == ("penstock", "serve")
    names = {name for parameter in command.params for name in parameter.opts}
    ours = [argument for argument in arguments if argument.startswith("--") and "=" not in argument]
    assert set(ours) <= names
    assert CliRunner().invoke(command, [*arguments, "--help"]).exit_code == 0


def test_compose_refers_to_what_exists() -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    services = compose["services"]
    assert {profile for service in services.values() for profile in service["profiles"]} == {"cpu", "gpu"}
    for service in services.values():
        assert {int(port.split(":")[1]) for port in service["ports"]} == exposed_ports()
        for volume in service["volumes"]:
            assert (COMPOSE.parent / volume.split(":")[0]).is_dir()
        context = COMPOSE.parent / service["build"]["context"]
        assert (context / service["build"]["dockerfile"]).samefile(DOCKERFILE)


@pytest.mark.parametrize("folder", ["base", "gpu"])
def test_kustomization_lists_what_exists(folder: str) -> None:
    kustomization = yaml.safe_load((KUBERNETES / folder / "kustomization.yaml").read_text())
    for resource in kustomization["resources"]:
        assert (KUBERNETES / folder / resource).exists()


def test_kubernetes_objects_fit_together() -> None:
    objects = {item["kind"]: item for item in documents(KUBERNETES / "base")}
    deployment, service = objects["Deployment"], objects["Service"]
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert set(ports.values()) == exposed_ports()
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    assert int(pod["metadata"]["annotations"]["prometheus.io/port"]) == ports["metrics"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    claim = volumes["models"]["persistentVolumeClaim"]["claimName"]
    assert claim == objects["PersistentVolumeClaim"]["metadata"]["name"]
    assert objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


def test_gpu_patch_fits_the_deployment() -> None:
    (patch,) = yaml.safe_load((KUBERNETES / "gpu" / "kustomization.yaml").read_text())["patches"]
    (deployment,) = (item for item in documents(KUBERNETES / "base") if item["kind"] == patch["target"]["kind"])
    for change in yaml.safe_load(patch["patch"]):
        place: Any = deployment
        *model_host, last = change["path"].strip("/").split("/")
        for step in model_host:
            place = place[int(step)] if step.isdigit() else place[step]
        assert (last in place) == (change["op"] == "replace")

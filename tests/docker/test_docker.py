"""What can be known of the images and manifests without Docker."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from dockerfile import DOCKERFILE, ROOT, build_arguments, instructions, pip_command

COMPOSE = ROOT / "docker" / "compose.yaml"
KUBERNETES = ROOT / "docker" / "kubernetes"


def copied() -> list[str]:
    return [source for name, text in instructions() if name == "COPY" for source in text.split()[:-1]]


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


def test_backend_is_put_where_triton_looks() -> None:
    (command,) = (text for name, text in instructions() if name == "RUN" and "/backends/" in text)
    *_, source, target = shlex.split(command)
    assert (ROOT / source).is_file()
    assert target == "/opt/tritonserver/backends/penstock/model.py"


def test_extras_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    section = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    known = set(re.findall(r"^([a-z0-9]+) = \[", section, re.MULTILINE))
    compose = yaml.safe_load(COMPOSE.read_text())
    used = [build_arguments()["EXTRAS"], compose["services"]["triton-cpu"]["build"]["args"]["EXTRAS"]]
    assert {extra for text in used for extra in text.split(",")} <= known


def test_pip_command_is_one_that_pip_understands() -> None:
    program, verb, *arguments = shlex.split(pip_command())
    assert (program, verb) == ("pip", "install")
    assert [argument for argument in arguments if argument.startswith(".[")] == [f".[{build_arguments()['EXTRAS']}]"]
    assert "${" not in pip_command()


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
        *way, last = change["path"].strip("/").split("/")
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        assert (last in place) == (change["op"] == "replace")

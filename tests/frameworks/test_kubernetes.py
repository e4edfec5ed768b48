"""Training jobs for Kubernetes; the page of ephemeral-path holds the plain cases."""

from __future__ import annotations

import pytest

from ckptlint.frameworks.kubernetes import Kubernetes
from ckptlint.source.file import SourceFile

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: pytorch
              args: [torchrun, train.py, --output_dir, /work/run]
"""
MOUNT = "              volumeMounts: [{name: v, mountPath: /work}]\n"
EMPTY = "          volumes: [{name: v, emptyDir: {}}]\n"


def found(text: str) -> list[str]:
    """Why each path dies with its container."""
    runs = Kubernetes().read(SourceFile("job.yaml", text.encode()))
    return [f"{run.where.line}: {write.directory.dies}" for run in runs for write in run.writes]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (JOB, "10: no volume is mounted there"),
        (JOB.replace("[torchrun, train.py, --output_dir, /work/run]", '["--save-dir=/work/run"]'), "10: no volume"),
        (JOB.replace("[torchrun, train.py, --output_dir, /work/run]", '[bash, -c, "a --ckpt_dir /work/a"]'), "10: no volume"),
        (JOB + MOUNT.replace("/work", "/workspace"), "10: no volume is mounted there"),
        (JOB + MOUNT + EMPTY, "10: the volume `v` at `/work` is an emptyDir"),
        (JOB.replace("kubeflow.org/v1", "batch/v1").replace("PyTorchJob", "Job"), "10: no volume is mounted there"),
        ("apiVersion: v1\nkind: ConfigMap\n---\n" + JOB, "13: no volume is mounted there"),
    ],
)
def test_a_path_that_nothing_lasting_covers_dies_with_the_container(text: str, why: str) -> None:
    (only,) = found(text)
    assert only.startswith(why)


@pytest.mark.parametrize(
    "text",
    [
        JOB + MOUNT,
        JOB + MOUNT + EMPTY.replace("emptyDir: {}", "nfs: {server: s, path: /x}"),
        JOB + MOUNT.replace("}]", "}, {name: c, mountPath: /work/run}]") + EMPTY.replace("}}]", "}}, {name: c, hostPath: {}}]"),
        JOB + MOUNT + "            - {name: uploader, volumeMounts: [{name: v, mountPath: /up}]}\n" + EMPTY,
        JOB + "            - {name: other, volumeMounts: [{name: c, mountPath: /work}]}\n",
        JOB + "              volumeMounts: *mounts\n".replace("*mounts", "{{ .Values.mounts }}"),
        JOB + MOUNT.replace("/work", "$(ROOT)"),
        JOB.replace("/work/run", "s3://bucket/run"),
        JOB.replace("/work/run", "runs/a"),
        JOB.replace("/work/run", "/work/$(NAME)"),
        JOB.replace("--output_dir", "--data_dir"),
        JOB.replace(", /work/run", ""),
        JOB.replace("PyTorchJob", "Deployment"),
        JOB.replace("PyTorchJob", "Job").replace("torchrun, train.py", "python, convert.py"),
        JOB.replace("apiVersion: kubeflow.org/v1\n", ""),
        "apiVersion: v1\nkind: Job\nspec: {containers: --}\n",
        "",
    ],
)
def test_what_outlives_the_container_or_is_not_known_is_silent(text: str) -> None:
    assert found(text) == []


def test_a_chart_that_is_no_yaml_yet_is_left_alone() -> None:
    assert found(JOB + "{{- if .Values.pvc }}\n" + MOUNT + "{{- end }}\n") == []

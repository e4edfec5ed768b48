"""A real training that is killed thirty times under ``ckptlint launch --retries`` ends where one does that was never killed.

Takes most of a minute, so it runs only where drills are asked for: ``pytest -m drill``.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.drill

pytest.importorskip("torch")
pytest.importorskip("transformers")

SCRIPT = Path(__file__).with_name("train_tiny.py")
KILLS, STEPS, EVERY = 30, 900, 3
OPTIONS = (
    f"--save_strategy steps --save_steps {EVERY} --save_total_limit 3 --max_steps {STEPS} --learning_rate 1e-3 --seed 3 "
    "--lr_scheduler_type cosine --logging_steps 1000 --report_to none --per_device_train_batch_size 4 --use_cpu true "
    "--disable_tqdm true"
).split()


@pytest.fixture(autouse=True)
def asked_for(request: pytest.FixtureRequest) -> None:
    if "drill" not in request.config.option.markexpr:
        pytest.skip("takes most of a minute; run it with -m drill")


@pytest.fixture
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where trainings are forked, so that thirty starts do not import torch thirty times."""
    path = str(tmp_path_factory.mktemp("nursery") / "socket")
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "nursery", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield path
    process.kill()
    process.wait()
    process.stdout.close()


def train(directory: Path, nursery: str, *, retries: int, deaths: str = "") -> subprocess.CompletedProcess[str]:
    directory.mkdir()
    environment = {**os.environ, "NURSERY": nursery, "DIE": ""}
    if deaths:
        (directory / "deaths").write_text(deaths)
        environment["DIE"] = str(directory / "deaths")
    job = [sys.executable, str(SCRIPT), "--output_dir", "out", *OPTIONS]
    command = [sys.executable, "-m", "ckptlint", "launch", "--retries", str(retries), "--", *job]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_a_training_killed_thirty_times_ends_with_the_weights_of_one_never_killed(
    tmp_path: Path, nursery: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(tmp_path / "whole", nursery, retries=0)
    assert whole.returncode == 0, whole.stderr
    dice = random.Random(20)
    deaths = "\n".join(f"{dice.randint(EVERY, 28)} {dice.uniform(0, 0.03):.4f}" for _ in range(KILLS))
    killed = train(tmp_path / "killed", nursery, retries=50, deaths=deaths)
    assert killed.returncode == 0, killed.stderr[-4000:]
    weights = [(tmp_path / name / "out" / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
    lost = list(lost_steps((tmp_path / "killed" / "out.diary").read_text()))
    assert len(lost) == KILLS
    damaged = len(re.findall(r"^  not out/checkpoint-\d+", killed.stderr, re.M))
    report = f"{KILLS} kills, {damaged} of them in a save: {sum(lost)} of {STEPS} steps lost, at most {max(lost)} by a kill"
    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert max(lost) <= 2 * EVERY


def lost_steps(diary: str) -> Iterator[int]:
    """For each start but the first: the steps before it that were done and have to be done again."""
    last = 0
    for number, part in enumerate(diary.split("begin ")[1:]):
        begin, *lines = part.split("\n")
        if number:
            yield last - int(begin)
        last = max((int(line.split()[1]) for line in lines if line.startswith("step")), default=int(begin))

"""A tour of ckptlint in one screen: lint a run, repair it, and pin it to the newest complete checkpoint.

Works on a copy in a temporary directory; nothing in this folder changes.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checkpoints import write_run

SAMPLES = Path(__file__).parent
CONFIG = "llama3_lora_sft.yaml"
OUTPUT_DIR = "saves/llama3-8b/lora/sft"


def prepare(directory: Path) -> None:
    """Lay out the sample as it would lie on a training machine after the job was killed."""
    shutil.copy(SAMPLES / "llama-factory" / CONFIG, directory)
    write_run(directory / OUTPUT_DIR)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory))
        _say("This LLaMA-Factory run is killed now and then. What does it lose?")
        _run(f"ckptlint check {CONFIG}", directory)
        _say("Repair what can be repaired without changing what the run computes.")
        _run(f"ckptlint check --fix {CONFIG}", directory)
        _say("It was killed again, while it wrote checkpoint-1500. Point the next start at the newest complete checkpoint.")
        _run(f"ckptlint resume {CONFIG}", directory)


def _say(text: str) -> None:
    print(f"\n# {text}", flush=True)


def _run(command: str, directory: str) -> None:
    print(f"$ {command}", flush=True)
    done = subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=directory, check=False)
    if done.returncode not in (0, 1):  # 1: there are findings
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()

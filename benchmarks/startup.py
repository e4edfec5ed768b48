"""How long a user waits for one small file: ``ckptlint check`` beside Python's own start and ruff.

    python benchmarks/startup.py [REPETITIONS]

The commands take turns, so that whatever else the machine does hits them alike. Prints medians and quartiles in milliseconds.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "samples/llama-factory/llama3_lora_sft.yaml"


def main(repetitions: int) -> None:
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as directory:
        config = shutil.copy(CONFIG, directory)
        module = Path(directory, "small.py")
        module.write_text("import os\n\nprint(os.name)\n", encoding="utf-8")
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "ckptlint check one.yaml": [str(scripts / "ckptlint"), "check", config],
            "python -m ckptlint check one.yaml": [sys.executable, "-m", "ckptlint", "check", config],
            "ckptlint --version": [str(scripts / "ckptlint"), "--version"],
            "ruff check small.py": [str(scripts / "ruff"), "check", "--no-cache", "--isolated", str(module)],
        }
        report(measure(commands, repetitions, directory))


def measure(commands: dict[str, list[str]], repetitions: int, directory: str) -> dict[str, list[float]]:
    """Wall times in milliseconds, by command; one round before them warms the file cache and writes byte code."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(repetitions + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            done = subprocess.run(command, cwd=directory, capture_output=True, check=False)
            if done.returncode not in (0, 1):
                sys.exit(f"{name} failed:\n{done.stderr.decode()}")
            if turn:
                times[name].append((time.perf_counter() - start) * 1000)
    return times


def report(times: dict[str, list[float]]) -> None:
    base = statistics.median(next(iter(times.values())))
    print(f"{'command':<36}{'median':>9}{'quartiles':>18}{'over Python':>14}")
    for name, values in times.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{name:<36}{middle:>6.1f} ms{f'{low:.1f} to {high:.1f}':>18}{middle - base:>+11.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)

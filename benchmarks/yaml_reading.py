"""How fast YAML is read: a usual configuration, and 10 MB of it, beside libyaml's bare events and PyYAML's own loading.

Run: python benchmarks/yaml_reading.py [MEGABYTES]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import yaml

from ckptlint.source.text import decode
from ckptlint.source.yaml import parse

RUN = """run_{number}:
  output_dir: /data/saves/run-{number}  # where it saves
  save_steps: 500
  learning_rate: 1.0e-4
  note: 'a quoted note'
  datasets: [alpaca_en_demo, identity]
"""


def text_of(size: float) -> str:
    """About ``size`` bytes of YAML."""
    return "".join(RUN.replace("{number}", str(number)) for number in range(max(1, round(size / len(RUN)))))


def best_of(rounds: int, action: Callable[[], object]) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def report(size: float, rounds: int) -> None:
    """One line an action."""
    text = text_of(size)
    data = text.encode()
    actions: dict[str, Callable[[], object]] = {
        "libyaml events": lambda: sum(1 for _ in yaml.parse(text, Loader=yaml.CSafeLoader)),
        "yaml.load (C)": lambda: yaml.load(text, Loader=yaml.CSafeLoader),
        "ckptlint parse": lambda: parse(decode("x", data)),
        "ckptlint parse + comments": lambda: parse(decode("x", data)).comments,
    }
    print(f"{len(data) / 1e6:.3f} MB")
    for name, action in actions.items():
        print(f"  {name:26} {best_of(rounds, action) * 1000:10.2f} ms")


if __name__ == "__main__":
    report(2000, 50)
    report(float(sys.argv[1] if len(sys.argv) > 1 else 10) * 1e6, 2)

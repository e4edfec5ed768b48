"""A tiny training with transformers' Trainer on the CPU, written as scripts with HfArgumentParser are; and the way it dies.

``DIE`` names a file with a line for each start, ``steps seconds``: the process kills itself so many seconds after it has done
so many steps, from a thread of its own, so that this happens in the middle of whatever it is doing then, saves included.

Importing torch and transformers takes longer than the training, so ``nursery`` imports them once and forks for every start;
``NURSERY`` names its socket. The process that was started waits for the forked one and ends as that did.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path


def train(arguments: list[str]) -> None:
    """The script itself."""
    import torch
    from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

    class Diary(TrainerCallback):
        """Which steps were done in which start; one of them starts the clock."""

        def __init__(self, path: Path, death: tuple[int, float] | None) -> None:
            self.path, self.death, self.begin = path, death, 0

        def on_train_begin(self, args, state, control, **_):  # type: ignore[no-untyped-def]
            self.begin = state.global_step
            self.note(f"begin {state.global_step}")

        def on_step_end(self, args, state, control, **_):  # type: ignore[no-untyped-def]
            self.note(f"step {state.global_step}")
            if self.death is not None and state.global_step == self.begin + self.death[0]:
                threading.Timer(self.death[1], lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

        def on_train_end(self, args, state, control, **_):  # type: ignore[no-untyped-def]
            self.note(f"end {state.global_step}")

        def note(self, line: str) -> None:
            with self.path.open("a") as file:
                file.write(line + "\n")

    torch.set_num_threads(1)
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(arguments)
    torch.manual_seed(0)
    sizes = {"vocab_size": 16, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(**sizes, attention_dropout=0.1))
    rows = torch.randint(0, 16, (64, 8), generator=torch.Generator().manual_seed(1))
    data = [{"input_ids": row, "labels": row} for row in rows]
    diary = Diary(Path(args.output_dir).with_suffix(".diary"), next_death(os.environ.get("DIE")))
    trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[diary])
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    trainer.save_model()


def next_death(path: str | None) -> tuple[int, float] | None:
    """The next line of the file; None where there is none left."""
    if not path:
        return None
    first, *rest = Path(path).read_text().splitlines() or [""]
    Path(path).write_text("\n".join(rest))
    steps, _, seconds = first.partition(" ")
    return (int(steps), float(seconds)) if first else None


def nursery(path: str) -> None:
    """Fork a training for every connection, and tell how it ended."""
    import torch  # noqa: F401
    from transformers import HfArgumentParser, LlamaForCausalLM, Trainer, TrainingArguments  # noqa: F401

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            client, _ = server.accept()
            with client, client.makefile("rw") as lines:
                request = json.loads(lines.readline())
                child = os.fork()
                if not child:
                    born(request)
                lines.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")


def born(request: dict[str, object]) -> None:
    """The forked process as it would be if it had been started."""
    status = 1
    try:
        os.chdir(str(request["directory"]))
        os.environ["DIE"] = str(request["die"])
        train([str(argument) for argument in request["arguments"]])  # type: ignore[attr-defined]
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def ask(path: str) -> None:
    """Have the nursery train, and end like the training."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        with client.makefile("rw") as lines:
            request = {"arguments": sys.argv[1:], "directory": os.getcwd(), "die": os.environ.get("DIE", "")}
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            status = int(lines.readline())
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    if sys.argv[1:2] == ["nursery"]:
        nursery(sys.argv[2])
    elif os.environ.get("NURSERY"):
        ask(os.environ["NURSERY"])
    else:
        train(sys.argv[1:])

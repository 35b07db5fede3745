"""Methods that are followed step by step, each in a process of its own while it searches.

A search has steps to show only once it has ended, of a learner after seconds to minutes. Pages tell
meanwhile how far it is, and can end it. What it has found is kept for whoever asks again.

`python -m studio.following` is the other end: the question comes pickled on standard input, for it
comes from here; frames go to standard output, as of confined processes (`placement.remote.wire`).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import placement as pl
from placement.api.steps import Steps
from placement.core.problem import Problem
from placement.remote.wire import EVENT, HEAD, REFUSAL, RESULT, decoded, encoded
from placement.search.steps import Step

ROOT = Path(__file__).resolve().parents[1]
# Walks that are kept, and for how long one goes on that nobody looks at where another is wanted.
MOST_KEPT, UNWATCHED_S = 8, 10.0
COUNTED = {"batches": "batch", "steps": "step"}
STOPPED = "Stopped before it finished."
_guard = threading.Lock()
_known: OrderedDict[tuple[Problem, str], Following] = OrderedDict()


class Following:
    """A method that is being followed; `done` is set when its steps are there or it has failed.

    `share` (0 to 1) and `doing`, a few words, say how far it is, `account` what its search came to,
    `seconds` how long all of it took, `error` why it has no steps.
    """

    def __init__(
        self, problem: Problem, placer: str, most: int, settings: Mapping[str, Any]
    ) -> None:
        self.done = threading.Event()
        self.share, self.seconds = 0.0, 0.0
        self.doing, self.account = "starting", ""
        self.is_stopped = False
        self.watched_s = self._began_s = time.monotonic()
        self._problem, self._placer = problem, placer
        self._question = problem, placer, most, dict(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._steps: Steps | None = None
        self.error = ""
        threading.Thread(target=self._follow, name=f"following {placer}", daemon=True).start()

    @property
    def is_there(self) -> bool:
        return self._steps is not None

    def result(self) -> Steps:
        """The steps, once they are there; a ValueError says why there are none."""
        self.done.wait()
        if self._steps is None:
            raise ValueError(self.error)
        return self._steps

    def stop(self) -> None:
        """End it; nothing is kept."""
        self.is_stopped = True
        if self._process is not None:
            self._process.kill()

    def _follow(self) -> None:
        try:
            self._steps = self._answer()
        except Exception as error:
            # Whatever it was, who waits must hear of it.
            self.error = str(error) or f"{type(error).__name__}: the computer could not do this."
        self.seconds = time.monotonic() - self._began_s
        self.done.set()

    def _answer(self) -> Steps:
        """Ask a process of its own, which ends with the thread that has started it."""
        with subprocess.Popen(
            [sys.executable, "-m", "studio.following"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as child:
            self._process = child
            try:
                if not self.is_stopped:
                    return self._heard(child)
            except (BrokenPipeError, EOFError):
                # It ended before it had read all, or said all.
                pass
            finally:
                child.kill()
        if self.is_stopped:
            raise ValueError(STOPPED)
        raise ValueError(
            f"The process that followed {self._placer!r} ended before it had steps to show (a"
            " crash, or somebody stopped it); follow it again."
        )

    def _heard(self, child: subprocess.Popen[bytes]) -> Steps:
        assert child.stdin is not None and child.stdout is not None
        with child.stdin as question:
            question.write(pickle.dumps(self._question))
        while True:
            what, content = _read(child.stdout)
            if what == RESULT:
                lines, steps = _unpickled(content)
                return Steps(self._placer, lines, self._problem, steps)
            if what == REFUSAL:
                raise ValueError(decoded(content, str))
            self._hear(decoded(content, dict[str, Any]))

    def _hear(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "waiting":
            self.doing = str(event["holder"])
            return
        step, of = int(event["step"]), int(event["of"])
        self.share = min(1.0, step / of) if of else 0.0
        counted = COUNTED.get(event["what"], "")
        self.doing = f"{counted} {step}{f' of {of}' * bool(of)}" if counted else event["what"]
        self.account = event.get("note", "") or self.account


def start(problem: Problem, placer: str, most: int, settings: Mapping[str, Any]) -> Following:
    """Begin to follow a method, or join whoever has begun, or find what it has worked out."""
    key = problem, placer
    with _guard:
        found = _known.get(key)
        if found is None:
            _make_room()
            found = _known[key] = Following(problem, placer, most, settings)
        _known.move_to_end(key)
        found.watched_s = time.monotonic()
        return found


def find(problem: Problem, placer: str) -> Following | None:
    """What became of a method that was followed before."""
    with _guard:
        return _known.get((problem, placer))


def forget(problem: Problem, placer: str) -> None:
    """Let a method be followed anew."""
    with _guard:
        _known.pop((problem, placer), None)


def _make_room() -> None:
    """Let go of the oldest walks, and of searches that go on for nobody: they need all cores."""
    now_s = time.monotonic()
    for key, one in list(_known.items()):
        if not one.done.is_set() and now_s - one.watched_s > UNWATCHED_S:
            one.stop()
            del _known[key]
    over = [key for key, one in _known.items() if one.done.is_set()]
    for key in over[: max(0, len(_known) - MOST_KEPT + 1)]:
        del _known[key]


def _read(stream: IO[bytes]) -> tuple[bytes, bytes]:
    """The next frame; EOFError where there is none."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    what, num_bytes = HEAD.unpack(head)
    content = stream.read(num_bytes)
    if len(content) < num_bytes:
        raise EOFError
    return what, content


def _unpickled(content: bytes) -> tuple[tuple[str, ...], tuple[Step, ...]]:
    lines, steps = pickle.loads(content)
    return lines, steps


def main() -> None:
    """Follow the method of the question, and tell how far it is and what it has worked out."""
    from profiling.sandbox import confinement

    confinement.end_with(os.getppid())
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a library prints must not get between the frames.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def send(what: bytes, content: bytes) -> None:
        out.write(HEAD.pack(what, len(content)) + content)
        out.flush()

    problem, placer, most, settings = pickle.load(sys.stdin.buffer)
    try:
        found = pl.steps(
            problem,
            placer,
            most=most,
            settings=settings,
            emit=lambda event: send(EVENT, encoded(event)),
        )
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        text = str(error) or f"{type(error).__name__}: the computer could not do this."
        send(REFUSAL, encoded(text))
    else:
        send(RESULT, pickle.dumps((found.pseudo_code, found.steps)))


if __name__ == "__main__":
    main()

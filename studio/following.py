"""Methods that are followed step by step, each in a process of its own while it takes long.

A search has steps to show only once it has ended, of a learner after seconds to minutes; any method
is compiled the first time on a computer. Pages tell meanwhile how far it is, and can end it. What
it has found is kept for whoever asks again. It needs all cores and lets nothing be measured, so it
goes on only while a page asks how far it is.

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
from placement.advice.warming import word_of
from placement.api.steps import Steps
from placement.compiled.cache import cache_folder, is_warm, is_writable, note_warm
from placement.core.problem import Problem
from placement.remote.wire import EVENT, HEAD, REFUSAL, RESULT, decoded, encoded

ROOT = Path(__file__).resolve().parents[1]
MOST_KEPT = 8
# For how long a search goes on that nobody asks about: where another one is wanted, and at all. A
# browser lets a page that is out of sight ask once a minute.
UNWATCHED_S, ALONE_S = 10.0, 90.0
# A problem by its content, for the same one is posed anew for another page, and a method.
Key = tuple[str, ...]
COUNTED = {"batches": "batch", "steps": "step"}
STOPPED = "Stopped before it finished."
ANSWERED = ("pseudo_code", "steps", "account", "bound_s", "seconds")
# What stands for the steps of a method among what is compiled.
STEPS = "steps"
_guard = threading.Lock()
_known: OrderedDict[Key, Following] = OrderedDict()
_compiled: set[str] = set()


class Following:
    """A method that is being followed; `done` is set when its steps are there or it has failed.

    `share` (0 to 1) and `doing`, a few words, say how far it is, `error` why it has no steps.
    `watched_s` is when somebody asked last.
    """

    def __init__(
        self, problem: Problem, placer: str, most: int, settings: Mapping[str, Any]
    ) -> None:
        self.done = threading.Event()
        self.share, self.doing = 0.0, "starting"
        self.is_stopped = False
        self.watched_s = time.monotonic()
        self._problem, self._placer = problem, placer
        self.key = _key(problem, placer)
        self._question = problem, placer, most, dict(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._steps: Steps | None = None
        self.error = ""
        threading.Thread(target=self._follow, name=f"following {placer}", daemon=True).start()
        threading.Thread(target=_end_alone, args=(self,), name="watched?", daemon=True).start()

    @property
    def is_there(self) -> bool:
        return self._steps is not None

    def result(self) -> Steps:
        """The steps, once they are there; a ValueError says why there are none."""
        while not self.done.wait(UNWATCHED_S / 2):
            # Who waits looks at it as well.
            self.watched_s = time.monotonic()
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
                told = _unpickled(content)
                note_warm(_word(self._problem, self._placer))
                return Steps(self._placer, problem=self._problem, **told)
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


def is_compiled(problem: Problem, placer: str) -> bool:
    """Whether what shows the steps of a method for such problems was compiled here before.

    Where nothing is compiled, or nothing kept, a process of its own would bring nothing.
    """
    word = _word(problem, placer)
    if word in _compiled or os.environ.get("NUMBA_DISABLE_JIT"):
        return True
    placing = word_of(placer, problem.objective, problem.execution)
    if is_warm(word) or is_warm(placing) or not is_writable(cache_folder()):
        _compiled.add(word)
    return word in _compiled


def _word(problem: Problem, placer: str) -> str:
    return word_of(f"{placer}:{STEPS}", problem.objective, problem.execution)


def start(problem: Problem, placer: str, most: int, settings: Mapping[str, Any]) -> Following:
    """Begin to follow a method, or join whoever has begun, or find what it has worked out.

    Whoever joins gets what was asked for by whom they join: pages give each method one setting.
    """
    key = _key(problem, placer)
    with _guard:
        found = _known.get(key)
        if found is None:
            _make_room()
            found = _known[key] = Following(problem, placer, most, settings)
        _known.move_to_end(key)
        found.watched_s = time.monotonic()
        if not found.done.is_set():
            _end_unwatched(found)
        return found


def find(problem: Problem, placer: str) -> Following | None:
    """What became of a method that was followed before."""
    with _guard:
        return _known.get(_key(problem, placer))


def forget(found: Following) -> None:
    """Let what it followed be followed anew, unless somebody has begun that already."""
    with _guard:
        if _known.get(found.key) is found:
            _drop(found)


def _key(problem: Problem, placer: str) -> Key:
    # Steps have sentences with times in the problem's unit, and their answer the machine's name.
    return problem.fingerprint, problem.machine.content, problem.unit, placer


def _make_room() -> None:
    """Let go of the oldest walks that have ended."""
    over = [one for one in _known.values() if one.done.is_set()]
    for one in over[: max(0, len(_known) - MOST_KEPT + 1)]:
        _drop(one)


def _end_unwatched(wanted: Following) -> None:
    """End the searches that hold the cores for nobody while another one is wanted."""
    for one in [one for one in _known.values() if one is not wanted and not one.done.is_set()]:
        if time.monotonic() - one.watched_s > UNWATCHED_S:
            _drop(one)


def _end_alone(found: Following) -> None:
    """End a search that nobody has asked about for long, as the window is closed for example."""
    while not found.done.wait(max(0.0, found.watched_s + ALONE_S - time.monotonic())):
        with _guard:
            # Somebody may have come just now.
            if time.monotonic() - found.watched_s >= ALONE_S:
                _drop(found)
                return


def _drop(found: Following) -> None:
    """Take it from the known ones; nothing goes on that is not among them."""
    if not found.done.is_set():
        found.stop()
    if _known.get(found.key) is found:
        del _known[found.key]


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


def _pickled(found: Steps) -> bytes:
    """All of it but the question, which who asks has."""
    return pickle.dumps({name: getattr(found, name) for name in ANSWERED})


def _unpickled(content: bytes) -> dict[str, Any]:
    told: dict[str, Any] = pickle.loads(content)
    return told


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
        send(RESULT, _pickled(found))


if __name__ == "__main__":
    main()

"""The connection of this process to a cluster, and whom it ends with."""

import logging
import os
import signal
from contextlib import suppress
from typing import Any

import ray
from ray._common.network_utils import parse_address
from ray._private import auto_init_hook
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import RayError
from ray.job_config import JobConfig

from profiling.backends._ray.alive import Address, answers
from profiling.backends._ray.hosts import ROOT, address_of
from profiling.backends._ray.outside import (
    NOT_BEGUN,
    OUTSIDE,
    NotLetIn,
    door_of,
    is_break,
    is_outside,
    join_from_outside,
    leave_outside,
)

# How long a head may be silent.
ANSWER_S = 6.0


def needed() -> tuple[Address, ...]:
    """Whom a process inside of a cluster cannot do without: the head, and its own node."""
    context = ray.get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    own = next(node for node in ray.nodes() if node["NodeID"] == context.get_node_id())
    return (host.strip("[]"), int(port)), address_of(own)


def _unprinted(lines: object, ignore_prefix: bool) -> None:
    """What Ray prints with in this place, and prints nothing."""


def _require_answer(address: str) -> None:
    """ConnectionError where nobody listens at an address, or where the last head was.

    Ray itself would try for minutes, also where the file that names its last head outlived that.
    """
    found = canonicalize_bootstrap_address(address) if address == "auto" else address
    if is_outside(address):
        parts: tuple[str, Any] | None = door_of(address)
    else:
        parts = None if found is None else parse_address(found)
    # Of what cannot be understood Ray says why.
    if parts is not None and not answers((parts[0], int(parts[1])), ANSWER_S):
        raise ConnectionError(f"nobody answers at {found.removeprefix(OUTSIDE)}")


def join_cluster(address: str) -> None:
    """Connect this process to a cluster; a ValueError says that none answers there."""
    # Ray takes over what this process does when it is told to stop.
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # It would print what became of answers that nobody waits for any more, whoever is lost.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    # It would print what its nodes say among our answers; whoever is lost is told by us.
    ray._private.worker.print_to_stdstream = _unprinted
    # It would warn where several clusters run here; it takes the one that was started last.
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Whoever asks once a cluster has ended would begin a new one.
    auto_init_hook.enable_auto_connect = False
    try:
        _require_answer(address)
        # Hosts import what they run; no code is sent to them.
        job = JobConfig(code_search_path=[str(ROOT)])
        if is_outside(address):
            join_from_outside(address, job)
        else:
            leave_outside()
            ray.init(
                address=address,
                job_config=job,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
            )
    except NotLetIn:
        raise
    except Exception as error:
        ours = (ConnectionError, ImportError, RayError, RuntimeError, ValueError)
        if not (isinstance(error, ours) or is_break(error)):
            raise
        raise ValueError(_refusal(address, error)) from None
    finally:
        with suppress(ValueError):  # not in the main thread
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _refusal(address: str, error: Exception) -> str:
    """Why there is no connection, in a sentence."""
    # Where another process has failed for this one, how its traceback ends.
    said = str(error).strip().rpartition("\n")[2] if "Traceback" in str(error) else str(error)
    text = " ".join(said.split())[:150]
    if NOT_BEGUN in text:
        return f"The head of the Ray cluster at {address} began no process for this one; try again."
    if "Version mismatch" in text:
        return f"The Ray cluster has other versions than are here ({text}); use the same."
    where = "runs here" if address == "auto" else f"answers at {address}"
    return (
        f"No Ray cluster {where} ({text}); start one with `ray start --head`, or use"
        " --machine local."
    )

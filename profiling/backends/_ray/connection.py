"""The connection of this process to a cluster, and whom it ends with."""

import logging
import os
import signal
import site
from collections.abc import Callable
from contextlib import suppress

import ray
from ray._common.network_utils import parse_address
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import RayError
from ray.job_config import JobConfig

from profiling.backends._ray.alive import Address, answers
from profiling.backends._ray.hosts import ROOT, address_of

# How addresses of clusters begin that one is outside of, and how long a head may be silent.
OUTSIDE, ANSWER_S = "ray://", 6.0


class _Importable:
    """What makes a process that it comes to find the modules that lie in the folder of this one."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return site.addsitedir, (str(ROOT),)


def needed(address: str) -> tuple[Address, ...]:
    """Whom this process cannot do without: the head, and the node that it is connected to, or,
    from outside of the cluster, who it is connected by."""
    if address.startswith(OUTSIDE):
        host, port = parse_address(address.removeprefix(OUTSIDE)) or ("", "0")
        return ((host, int(port)),)
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
    found = address.removeprefix(OUTSIDE)
    if found == "auto":
        found = canonicalize_bootstrap_address(found)
    parts = None if found is None else parse_address(found)
    # Of what cannot be understood Ray says why.
    if parts is not None and not answers((parts[0], int(parts[1])), ANSWER_S):
        raise ConnectionError(f"nobody answers at {found}")


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
    try:
        _require_answer(address)
        # Hosts import what they run; no code is sent to them.
        job = JobConfig(code_search_path=[str(ROOT)])
        if address.startswith(OUTSIDE):
            _join_from_outside(address.removeprefix(OUTSIDE), job)
        else:
            ray.init(
                address=address,
                job_config=job,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
            )
    except (ConnectionError, ImportError, RayError, RuntimeError, ValueError) as error:
        where = "runs here" if address == "auto" else f"answers at {address}"
        # Of what was told by who lets others in, how it ends.
        told = str(error).strip().rpartition("\n")[2] if "Traceback" in str(error) else str(error)
        text = " ".join(told.split())[:150]
        raise ValueError(
            f"No Ray cluster {where} ({text}); start one with `ray start --head`, or use"
            " --machine local."
        ) from None
    finally:
        with suppress(ValueError):  # not in the main thread
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _join_from_outside(address: str, job: JobConfig) -> None:
    """Connect to the process of a head that does for others what Ray's own ones do themselves."""
    # Else it would try for half a minute once the head is no more.
    os.environ.setdefault("RAY_CLIENT_RECONNECT_GRACE_PERIOD", f"{ANSWER_S:.0f}")
    from ray.util.client.logsclient import LogstreamClient
    from ray.util.client_connect import connect

    # It would print what that process prints among our answers, and that it has ended.
    LogstreamClient.stdstream = LogstreamClient.log = _unlogged
    logging.getLogger(LogstreamClient.__module__).disabled = True
    logging.getLogger(LogstreamClient.__module__.rpartition(".")[0]).setLevel(logging.CRITICAL)
    connect(address, job_config=job, ray_init_kwargs={"log_to_driver": False})
    ray.put(_Importable())


def _unlogged(client: object, level: int, msg: str) -> None:
    """What Ray logs with in this place, and logs nothing."""

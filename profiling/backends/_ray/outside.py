"""The way into a cluster that this computer does not belong to: Ray's client, `ray://HOST:PORT`.

A process of the head does there what Ray's own do for who is inside. Its client raises much that is
none of Ray's errors, and reads what it needs from settings, so all that is known of it is here.
"""

import importlib
import logging
import os
import site
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import ray
from ray._common.network_utils import parse_address
from ray._private import client_mode_hook
from ray.exceptions import RayError, RaySystemError
from ray.job_config import JobConfig

from placement.core.decoding import shown
from profiling.backends._ray.alive import Address
from profiling.backends._ray.hosts import ROOT

# How addresses of clusters begin that one is outside of.
OUTSIDE = "ray://"
# For how long a connection that broke is tried again, and closing one may take.
AGAIN_S, CLOSE_S = 6, 5.0
# What Ray's client says where the process that it asks for hangs as it begins, as now and then: who
# begins it has threads.
NOT_BEGUN = "Starting Ray client server failed"
# What the head must be able to import.
_IMPORTED = "profiling.backends._ray.worker"


class NotLetIn(ValueError):
    """Why this process cannot be connected to a cluster from outside, in a sentence."""


class _Findable:
    """What makes a process that reads it find the modules that lie in the folder of this one."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return site.addsitedir, (str(ROOT),)


class _Imported:
    """What a process that reads it has to import: an error says that it cannot."""

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return importlib.import_module, (_IMPORTED,)


def is_outside(address: str) -> bool:
    return address.startswith(OUTSIDE)


def door_of(address: str) -> Address:
    """Where the process listens that an address names; NotLetIn says what is missing in it."""
    found = parse_address(address.removeprefix(OUTSIDE))
    if found is None or not found[1].isdecimal():
        raise NotLetIn(f"{shown(address)} names no port; use ray://HOST:PORT, as a rule 10001.")
    return found[0], int(found[1])


def join_from_outside(address: str, job: JobConfig) -> None:
    """Connect to a cluster; NotLetIn says what is missing, other errors come from Ray."""
    if find_spec("grpc") is None:
        raise NotLetIn("ray:// needs: pip install -r requirements-hosts.txt")
    leave_outside()
    os.environ.setdefault("RAY_CLIENT_RECONNECT_GRACE_PERIOD", str(AGAIN_S))
    from ray.util.client.logsclient import LogstreamClient
    from ray.util.client_connect import connect

    # It would print what the process of the head prints among our answers, that it has ended, and
    # that inputs of a model are large.
    LogstreamClient.stdstream = LogstreamClient.log = _unlogged
    logging.getLogger(LogstreamClient.__module__).disabled = True
    logging.getLogger(LogstreamClient.__module__.rpartition(".")[0]).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"ray\.util\.client")
    try:
        connect(
            address.removeprefix(OUTSIDE),
            # One attempt is 5 s, and somebody has answered there.
            connection_retries=1,
            job_config=job,
            ray_init_kwargs={"log_to_driver": False, "logging_level": "ERROR"},
        )
        ray.put(_Findable())
        try:
            ray.put(_Imported())
        except Exception as error:
            if is_break(error):
                raise
            # Of another version it may fail at anything.
            raise NotLetIn(
                f"The head of the Ray cluster at {address} cannot load the studio from {ROOT};"
                " install it there, in the same folder and of the same version."
            ) from None
    except BaseException:
        leave_outside()
        raise


def leave_outside() -> None:
    """Be connected no more, and be one who may join a cluster from inside."""
    if client_mode_hook.is_client_mode_enabled:
        from ray.util.client import ray as client
        from ray.util.client.api import _ClientAPI

        context = client.get_context()
        worker, context.client_worker, context.api = context.client_worker, None, _ClientAPI()
        client_mode_hook._explicitly_disable_client_mode()
        if worker is not None:
            # It waits without a limit for threads that may wait for who does not answer.
            closing = threading.Thread(target=_close, args=(worker,), name="leave", daemon=True)
            closing.start()
            closing.join(CLOSE_S)


def _close(worker: Any) -> None:
    with suppress(Exception):
        worker.close()


def is_connected() -> bool:
    """Whether this process is connected to a cluster, from inside or outside."""
    return (
        lets_in(CLOSE_S) if client_mode_hook.is_client_mode_enabled else bool(ray.is_initialized())
    )


def lets_in(limit_s: float) -> bool:
    """Whether the process answers that the head has begun for this one.

    Who listens at the address answers a ping for it, also when it has ended.
    """
    from ray.core.generated.ray_client_pb2 import ClusterInfoType
    from ray.util.client import ray as client

    try:
        worker = client.get_context().client_worker
        return bool(worker.get_cluster_info(ClusterInfoType.IS_INITIALIZED, timeout=limit_s))
    except Exception:  # what gRPC raises, or there is none
        return False


def is_break(error: BaseException) -> bool:
    """Whether an error says that the connection from outside is no more, not what somebody did."""
    if isinstance(error, RayError):
        # Once its client has given up, Ray says that nobody has begun it.
        return isinstance(error, RaySystemError)
    # Ray's client raises plain ones, too, where it is not connected.
    from_grpc = any(kind.__module__.startswith("grpc") for kind in type(error).__mro__)
    return from_grpc or isinstance(error, ConnectionError) or type(error) is Exception


def _unlogged(client: object, level: int, msg: str) -> None:
    """What Ray logs with in this place, and logs nothing."""

"""Tests over a Ray cluster of two nodes on this computer, which they share."""

import pytest

from profiling.measuring import between_hosts, crossings, kernels, reference
from tests.hosts.template import template
from tests.hosts.two_nodes import nodes


def pytest_collection_modifyitems(items):
    # Ray leaves the processes and pipes of its nodes to the garbage collector.
    for item in (item for item in items if "hosts" in item.path.parts):
        item.add_marker(
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
        )


@pytest.fixture(scope="session")
def copying():
    """How nodes are started whose workers have all that they import."""
    with template() as settings:
        yield settings


@pytest.fixture(scope="session")
def cluster(copying):
    with nodes(settings=copying) as started:
        yield started
        import ray

        ray.shutdown()


@pytest.fixture
def machine(cluster):
    """The machine of all nodes; those that other tests have killed are started anew."""
    return cluster.machine()


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """What is measured here is to be there, and need not be exact."""
    monkeypatch.setattr(kernels, "BUDGET_S", 0.0)
    monkeypatch.setattr(crossings, "BUDGET_S", 0.0)
    monkeypatch.setattr(reference, "STEPS_S", 0.0)
    monkeypatch.setattr(between_hosts, "ALONE_S", 0.0)

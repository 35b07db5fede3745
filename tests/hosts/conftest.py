"""Tests over a Ray cluster of two nodes on this computer, which they share."""

import pytest

from tests.hosts.two_nodes import nodes


def pytest_collection_modifyitems(items):
    # Ray leaves the processes and pipes of its nodes to the garbage collector.
    for item in (item for item in items if "hosts" in item.path.parts):
        item.add_marker(
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
        )


@pytest.fixture(scope="session")
def cluster():
    with nodes() as started:
        yield started
        import ray

        ray.shutdown()


@pytest.fixture
def machine(cluster):
    """The machine of all nodes; those that other tests have killed are started anew."""
    return cluster.machine()

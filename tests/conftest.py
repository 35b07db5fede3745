"""What all tests share: one home folder per run, the same examples of properties, skips by name."""

import importlib.metadata
import importlib.util
import os
from collections import defaultdict

import pytest


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


# tests/webgpu has an environment of its own, in which nothing else can run.
collect_ignore = [] if _installed("onnxruntime-webgpu") else ["webgpu"]

if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    # The same examples at every run; `make fuzz` looks for fresh ones.
    settings.register_profile(
        "studio", deadline=None, derandomize=True, database=None, print_blob=True
    )
    settings.register_profile("fresh", deadline=None, print_blob=True, derandomize=False)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "studio"))


@pytest.fixture(scope="session", autouse=True)
def studio_home(tmp_path_factory):
    """A home folder for this run: profiles and locks of the person at this computer stay alone."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("PLACEMENT_STUDIO_HOME", str(folder))
        yield folder


def pytest_terminal_summary(terminalreporter):
    """Count and name what was skipped: a test that did not run has shown nothing."""
    by_reason = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        by_reason[reason.removeprefix("Skipped: ")].append(report.nodeid)
    total = sum(map(len, by_reason.values()))
    terminalreporter.section(f"{total} skipped")
    for reason, names in sorted(by_reason.items()):
        terminalreporter.line(f"{len(names)} x {reason}")
        for name in sorted(names):
            terminalreporter.line(f"    {name}")

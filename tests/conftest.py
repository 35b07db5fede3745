"""What all tests share: a home folder per process, the same examples of properties, skips by name.

`--quick` leaves out the browser and what tests/slow.txt names; `--note-slow` writes that file anew.
"""

import functools
import gc
import importlib.metadata
import importlib.util
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.thorough import THOROUGH


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


# Tests run side by side: threads of one that wait for each other would take the others' cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SLOW = Path(__file__).with_name("slow.txt")
# Of one test function with all its parameters.
SLOW_S = 0.3
# The exit status where nothing failed but tests in the browser, which may have come too late.
ONLY_BROWSER_FAILED = 20
LEFT_OUT = "left_to_fuzz"
LEFT_TO_FUZZ = pytest.StashKey[int]()

# tests/webgpu has an environment of its own, in which nothing else can run.
collect_ignore = [] if _installed("onnxruntime-webgpu") else ["webgpu"]
# `make setup-hosts` installs what these need.
collect_ignore += [] if _installed("ray") else ["hosts"]

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
        # Tests run side by side, so that nobody would ever find a quiet computer.
        patch.setenv("PLACEMENT_STUDIO_PATIENCE_S", "0")
        yield folder


@pytest.fixture(scope="session", autouse=True)
def pages_without_delay():
    """Streamlit's tests of pages take less: packages are searched once, and nobody looks for the
    end of a page a thousand times a second, which holds up the thread that draws it."""
    if "streamlit" not in sys.modules:
        yield
        return
    from streamlit.components.v2 import manifest_scanner
    from streamlit.testing.v1 import local_script_runner

    with pytest.MonkeyPatch.context() as patch:
        search = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", search)
        patch.setattr(local_script_runner, "require_widgets_deltas", _until_drawn)
        yield


def _until_drawn(runner, timeout):
    """Wait for the thread that draws the page."""
    runner._script_thread.join(timeout)
    if not runner.script_stopped():
        runner.request_stop()
        runner.join()
        raise RuntimeError(f"The page was not drawn within {timeout} s")


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="no browser, nothing of tests/slow.txt")
    parser.addoption("--note-slow", action="store_true", help="write tests/slow.txt after this run")


def _function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _needs_a_browser(nodeid: str) -> bool:
    return nodeid.startswith("tests/browser/")


def pytest_collection_modifyitems(config, items):
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    # Whoever names a test wants it.
    if not THOROUGH and not any("::" in word for word in config.args):
        config.stash[LEFT_TO_FUZZ] = _leave_out(
            config, items, lambda item: item.get_closest_marker("only_thorough") is not None
        )
    if workers > 1:
        _begin_with_the_browser(items, workers)
    if config.getoption("quick"):
        slow = set(SLOW.read_text().split())
        _leave_out(
            config,
            items,
            lambda item: _needs_a_browser(item.nodeid) or _function_of(item.nodeid) in slow,
        )


def _leave_out(config, items, unwanted) -> int:
    """Take the tests that are unwanted out of `items`; how many they were."""
    left_out = [item for item in items if unwanted(item)]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    return len(left_out)


def _begin_with_the_browser(items, workers):
    """Tests in the browser first, on two of the processes; each process gets a run of the list.

    They are the longest: as the last ones they would keep one process while the others stand idle.
    Each keeps a core busy with its page, so more than two at a time would wait for each other.
    """
    in_browser, others = [], []
    for item in items:
        (in_browser if _needs_a_browser(item.nodeid) else others).append(item)
    groups = list(dict.fromkeys(map(_served, in_browser)))
    one = [item for item in in_browser if groups.index(_served(item)) % 2 == 0]
    two = [item for item in in_browser if groups.index(_served(item)) % 2 == 1]
    second = max(0, len(items) // workers - len(one))
    items[:] = [*one, *others[:second], *two, *others[second:]]


def _served(item):
    """What is dealt as a whole: a file, and all tests of the page with nothing but a canvas."""
    return "canvas" if "harness_url" in item.fixturenames else item.path


def pytest_collection_finish(session):
    """What is imported by now stays: to search it for garbage over and over takes a tenth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Each process of several has left out the same; one that has died tells nothing."""
    told = getattr(node, "workeroutput", {})
    if LEFT_OUT in told:
        node.config.stash[LEFT_TO_FUZZ] = told[LEFT_OUT]


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a process of several
        session.config.workeroutput[LEFT_OUT] = session.config.stash.get(LEFT_TO_FUZZ, 0)
        return
    bad = [r.nodeid for key in ("failed", "error") for r in reporter.stats.get(key, [])]
    if exitstatus == pytest.ExitCode.TESTS_FAILED and bad and all(map(_needs_a_browser, bad)):
        session.exitstatus = ONLY_BROWSER_FAILED
    if session.config.getoption("note_slow"):
        _note_slow(reporter)


def _note_slow(reporter):
    took_s = Counter()
    for report in (r for reports in reporter.stats.values() for r in reports):
        if isinstance(report, pytest.TestReport) and not _needs_a_browser(report.nodeid):
            took_s[_function_of(report.nodeid)] += report.duration
    SLOW.write_text("".join(f"{name}\n" for name in sorted(took_s) if took_s[name] > SLOW_S))


def pytest_terminal_summary(terminalreporter):
    _tell_what_was_said(terminalreporter)
    _tell_what_was_skipped(terminalreporter)
    left = terminalreporter.config.stash.get(LEFT_TO_FUZZ, 0)
    if left:
        terminalreporter.line(f"{left} are left to `make fuzz` and `make test-hosts`")


def _tell_what_was_said(terminalreporter):
    """What tests recorded under the name "said": a process of several has no terminal."""
    for report in (r for reports in terminalreporter.stats.values() for r in reports):
        if getattr(report, "when", "") == "call":
            for name, value in report.user_properties:
                if name == "said":
                    terminalreporter.line(str(value))


def _tell_what_was_skipped(terminalreporter):
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

"""The Devices page in a real browser: the machine as a picture, and figures that are changed."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.studio import choose, settled


def picked(page, what):
    return page.locator(f'.machine [data-pick="{what}"]')


@pytest.fixture(scope="module")
def lasting(lasting_page):
    """The page of a new project; each test chooses a machine of its own."""
    page = lasting_page("devices")
    settled(page)
    return page


def fill(page, label, value):
    field = page.get_by_role("spinbutton", name=label, exact=True)
    expect(field).to_have_count(1)
    expect(field).to_be_enabled()
    settled(page)  # a field that is drawn anew forgets what was typed
    field.fill(value)
    field.press("Enter")


def test_a_device_and_a_link_are_picked_and_changed_in_a_copy(lasting):
    page = lasting
    measure = page.get_by_role("button", name="Measure this model").bounding_box()
    assert measure["y"] + measure["height"] <= page.viewport_size["height"], "it is in sight"
    choose(page, "Machine", "pcie-4gpu")
    cards = page.locator(".machine .card")
    expect(cards).to_have_count(5)
    stripes = page.locator(".machine .stripe")
    colours = stripes.evaluate_all("found => found.map((s) => s.getAttribute('fill'))")
    assert len(set(colours)) == 5
    expect(page.locator(".machine .rail .speed")).to_have_text(["25 GB/s, 12 µs", "20 GB/s, 15 µs"])
    memory = page.get_by_role("spinbutton", name="Memory in GiB", exact=True)
    picked(page, "cuda:1").click()
    expect(memory).to_be_disabled()
    page.get_by_role("button", name="Make a copy to change").click()
    expect(memory).to_be_enabled()
    fill(page, "Memory in GiB", "8")
    expect(picked(page, "cuda:1")).to_contain_text("8 GiB")
    expect(picked(page, "cuda:2")).to_contain_text("24 GiB")

    among = picked(page, "cuda:0->cuda:1")
    among.focus()
    among.press("Enter")
    fill(page, "GB per second", "40")
    expect(page.locator(".machine .rail .speed")).to_have_text(["25 GB/s, 12 µs", "40 GB/s, 15 µs"])
    fill(page, "GB per second", "0")
    expect(page.get_by_text(re.compile("use more than zero")).first).to_be_visible()
    settled(page)
    expect(page.get_by_role("spinbutton", name="GB per second", exact=True)).to_have_value("40")


def test_names_of_a_machine_file_are_text_and_many_hosts_are_boxes(lasting, tmp_path):
    page = lasting
    evil = "<img src=x onerror=alert(1)>"
    names = [evil, *(f"gpu:{i}" for i in range(1, 32))]
    devices = [
        {
            "name": name,
            "kind": "gpu" if i % 8 else "cpu",
            "label": evil,
            "memory_bytes": 2**33,
            "flops_per_s": 1e13,
            "memory_bytes_per_s": 1e12,
        }
        for i, name in enumerate(names)
    ]
    links = [
        {
            "src": a,
            "dst": b,
            "latency_s": 1e-5,
            "bytes_per_s": 5e10 if names.index(a) // 8 == names.index(b) // 8 else 2e10,
        }
        for a in names
        for b in names
        if a != b
    ]
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps({"name": "hosts", "devices": devices, "links": links}))
    settled(page)
    page.get_by_test_id("stMain").locator('input[type="file"]').first.set_input_files(str(path))
    expect(page.locator(".machine .host")).to_have_count(4)
    expect(page.locator(".machine .card")).to_have_count(32)
    expect(page.locator(".machine .speed").last).to_have_text("Between hosts: 20 GB/s, 10 µs")
    assert page.locator(".machine img").count() == 0
    boxes = page.locator(".machine .card .body").evaluate_all(
        "found => found.map((b) => b.getBoundingClientRect().toJSON())"
    )
    frame = page.locator(".machine .frame").bounding_box()
    for i, a in enumerate(boxes):
        assert frame["x"] <= a["left"] and a["right"] <= frame["x"] + frame["width"]
        for b in boxes[i + 1 :]:
            apart = a["right"] <= b["left"] or b["right"] <= a["left"]
            assert apart or a["bottom"] <= b["top"] or b["bottom"] <= a["top"]

"""Which files a confined command may read and write."""

from argparse import Namespace
from pathlib import Path

from placement.cli.supervisor import _saved


def test_a_policy_is_written_where_a_setting_says():
    options = Namespace(set=["save=learned.safetensors", "batch=8", "save="])
    assert list(_saved(options)) == [Path("learned.safetensors").absolute()]
    assert list(_saved(Namespace())) == []

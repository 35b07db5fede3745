"""Content hashes: the same content has the same fingerprint on every machine and hash seed."""

import hashlib
import json
import re
from typing import Any


def fingerprint_of(content: Any) -> str:
    """Hash of a JSON-able value; 16 hexadecimal digits, enough for files and caches on one disk."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_fingerprint(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{16}", text) is not None

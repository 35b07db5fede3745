"""Content hashes: the same content has the same fingerprint on every machine and hash seed."""

import hashlib
import json
from typing import Any


def fingerprint_of(content: Any) -> str:
    """Hash of a JSON-able value; 16 hexadecimal digits, enough for files and caches on one disk."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Letters that may stand on a page: in a name that somebody typed, in a text from anywhere.

Refused are only those that do harm: controls, line breaks, halves of pairs, and what turns the
direction of the text after it. Joiners and blanks of every width stay, since names and emoji need
them.
"""

import unicodedata

_CATEGORIES = frozenset(("Cc", "Cs", "Zl", "Zp"))
_TURNING = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def can_be_shown(text: str) -> bool:
    """Whether a page may show the text as it stands, on one line."""
    return text.isprintable() or not any(map(_is_harmful, text))


def cleaned(text: str) -> str:
    """The text with blanks for what cannot be shown, none around it, and composed letters."""
    composed = unicodedata.normalize("NFC", text)
    return "".join(" " if _is_harmful(c) else c for c in composed).strip()


def _is_harmful(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category in _CATEGORIES or unicodedata.bidirectional(letter) in _TURNING

"""Scalable vector graphics as text: elements with escaped contents, colours, and numbers."""

import re
from collections.abc import Iterable

TEXT, BACKGROUND = "#1b2130", "#ffffff"
LINE, FAINT, FRAME, NEUTRAL = "#a9acb2", "#82868e", "#cdcfd2", "#edeeef"
CRITICAL, LINK = "#e5484d", "#60646b"
FONT = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
# What XML 1.0 forbids, and marks that turn the direction of the text after them.
UNFIT = re.compile(
    r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)


def plain(text: str) -> str:
    """Text from a file, fit for XML in content and in attributes alike."""
    clean = UNFIT.sub("\ufffd", text)
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        clean = clean.replace(sign, entity)
    return clean


def element(tag: str, content: str | Iterable[str] = "", /, **attributes: str | float) -> str:
    """One element; `content` is markup already, attribute values are escaped here.

    An underscore in an attribute's name stands for a hyphen; one at its end is dropped.
    """
    named = (
        (name.rstrip("_").replace("_", "-"), number(v) if isinstance(v, int | float) else plain(v))
        for name, v in attributes.items()
    )
    shown = "".join(f' {name}="{value}"' for name, value in named)
    inner = content if isinstance(content, str) else "".join(content)
    return f"<{tag}{shown}>{inner}</{tag}>" if inner else f"<{tag}{shown}/>"


def text(x: float, y: float, words: str, **attributes: str | float) -> str:
    return element("text", plain(words), x=x, y=y, **attributes)


def fitted(x: float, y: float, words: str, size: float, room: float, **more: str | float) -> str:
    """Text of a font size that is squeezed where it may be wider than `room`, whatever the font."""
    words = " ".join(words.split())
    squeezed: dict[str, str | float] = {}
    if wide(words, size) > room:
        squeezed = {"textLength": room, "lengthAdjust": "spacingAndGlyphs"}
    return text(x, y, words, font_size=size, **squeezed, **more)


def wide(words: str, size: float) -> float:
    """How wide text of a font size may be in the widest of common fonts."""
    return size * sum(0.66 if ord(sign) < 0x2E80 else 1.0 for sign in words)


def title(words: str) -> str:
    """What a viewer shows while the pointer is on the element around it."""
    return element("title", plain(words))


def document(width: float, height: float, body: Iterable[str], about: str) -> str:
    """A whole file on a white ground, with a description for those who do not see it."""
    ground = element("rect", width=width, height=height, fill=BACKGROUND)
    return "".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>\n',
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)}'
            f' {number(height)}" width="{number(width)}" height="{number(height)}"'
            f' role="img" font-family="{plain(FONT)}" fill="{TEXT}">\n',
            f"{title(about)}\n{ground}\n",
            "\n".join(body),
            "\n</svg>\n",
        )
    )


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"


def blend(under: str, over: str, share: float) -> str:
    """The colour that `over` gives on `under` at this opacity; both #rrggbb."""
    pairs = ((int(under[i : i + 2], 16), int(over[i : i + 2], 16)) for i in range(1, 7, 2))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)

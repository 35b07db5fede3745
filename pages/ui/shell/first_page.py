"""Streamlit's page with the small scripts in it, so that a browser asks for thirty, not a hundred.

Streamlit's program is a hundred modules, most of them shorter than the question for them and its
answer; those for widgets are asked for when the first widget of a kind is drawn. Here the small
ones travel with the page and an import map says so; of the larger ones those that a first picture
needs are asked for at once. All of it is Streamlit's own text, found by following its imports.
"""

import json
import re
from pathlib import Path
from urllib.parse import quote

# Modules that Streamlit loads late, by what they draw, and that the Studio page draws at first.
DRAWN_FIRST = ("Html", "BidiComponent", "Button", "PageLink", "Selectbox", "Checkbox", "Metric")
# Where the studio's server has the picture of a project, from the folder of the page.
FIRST_SIGHT = "placement/first"
# What is shorter travels with the page. Of the others a browser keeps what it has compiled, too.
SMALL_BYTES = 24_000
_IMPORT = re.compile(r'\b(from|import)"\./([\w.~-]+\.js)"')
_PRELOADED = re.compile(r'[ \t]*<link rel="modulepreload"[^>]*href="\./static/js/([^"]+)">\n?')
_ENTRY = re.compile(r'<script type="module"[^>]*src="\./static/js/([^"]+)"></script>')
# Stands in a text for the address of Streamlit's scripts, which only the browser knows: a module in
# the page has no address that others' could be relative to.
_TOP = "@"
# What needs no encoding in an address; "<" does, or a text could end the script that it stands in.
_PLAIN = "!$&'()*+,/:;=?[]{}|^` "
_SCRIPT = """<script>(() => {
  const top = document.baseURI.replace(/[^/]*([?#].*)?$/, "static/js/");
  const imports = {}, texts = TEXTS;
  for (const name in texts) imports[top + name] = "data:text/javascript;charset=utf-8," +
    texts[name].replaceAll("@", top);
  const map = document.createElement("script");
  map.type = "importmap";
  map.textContent = JSON.stringify({ imports });
  document.currentScript.after(map);
})();</script>
"""


def first_page(page: str, scripts: Path, library: str, first: str) -> str:
    """The page with its small modules, with the script of the canvas at the path `library`, and
    with the program `first` that runs before all else, as what asks for a first picture.

    It stays as it is where it is not built as this expects.
    """
    entry = _ENTRY.search(page)
    if entry is None:
        return page
    asked = [found.group(1) for found in _PRELOADED.finditer(page)]
    late = [path.name for name in DRAWN_FIRST for path in sorted(scripts.glob(f"{name}.*.js"))]
    needed = _with_imports((entry.group(1), *asked, *late), scripts)
    small = {name: text for name, text in needed.items() if _fits(text)}
    rest = _PRELOADED.sub(lambda found: "" if found.group(1) in small else found.group(0), page)
    further = [
        name for name in needed if name not in small and name not in (*asked, entry.group(1))
    ]
    links = "".join(
        f'<link rel="modulepreload" crossorigin fetchpriority="low" href="./static/js/{name}">\n'
        for name in further
    )
    texts = json.dumps({name: _encoded(text) for name, text in small.items()})
    head = _SCRIPT.replace("TEXTS", texts, 1)
    begin = rest.index(entry.group(0))
    end = rest.index("</head>")
    # The canvas waits for no other script, and a browser has time for it while it fetches these.
    canvas = f'<script type="module" async src="./{library}"></script>\n'
    # Streamlit asks for these when it draws the first of a kind; by then they have been run.
    run = "".join(f'import "./static/js/{name}";' for name in late)
    links += f'<script type="module">{run}</script>\n'
    asking = f"<script>(() => {{\n{first}}})();</script>\n"
    return f"{rest[:begin]}{asking}{head}{rest[begin:end]}{canvas}{links}{rest[end:]}"


def _with_imports(names: tuple[str, ...], scripts: Path) -> dict[str, str]:
    """The text of modules and of all that they import, directly or not, at once."""
    found: dict[str, str] = {}
    waiting = list(reversed(names))
    while waiting:
        name = waiting.pop()
        if name not in found and (scripts / name).is_file():
            found[name] = (scripts / name).read_text(encoding="utf-8")
            waiting += [other for _, other in reversed(_IMPORT.findall(found[name]))]
    return found


def _encoded(text: str) -> str:
    """A module as it stands in an address; what it imports stands below `_TOP`."""
    from_top = _IMPORT.sub(lambda found: f'{found.group(1)}"\0{found.group(2)}"', text)
    return quote(from_top, safe=_PLAIN).replace("%00", _TOP)


def _fits(text: str) -> bool:
    """Whether a module may travel with the page: it is small and never asks where it came from."""
    return len(text) < SMALL_BYTES and "import.meta" not in text and "import(" not in text

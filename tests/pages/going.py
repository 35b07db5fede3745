"""Going from page to page, and on the Studio page from tab to tab, as a person does."""

from pages.ui.steps import walk

TABS = {"run": "Run", "timeline": "Timeline", "compare": "Board", "what_if": "What if"}


def go(app, name):
    """The app on a page, or on the Studio page with what had the address `name` before.

    One that has not run yet begins there.
    """
    if name in TABS:
        _click(app, TABS[name])
    page = name if name in ("model", "devices", "lessons", "projects") else "studio"
    return app.switch_page(f"pages/{page}.py").run()


def open_tab(app, name):
    """Another tab of the dock on the page that is open."""
    _click(app, name)
    return app.run()


def opened_tab(app):
    """The tab of the dock that is open."""
    return app.session_state[_tabs(app)]


def _click(app, name):
    app.session_state[_tabs(app)] = name


def _tabs(app):
    """The widget of the dock's tabs, which is another one whenever tabs were opened unclicked."""
    number = app.session_state["kept"].get(walk.LEFT, 0) if "kept" in app.session_state else 0
    return f"{walk.DOCK}-{number}" if number else walk.DOCK

"""Going from page to page, and on the Studio page from tab to tab, as a person does."""

TABS = {"run": "Run", "timeline": "Timeline", "compare": "Board", "what_if": "What if"}


def go(app, name):
    """The app on a page, or on the Studio page with what had the address `name` before.

    One that has not run yet begins there.
    """
    if name in TABS:
        app.session_state["dock-tab"] = TABS[name]
    page = name if name in ("model", "devices", "lessons", "projects") else "studio"
    return app.switch_page(f"pages/{page}.py").run()


def open_tab(app, name):
    """Another tab of the dock on the page that is open."""
    app.session_state["dock-tab"] = name
    return app.run()

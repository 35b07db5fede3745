"""Lessons page: what there is to learn, and the way into it."""

from pages.ui.lessons import catalogue
from pages.ui.session.current import studio
from pages.ui.shell import frame

frame.around()
catalogue.show(studio())

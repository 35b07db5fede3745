"""Projects page: every project on this computer, the trash, and projects as single files."""

from pages.ui.projects import gallery
from pages.ui.session.current import studio
from pages.ui.shell import frame

frame.around()
gallery.show(studio())

"""Projects page: every project on this computer, the trash, and projects as single files."""

from pages.ui import frame, gallery
from pages.ui.current import studio

frame.around()
gallery.show(studio())

"""Place page: let a method decide, then move ops by hand and watch the prediction."""

from pages.ui.forms import place_form
from pages.ui.panels import editor, finals
from pages.ui.session.current import studio
from pages.ui.shell import frame

frame.around()
place_form.show(studio())
finals.show(studio())
editor.show()
place_form.command()

"""Work that is done side by side: on the cores of this computer, or on other computers."""

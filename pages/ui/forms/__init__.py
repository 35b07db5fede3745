"""Forms: the options of verbs and the settings of placers, asked for on the pages."""

"""The page in a browser, beside its peers: files, sides, edits and what is watched."""

"""Files to start from, as `jaxbandit new` writes them under another name; each runs as it stands."""

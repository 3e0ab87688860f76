"""The documentation site: `make site` renders the documents, as they are, with Sphinx.

Links between documents are checked: an unknown document or heading stops the build.
"""

project = "streamproof"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/site/index"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "tests/README.md"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "streamproof"
html_copy_source = False

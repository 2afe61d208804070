# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration of `make docs`. The pages are plain Markdown and have no word of Sphinx: the site's order is that of the links in
docs/README.md. Its sources begin at the repository's root, because pages link to the README and others outside docs/."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
    release = re.search(r"version : '([^']+)'", f.read())[1]

project = "Aliquot"
version = release
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["docs/**.md", "*.md", "tests/*/README.md"]
exclude_patterns = [".*", "build*", "dist"]
myst_heading_anchors = 4  # sections are linked by GitHub's names for them: scripts/check-links.sh
highlight_language = "none"

html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "sidebar_width": "250px", "body_max_width": "none", "fixed_sidebar": True}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_copy_source = html_show_sourcelink = html_show_sphinx = html_show_copyright = False
html_use_index = False
html_show_search_summary = False  # a browser does not fetch pages from disk


def toctrees(text):
    """For each section of docs/README.md a list of the pages that it links to; Sphinx shows it in the sidebar of each page."""
    folder = os.path.dirname(root_doc)
    for section in text.split("\n## ")[1:]:
        lines = [f"{' '.join(title.split())} </{os.path.normpath(os.path.join(folder, page))}>"
                 for title, page in re.findall(r"\[([^]]+)\]\(([^):#]+)\.md\)", section)]
        caption = section.split("\n")[0]
        yield f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(lines) + "\n```\n"


def on_source_read(_app, docname, source):
    if docname == root_doc:
        source[0] += "\n" + "\n".join(toctrees(source[0]))


def on_build_finished(app, exception):
    """The site's folder opens at docs/README."""
    if exception is None and app.builder.name == "html":
        with open(os.path.join(app.outdir, "index.html"), "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta charset="utf-8"><title>{project}</title><meta http-equiv="refresh" content="0; url={root_doc}.html">\n')


def setup(app):
    app.connect("source-read", on_source_read)
    app.connect("build-finished", on_build_finished)

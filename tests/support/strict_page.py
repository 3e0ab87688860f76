"""A reader of HTML pages that accepts only elements which are closed in order."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


class StrictPage(HTMLParser):
    """Reads a page strictly: every element closed in order; collects tags, text and what would be fetched."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Opens an element."""
        self.tags.append(tag)
        for name, value in attrs:
            if name in {"src", "srcset", "data", "action", "xlink:href", "poster"} or (tag == "link"):
                self.fetched.append(f"{tag} {name}={value}")
            if name == "href":
                self.links.add(value or "")
            if name == "id":
                self.ids.add(value or "")
            assert not name.startswith("on")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Closes the last open element."""
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """An element without content."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Collects text."""
        self.text.append(data)

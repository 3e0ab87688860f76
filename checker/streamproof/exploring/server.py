"""The explorer as a page of a local HTTP server.

The server listens on the loopback interface. Its addresses begin with a random token; requests with another token, or from
another page, are refused: their `Host` and `Origin` are not its own (DNS rebinding). An address holds the behaviour, GET
changes nothing, and a search is a POST that leads to the address of what it found. The only state is the check beside.

Threads read requests; the main thread answers them one by one, as signals and limits are handled there.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from streamproof.api.as_test import test_text
from streamproof.base.errors import StreamproofError, SystemFailure, UsageError, text_of
from streamproof.base.processes import can_fork
from streamproof.base.records import dataclass
from streamproof.exchange.itf.writing import itf_text
from streamproof.exploring.beside import CheckBeside
from streamproof.exploring.explorer import Explorer, Visit
from streamproof.exploring.page import check_part, explorer_page, query_of, visit_of
from streamproof.interrupts import doing
from streamproof.report.behaviour import behaviour_page

LOOPBACK = "127.0.0.1"
MOST = 1 << 14
"""Largest number of bytes of a form."""
LONGEST = 1 << 15
"""Largest number of characters of the address that a search leads to: about a thousand steps."""
IDLE = 10.0
"""Seconds after which a connection without a request is closed."""
POLL = 0.05
"""Seconds between two looks whether the server has been ended."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # without a referrer, browsers would send no Origin
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
KEYS = """\
// Keys: an element with data-key is focused if it is a field, and otherwise clicked.
"use strict";
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, select");
  if (event.key === "Escape" && field) field.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const found = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!found) return;
  event.preventDefault();
  if (found.matches("input")) found.focus();
  else found.click();
});
// The progress of a check replaces itself once a second.
async function follow() {
  const shown = document.querySelector("#check[data-live]");
  if (!shown) return;
  try {
    const answer = await fetch("check");
    if (!answer.ok) return;
    shown.outerHTML = await answer.text();
  } catch {
    shown.textContent = "The explorer has ended.";
    return;
  }
  setTimeout(follow, 1000);
}
setTimeout(follow, 1000);
"""
"""The only script of the page."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a request; `kind` is its media type, `name` that of a file to save, `to` the address to go to."""

    text: str = ""
    kind: str = "text/html"
    status: HTTPStatus = HTTPStatus.OK
    name: str = ""
    to: str = ""


class ExplorerServer(ThreadingHTTPServer):
    """A server of one explorer, at `address`. A context manager: at its end the port is free.

    Raises `SystemFailure` for a port that is in use.
    """

    daemon_threads, block_on_close = True, False

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer, self.token = explorer, secrets.token_urlsafe(24)
        self.work: SimpleQueue[tuple[Callable[[], Reply], Future[Reply]] | None] = SimpleQueue()
        self.check = CheckBeside(explorer, self._query) if can_fork() else None
        try:
            super().__init__((LOOPBACK, port), _Request)
        except (OSError, OverflowError) as error:
            self._stop_check()
            why = getattr(error, "strerror", None) or error
            raise SystemFailure(f"port {port}: {why}", remedy="choose another --port, or leave it out") from None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Its names in requests."""
        return tuple(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))

    def server_close(self) -> None:
        """Frees the port, and ends the check beside."""
        super().server_close()
        self._stop_check()

    def _stop_check(self) -> None:
        if self.check is not None:
            self.check.stop()

    def _query(self, visit: Visit) -> str:
        """The query of the address of a behaviour. Raises `UsageError` for one that is too long."""
        query = query_of(self.explorer, visit)
        if len(query) > LONGEST:
            raise UsageError("the behaviour is too long for an address", remedy="begin at a later state")
        return query

    def address(self, visit: Visit) -> str:
        """The address of the page of a behaviour."""
        query = self._query(visit)
        return f"http://{self.hosts[0]}/{self.token}/" + (f"?{query}" if query else "")

    def answer(self) -> None:
        """Answers requests, in this thread, until None is put into `work`, or an exception such as `KeyboardInterrupt`."""
        Thread(target=self.serve_forever, args=(POLL,), name="requests", daemon=True).start()
        try:
            while (given := self.work.get()) is not None:
                work, future = given
                try:
                    future.set_result(work())
                except Exception as error:
                    future.set_exception(error)
                    with doing("answering requests"):
                        pass  # an error has left a stage, which would be named when this one is interrupted
        finally:
            self.shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports an error other than that of a connection which the browser has closed."""
        error = sys.exception()
        if not isinstance(error, OSError):
            sys.stderr.write(f"streamproof: a request failed: {type(error).__name__}: {error}\n")

    # --- in the main thread

    def get(self, name: str, query: str) -> Reply:
        """The answer to a GET of a page or a file."""
        visit = visit_of(self.explorer, query)
        system, trace = self.explorer.system, visit.trace
        match name:
            case "":
                return Reply(explorer_page(self.explorer, visit, check=self.check))
            case "trace.itf.json":
                return Reply(
                    itf_text(system, trace, visit.shows(system), self.explorer.origin), "application/json", name=name
                )
            case "behaviour.html":
                return Reply(behaviour_page(system, trace, visit.shows(system)), name=name)
            case "test.py":
                return Reply(
                    test_text(self.explorer.selection, system, trace), "text/x-python", name="test_behaviour.py"
                )
            case _:
                return Reply("not found", "text/plain", HTTPStatus.NOT_FOUND)

    def find(self, query: str, form: Mapping[str, str]) -> Reply:
        """The answer to a search: the address of what it found, or the page with the reason why there is none."""
        visit, text = visit_of(self.explorer, query), form.get("text", "")
        try:
            goal = form.get("goal", "")
            if goal in ("check", "stop") and self.check is not None:
                found = visit
                self.check.start() if goal == "check" else self.check.stop()
            else:
                found = search(self.explorer, visit, goal, text)
            address = self.address(found)
        except StreamproofError as error:
            message = "; ".join(filter(None, (error.message, error.remedy)))
            typed = text if form.get("goal") == "state" else ""
            return Reply(explorer_page(self.explorer, visit, check=self.check, message=message, text=typed))
        return Reply(to=address, status=HTTPStatus.SEE_OTHER)


def search(explorer: Explorer, visit: Visit, goal: str, text: str) -> Visit:
    """The behaviour to a goal: a `state` with a condition, a `violation` of a property, an `action`, or `deep`."""
    match goal:
        case "state":
            return explorer.find(visit, text)
        case "violation":
            return explorer.violate(text or None)
        case "action":
            return explorer.reach(visit, text or None)
        case "deep":
            return explorer.deep(visit)
        case _:
            raise UsageError(f"no goal {goal!r}")


class _Request(BaseHTTPRequestHandler):
    """One connection, in a thread of its own."""

    server: ExplorerServer
    timeout = IDLE
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "streamproof", ""
    error_content_type = "text/plain"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        """Answers a page or a file."""
        name, query = self._own(posted=False)
        if name == "keys.js":
            self._send(Reply(KEYS, "text/javascript"))
        elif name == "check" and self.server.check is not None:
            self._send(Reply(check_part(self.server.check.progress)))
        elif name is not None:
            self._send(self._in_main_thread(lambda: self.server.get(name, query)))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answers a search."""
        name, query = self._own(posted=True)
        length = self.headers.get("Content-Length", "")
        if name is None:
            return
        if name != "find" or not length.isdecimal() or int(length) > MOST:
            self.close_connection = True
            self.send_error(HTTPStatus.NOT_FOUND if name != "find" else HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        given = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace"), keep_blank_values=True)
        form = {key: values[0] for key, values in given.items()}
        self._send(self._in_main_thread(lambda: self.server.find(query, form)))

    def _own(self, *, posted: bool) -> tuple[str | None, str]:
        """The path after the token, and the query with its mark; None for a foreign request, which it answers."""
        url = urlsplit(self.path)
        token, name = (*url.path.split("/", 2)[1:], "", "")[:2]
        host, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        foreign = len(host) != 1 or host[0] not in self.server.hosts
        foreign = foreign or ((origin is not None or posted) and origin != f"http://{host[0]}")
        if foreign or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self.close_connection = True
            self.send_error(HTTPStatus.FORBIDDEN, "not an address of this explorer: the token is new with every start")
            return None, ""
        return name, f"?{url.query}"

    def _in_main_thread(self, work: Callable[[], Reply]) -> Reply:
        future: Future[Reply] = Future()
        self.server.work.put((work, future))
        try:
            return future.result()
        except StreamproofError as error:
            text = "\n".join(filter(None, (error.message, error.remedy, "Go back, or begin anew.")))
            return Reply(text, "text/plain", HTTPStatus.UNPROCESSABLE_ENTITY)
        except Exception as error:
            text = f"internal error: {type(error).__name__}: {text_of(error)}"
            sys.stderr.write(f"streamproof: {text}\n")
            return Reply(text, "text/plain", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _send(self, answer: Reply) -> None:
        body = answer.text.encode("utf-8", "backslashreplace")
        self.send_response(answer.status)
        headers = {"Content-Type": f"{answer.kind}; charset=utf-8", "Content-Length": str(len(body)), **_HEADERS}
        if answer.name:
            headers["Content-Disposition"] = f'attachment; filename="{answer.name}"'
        if answer.to:
            headers["Location"] = answer.to
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No log of requests."""

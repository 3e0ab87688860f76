"""Debian's Chromium without a window, driven over the pipes of its debugging protocol: no further package is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from pathlib import Path
from typing import Any, Self

PROGRAM = shutil.which("chromium")
PATIENCE = 30.0
"""Seconds after which a page counts as one that does not come."""


class Chromium:
    """A browser with one page; a context manager."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None, "the caller skips"
        reading, its_output = os.pipe()
        its_input, self._input = os.pipe()
        words = (
            PROGRAM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
        )
        # The protocol is on the descriptors 3 and 4.
        shell = f'exec 3<&{its_input} 4>&{its_output}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *words],
            pass_fds=(its_input, its_output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_input)
        os.close(its_output)
        self._output = os.fdopen(reading, "rb")
        self._number, self._session = 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()
        os.close(self._input)

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a method of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._input, json.dumps(message).encode() + b"\0")
        while True:
            text = bytearray()
            while (byte := self._output.read(1)) not in (b"\0", b""):
                text += byte
            assert text, "the browser has ended"
            answer = json.loads(text)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until an expression in the page is true."""
        end = time.monotonic() + PATIENCE
        while not self.js(expression):
            assert time.monotonic() < end, f"{expression} stays false: {self.js('document.body.innerText')}"
            time.sleep(0.02)

    def open(self, address: str) -> None:
        """Opens a page."""
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def key(self, key: str) -> None:
        """Presses a key, which may be a character."""
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        codes = {"windowsVirtualKeyCode": 13} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **codes)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **codes)

    def resize(self, width: int, *, dark: bool) -> None:
        """The width of the window in pixels, and the colours that the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=colours)

    def screenshot(self, file: Path) -> None:
        """Writes the page as PNG."""
        file.write_bytes(b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

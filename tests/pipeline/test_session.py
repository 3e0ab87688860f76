"""Sessions: what is missing is said plainly, what is running is joined and left alone."""

from __future__ import annotations

import signal
import socket
import socketserver
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamproof.base.errors import SystemFailure
from streamproof.pipeline.session import _stop, java_version, spark_failures, spark_session


def _java(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    (folder / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    (folder / "java").chmod(0o755)


@pytest.mark.parametrize(("text", "number"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_java_is_found_on_the_path_and_by_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, number: int
) -> None:
    """JAVA_HOME wins over PATH, as it does in Spark's own scripts."""
    _java(tmp_path / "home" / "bin", text)
    _java(tmp_path / "path", "99")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_version() == number
    monkeypatch.delenv("JAVA_HOME")
    assert java_version() == 99


def test_missing_and_old_java_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence and a remedy, not a stack trace of the JVM."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemFailure, match=r"^Spark needs Java, but `java` is not on PATH") as none:
        java_version()
    assert "apt-get install openjdk-17-jre-headless" in none.value.remedy
    _java(tmp_path / "bin", "1.8.0_392")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with pytest.raises(SystemFailure, match=r"^Spark needs Java 17 or later, and .*/java is Java 8"):
        java_version()


def test_missing_pyspark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is an optional part of the installation."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with (
        pytest.raises(SystemFailure, match=r"^this needs Apache Spark, and Python cannot import it") as missing,
        spark_session(),
    ):
        pass
    assert "pip install pyspark into the environment of streamproof" in missing.value.remedy


@pytest.mark.spark
def test_a_running_session_is_joined_and_kept(spark: Any) -> None:
    """Settings of the block stay in the block, and its end stops nothing that it did not start."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with spark_session() as joined:
        assert joined.sparkContext is spark.sparkContext
        assert joined.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_another_master_than_the_running_one_is_refused(spark: Any) -> None:
    """A process has one Spark: asking for a cluster beside it must not silently run here."""
    with (
        pytest.raises(
            SystemFailure, match=r"^this process already runs Spark on local\[2\], so it cannot use spark://elsewhere:1"
        ),
        spark_session("spark://elsewhere:1"),
    ):
        pass


@pytest.mark.spark
def test_workers_run_the_driver_s_interpreter(spark: Any) -> None:
    """Another interpreter would lack this package."""

    def interpreter(_: int) -> str:
        import sys

        return sys.executable

    assert spark.sparkContext.parallelize([0], 1).map(interpreter).collect() == [sys.executable]


@pytest.mark.spark
def test_what_spark_raises_becomes_one_message(spark: Any) -> None:
    """A failure inside Spark names what was being done, and is no stack trace of the JVM."""
    with (
        pytest.raises(SystemFailure, match=r"^Spark failed while dividing: \[DIVIDE_BY_ZERO\]") as failed,
        spark_failures("dividing"),
    ):
        spark.sql("SELECT 1 / (id - id) FROM range(1)").collect()
    assert "\n\tat " not in failed.value.message


@pytest.mark.spark
def test_interrupts_stay_the_program_s_own(spark: Any) -> None:
    """Ctrl-C raises KeyboardInterrupt where the program waits, not a call into a JVM that is busy with another."""
    assert getattr(signal.getsignal(signal.SIGINT), "__module__", None) != "pyspark.core.context"


@pytest.mark.long
@pytest.mark.spark
def test_a_master_that_is_none_is_refused_with_what_spark_said() -> None:
    """What the JVM writes while it starts reaches the user only when it fails, and then as one line."""
    program = (
        "from streamproof.pipeline.session import spark_session\n"
        "from streamproof.base.errors import SystemFailure\n"
        "try:\n"
        "    with spark_session('nonsense'): pass\n"
        "except SystemFailure as failure:\n"
        "    print(failure)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
    said, remedy = done.stdout.splitlines()
    assert said.startswith("Spark could not start on master nonsense: ")
    assert said.endswith("Master must either be yarn or start with spark, k8s, or local")
    assert remedy == "  masters look like local[*], local[4], spark://host:7077, yarn or k8s://https://host:443"


def test_a_master_that_does_not_answer_is_refused_at_once(tmp_path: Path) -> None:
    """A cluster that is not there is named, before Spark tries for a minute."""
    words = ["validate", str(tmp_path), "--master", "spark://127.0.0.1:1"]
    done = subprocess.run([sys.executable, "-m", "streamproof", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 153
    assert "no Spark master at spark://127.0.0.1:1: Connection refused" in done.stderr


def test_a_connection_that_ends_while_spark_is_stopped_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The JVM, interrupted in a job, closes its connection to the server of accumulators before the server is closed."""

    class Ended(socketserver.BaseRequestHandler):
        """As PySpark reads from a connection that is closed."""

        def handle(self) -> None:
            raise EOFError

    with socketserver.TCPServer(("127.0.0.1", 0), Ended) as server:

        def closed() -> None:
            socket.create_connection(server.server_address).close()
            server.handle_request()

        closed()
        assert "EOFError" in capsys.readouterr().err
        _stop(SimpleNamespace(_accumulatorServer=server, stop=closed))  # type: ignore[arg-type]
        assert capsys.readouterr().err == ""

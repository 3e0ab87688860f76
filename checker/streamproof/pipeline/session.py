"""Spark sessions: embedded and quiet by default, any other master on request.

A running session is joined, never stopped or reconfigured: the caller gets a sibling session of the same context with
its own SQL settings. A session started here is stopped when the block ends.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import SystemFailure

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
"""The default master: every core of this machine, inside this process's own JVM."""

Progress = Callable[[str], None]
"""Receives one line of progress, about once a second, from any thread."""

_OLDEST_JAVA = 17  # Spark 4 refuses to start on anything older, with a class-version stack trace.
_FEW_CORES = 4
ATTEMPTS = 3
"""Maximum number of attempts of a task whose worker dies."""
CONNECT_SECONDS = 5.0
SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable that keeps the working folder, in which Spark's helpers start, off Python's path."""
_LOG4J = Path(__file__).with_name("log4j2-quiet.properties")


@contextmanager
def spark_session(master: str = LOCAL, *, app: str = "streamproof") -> Iterator[SparkSession]:
    """A Spark session on `master`, for the duration of the block.

    Raises `SystemFailure` if PySpark or Java is missing, if Spark cannot start, or if this process already runs Spark
    on another master.
    """
    require_pyspark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None and SparkContext._active_spark_context is not None:
        running = SparkSession(SparkContext._active_spark_context)
    if running is not None:
        # Spark's master may have the number of failures of a task behind that of processors.
        found = re.sub(r"^(local\[[^,]*),\d+\]$", r"\1]", running.sparkContext.master or LOCAL)
        if found != master and not (is_local(found) and is_local(master)):
            raise SystemFailure(
                f"this process already runs Spark on {found}, so it cannot use {master}",
                remedy="stop the running session first, or use the same master",
            )
        yield _with_sql_settings(running.newSession())
        return

    with _quiet_py4j():
        session = _start(master, app)
        try:
            yield session
        finally:
            _stop(session.sparkContext)


def _stop(context: SparkContext) -> None:
    """Stops Spark. The server that receives accumulators would print a stack trace when the JVM, interrupted in a job, closes
    its connection first."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    context.stop()


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """Converts Spark's exceptions in the block to a `SystemFailure` that names the work."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as failure:
        said = [line.strip() for line in str(failure).splitlines() if line.strip()] or [type(failure).__name__]
        raise SystemFailure(
            f"Spark failed while {doing}: {said[0][:400]}",
            remedy="a worker that died usually ran out of memory: use fewer cores, for instance --master 'local[1]'",
        ) from failure


@contextmanager
def reporting(context: SparkContext, progress: Progress | None, doing: str, *, every: float = 1.0) -> Iterator[None]:
    """Reports `doing` at once, then every `every` seconds the number of finished tasks of the running stages."""
    if progress is None:
        yield
        return
    progress(doing)
    over = threading.Event()
    tracker = context.statusTracker()

    def tick() -> None:
        while not over.wait(every):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage)
            total = sum(stage.numTasks for stage in stages if stage)
            if total:
                progress(f"{doing}: {done} of {total} tasks")

    ticker = threading.Thread(target=tick, name="spark-progress", daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()


@contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Suppresses the stack traces that Py4J logs when a call is interrupted."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    before = own.level
    root.addFilter(_not_py4j)
    own.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        root.removeFilter(_not_py4j)
        own.setLevel(before)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restores the handler of SIGINT replaced by PySpark, which calls the JVM from within an unfinished call to it."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # A handler that was not installed from Python cannot be restored, and only the main thread can set one.
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Prevents processes started in the block, and their children, from importing modules from the working folder."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def _not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def require_pyspark() -> None:
    """Raises `SystemFailure` with installation instructions unless PySpark can be imported."""
    try:
        importlib.import_module("pyspark.sql")
    except ImportError as missing:
        raise SystemFailure(
            f"this needs Apache Spark, and Python cannot import it ({missing})",
            remedy=f"pip install pyspark into the environment of streamproof; it also needs Java {_OLDEST_JAVA} or later",
        ) from missing


def is_local(master: str) -> bool:
    """Whether a master is Spark inside this process."""
    return master == "local" or master.startswith("local[")


def _start(master: str, app: str) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    java_version()
    expect_master(master)
    # Workers must run the driver's interpreter: another one would lack this package or pickle differently. On a cluster
    # the same path may not exist, so there, and only there, the user's own PYSPARK_PYTHON takes precedence.
    if is_local(master) or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf()
    for key, value in _settings(master, app).items():
        conf.set(key, value)
    # The JVM writes start-up notices to stderr whatever its logging level; they are kept for the failure message only.
    notices: Any = tempfile.TemporaryFile()  # noqa: SIM115 (the JVM holds it for its whole life)
    try:
        with _safe_path():  # for helpers started by the JVM itself
            gateway = None if SparkContext._gateway else launch_gateway(conf, {"stderr": notices})  # type: ignore[no-untyped-call]
        with _own_interrupts():
            return _with_sql_settings(SparkSession(SparkContext(conf=conf, gateway=gateway)))
    except Exception as failure:
        # Spark can stop a new context itself, when it gives up on the master.
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
        notices.seek(0)
        said = notices.read().decode("utf-8", "replace").splitlines() or str(failure).splitlines()
        reason = next((line for line in said if "ERROR" in line or "Exception" in line), said[0])
        raise SystemFailure(
            f"Spark could not start on master {master}: {reason.strip()[:400]}",
            remedy="masters look like local[*], local[4], spark://host:7077, yarn or k8s://https://host:443",
        ) from failure


def expect_master(master: str) -> None:
    """Raises `SystemFailure` if none of a standalone cluster's masters accepts a connection: Spark would try for a minute."""
    if not master.startswith("spark://"):
        return
    import socket

    why: OSError | None = None
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
            return
        except ValueError:
            return  # Spark reports the error itself
        except OSError as failure:
            why = failure
    raise SystemFailure(
        f"no Spark master at {master}: {(why and why.strerror) or why}",
        remedy="check the address, and that it is running",
    )


def _retrying(master: str) -> str:
    """An embedded master that retries a task whose worker has died, as clusters do; by default it fails at once."""
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    return f"{master[:-1]},{ATTEMPTS}]" if is_local(master) and "," not in master else master


def _settings(master: str, app: str) -> dict[str, str]:
    java = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"
    if is_local(master) and (os.cpu_count() or 1) <= _FEW_CORES:
        # Most embedded runs are over before optimised code pays: measured, this halves the JVM's processor time.
        java += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.master": _retrying(master),
        "spark.app.name": app,
        "spark.pyspark.python": os.environ["PYSPARK_PYTHON"],
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": java,
        f"spark.executorEnv.{SAFE_PATH}": "1",
    }
    if is_local(master):
        # Nothing outside this machine needs to reach an embedded Spark, and host names often do not resolve.
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings


def _with_sql_settings(spark: SparkSession) -> SparkSession:
    """Settings that change results (time zone) or speed on small data, set on this session alone."""
    context = spark.sparkContext
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    # Aggregates are small, and Spark's default of 200 parts costs more than it divides. A cluster's executors may not
    # have registered yet, hence the least number there.
    least = 2 if is_local(context.master or LOCAL) else 8
    spark.conf.set("spark.sql.shuffle.partitions", str(max(least, context.defaultParallelism)))
    return spark


def java_version() -> int:
    """The major version of the Java that Spark would start; `SystemFailure` when there is none or it is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    remedy = (
        f"Install Java {_OLDEST_JAVA} or later (Debian and Ubuntu: apt-get install openjdk-{_OLDEST_JAVA}-jre-headless) "
        "and see that `java` is on PATH or that JAVA_HOME names it."
    )
    if java is None:
        raise SystemFailure("Spark needs Java, but `java` is not on PATH and JAVA_HOME is not set", remedy=remedy)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as failure:
        raise SystemFailure(f"Spark needs Java, and `{java} -version` failed: {failure}", remedy=remedy) from failure
    # "17.0.15" means 17; the old scheme "1.8.0_392" means 8.
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < _OLDEST_JAVA:
        version = found[1] if found else f"of unknown version ({said.strip()[:80]})"
        raise SystemFailure(f"Spark needs Java {_OLDEST_JAVA} or later, and {java} is Java {version}", remedy=remedy)
    return int(found[1])

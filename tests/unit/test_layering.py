"""The import contracts of pyproject.toml refuse what the architecture forbids and accept what it allows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shares import share

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

MODULES = (
    "checker/streamproof/__init__.py",
    "checker/streamproof/__main__.py",
    "checker/streamproof/model_registry.py",
    *(
        f"checker/streamproof/{layer}/__init__.py"
        for layer in (
            "base",
            "system",
            "transform",
            "language",
            "explicit",
            "symbolic",
            "traces",
            "exchange",
            "conformance",
            "pipeline",
            "report",
            "sweep",
            "certify",
            "agree",
            "any",
            "any/certify",
            "any/engine",
            "cli",
        )
    ),
    "checker/streamproof/any/ground_induction.py",
    "checker/streamproof/any/ranking.py",
    "checker/streamproof/any/readings.py",
    "checker/streamproof/conformance/flink/__init__.py",
    "checker/streamproof/conformance/binding.py",
    "checker/streamproof/certify/verifier.py",
    "checker/streamproof/certify/verifier_induction.py",
    "checker/streamproof/any/certify/verifier.py",
    *(
        f"checker/streamproof/any/certify/{name}.py"
        for name in (
            "obligations",
            "formulas",
            "smt_conditions",
            "smt_script",
            "smt_sums",
            "smt_terms",
            "solvers",
            "solver_process",
        )
    ),
    "models/streamproof_models/__init__.py",
    "models/streamproof_models/credit/__init__.py",
    "models/streamproof_models/credit/machine.py",
    "specs/streamproof_specs/__init__.py",
    "specs/streamproof_specs/credit/__init__.py",
    "specs/streamproof_specs/credit/properties.py",
    "specs/streamproof_specs/failover/__init__.py",
    "specs/streamproof_specs/failover/flink/__init__.py",
    "specs/streamproof_specs/flink/__init__.py",
    "specs/streamproof_specs/failover/flink/binding.py",
    "specs/streamproof_specs/runtime/__init__.py",
    "runtime/streamproof_runtime/__init__.py",
    "runtime/streamproof_runtime/processes/__init__.py",
    "runtime/streamproof_runtime/simulator/__init__.py",
)
SOURCE_ROOTS = ("checker", "models", "specs", "runtime")


def lint(skeleton: Path) -> tuple[int, str]:
    """Exit code and output of import-linter on the packages under `skeleton`, with this project's contracts."""
    shutil.copy(ROOT / "pyproject.toml", skeleton)
    path = os.pathsep.join(str(skeleton / root) for root in SOURCE_ROOTS)
    done = subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=skeleton,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """Empty packages in the project's shape, with every import between them that the architecture allows at once."""
    allowed = {
        "checker/streamproof/__init__.py": "import streamproof.language, streamproof.explicit, streamproof.symbolic",
        "checker/streamproof/__main__.py": "import streamproof.cli",
        "checker/streamproof/system/__init__.py": "import streamproof.base",
        "checker/streamproof/transform/__init__.py": "import streamproof.system, streamproof.base",
        "checker/streamproof/language/__init__.py": "import streamproof.transform",
        "checker/streamproof/explicit/__init__.py": "import streamproof.system",
        "checker/streamproof/symbolic/__init__.py": "import streamproof.system",
        "checker/streamproof/traces/__init__.py": "import streamproof.system",
        "checker/streamproof/exchange/__init__.py": "import streamproof.system, streamproof.traces",
        "checker/streamproof/conformance/__init__.py": "import streamproof.exchange, streamproof.explicit",
        "checker/streamproof/pipeline/__init__.py": "import streamproof.conformance, streamproof.explicit",
        "checker/streamproof/report/__init__.py": "import streamproof.conformance, streamproof.pipeline",
        "checker/streamproof/sweep/__init__.py": "import streamproof.report, streamproof.pipeline, streamproof.explicit",
        "checker/streamproof/model_registry.py": "import streamproof, streamproof.language",
        "checker/streamproof/certify/__init__.py": "import streamproof.explicit, streamproof.symbolic, streamproof.exchange",
        "checker/streamproof/certify/verifier.py": "import streamproof.system",
        "checker/streamproof/agree/__init__.py": "import streamproof.explicit, streamproof.symbolic, streamproof.exchange",
        "checker/streamproof/any/certify/verifier.py": "import streamproof.certify.verifier",
        "checker/streamproof/cli/__init__.py": "import streamproof.report, streamproof.model_registry, streamproof.certify",
        "models/streamproof_models/credit/machine.py": "import streamproof",
        "specs/streamproof_specs/credit/properties.py": "import streamproof, streamproof_models.credit.machine",
        "specs/streamproof_specs/failover/flink/binding.py": "import streamproof.conformance, streamproof.conformance.flink",
    }
    for module in MODULES:
        file = tmp_path / module
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(allowed.get(module, "") + "\n", encoding="utf-8")
    return tmp_path


def test_every_import_the_architecture_allows_is_accepted(skeleton: Path) -> None:
    """All contracts are kept while each package imports everything it may."""
    code, output = lint(skeleton)
    assert (code, "Contracts: 10 kept, 0 broken." in output) == (0, True), output


@pytest.mark.parametrize(
    ("module", "imports", "contract"),
    share(
        [
            ("checker/streamproof/system/deep.py", "streamproof.language", "inside the checker"),
            ("checker/streamproof/system/deep.py", "streamproof", "inside the checker"),
            ("checker/streamproof/system/deep.py", "streamproof.transform", "inside the checker"),
            ("checker/streamproof/base/deep.py", "streamproof.system", "inside the checker"),
            ("checker/streamproof/symbolic/deep.py", "streamproof.any", "inside the checker"),
            (
                "checker/streamproof/any/certify/smt_terms.py",
                "streamproof.any.engine",
                "shares only what a system means",
            ),
            ("specs/streamproof_specs/failover/flink/deep.py", "streamproof.system", "but the public doors"),
            ("checker/streamproof/language/deep.py", "streamproof.explicit", "inside the checker"),
            ("checker/streamproof/explicit/deep.py", "streamproof.symbolic", "inside the checker"),
            ("checker/streamproof/symbolic/deep.py", "streamproof.explicit", "inside the checker"),
            ("checker/streamproof/symbolic/deep.py", "streamproof.traces", "inside the checker"),
            ("checker/streamproof/traces/deep.py", "streamproof.exchange", "inside the checker"),
            ("checker/streamproof/conformance/deep.py", "streamproof.cli", "inside the checker"),
            ("checker/streamproof/certify/verifier.py", "streamproof.explicit", "shares only what a system means"),
            ("checker/streamproof/any/certify/verifier.py", "streamproof.symbolic", "shares only what a system means"),
            (
                "checker/streamproof/any/certify/obligations.py",
                "streamproof.symbolic",
                "shares only what a system means",
            ),
            ("checker/streamproof/any/certify/smt_sums.py", "streamproof.language", "shares only what a system means"),
            (
                "checker/streamproof/certify/verifier.py",
                "streamproof.model_registry",
                "shares only what a system means",
            ),
            ("checker/streamproof/certify/verifier.py", "streamproof.exchange", "shares only what a system means"),
            ("checker/streamproof/agree/deep.py", "streamproof.certify", "inside the checker"),
            ("checker/streamproof/unplaced/__init__.py", "streamproof.system", "inside the checker"),
            ("checker/streamproof/exchange/deep.py", "streamproof.explicit", "exchange knows system and traces only"),
            ("checker/streamproof/cli/deep.py", "streamproof_models", "does not know the bundled models"),
            ("checker/streamproof/cli/deep.py", "streamproof_runtime", "does not know the bundled models"),
            ("models/streamproof_models/deep.py", "streamproof.language", "nothing of ours but the public door"),
            ("models/streamproof_models/deep.py", "streamproof_specs", "nothing of ours but the public door"),
            ("specs/streamproof_specs/deep.py", "streamproof_runtime", "not the runtime"),
            ("specs/streamproof_specs/flink/deep.py", "streamproof.conformance.binding", "but the public doors"),
            ("specs/streamproof_specs/flink/deep.py", "streamproof.system", "but the public doors"),
            ("runtime/streamproof_runtime/deep.py", "streamproof.system", "shares no code"),
            ("runtime/streamproof_runtime/deep.py", "streamproof_models", "shares no code"),
            ("runtime/streamproof_runtime/processes/deep.py", "streamproof_runtime.simulator", "do not simulate"),
        ],
        3,
    ),
)
def test_a_forbidden_import_breaks_its_contract(skeleton: Path, module: str, imports: str, contract: str) -> None:
    """One import against the architecture, anywhere inside a package, is reported under the contract it breaks."""
    file = skeleton / module
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"def later() -> None:\n    import {imports}\n", encoding="utf-8")
    code, output = lint(skeleton)
    broken = [line for line in output.splitlines() if " BROKEN" in line]
    assert code == 1, output
    assert any(contract in line for line in broken), output

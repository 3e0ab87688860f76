"""``streamproof prove --rank``: prints proofs of temporal properties by ranking functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamproof.any.ranked import RankedProof, prove_ranked
from streamproof.base.options import MOST_PATIENCE, SearchOptions
from streamproof.cli.answer import Request, certificate_json, print_certificate
from streamproof.cli.ticking import Ticking


def answer_ranked(
    request: Request,
    free: Sequence[str],
    rank: str,
    options: SearchOptions,
    certificate: Path | None = None,
) -> int:
    """Prove the properties of `options` by `rank`, or a discovered ranking function if it is empty, and print the result."""
    with Ticking(live=not request.output.quiet) as progress:
        result = prove_ranked(
            request.selection,
            free,
            tuple(options.properties or ()),
            rank,
            read=request.system,
            query_limit=options.query_limit,
            time_limit=None if options.time_limit is None else min(options.time_limit, MOST_PATIENCE),
            on_progress=progress,
        )
    more = _more(result)
    if certificate is not None:
        from streamproof.api.certificates import certify_ranked

        with Ticking(live=not request.output.quiet) as progress:
            written = certify_ranked(certificate, request.selection, free, result, progress)
        more["certificate"] = certificate_json(written) if written.claims else None
    code = request.answer(result.system, result, more)
    if certificate is not None:
        print_certificate(written, request.selection, request.output.json_to, lack="")
    return code


def _more(result: RankedProof) -> dict[str, Any]:
    """The part of the JSON that only proofs by ranking functions have."""
    return {
        "ranks": [
            {
                "property": a.finding.property,
                "rank": a.rank,
                "helpful": list(a.helpful),
                "invariants": list(a.invariants),
            }
            for a in result.ranks
            if a.rank
        ],
        "queries": sum(a.queries for a in result.ranks),
    }

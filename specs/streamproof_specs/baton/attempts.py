"""The ways of batons around the loops of a graph, for the lemmas of `counts.py`."""

from __future__ import annotations

from functools import cached_property, lru_cache

from streamproof_models.baton.machine import Routes, TerminationAttempt
from streamproof_models.scopes.graph import StreamScope

Place = tuple[str, TerminationAttempt]
"""A channel, and a kind of baton that it carries."""


class Ways:
    """The places of the batons of one scope's attempts, in the order in which an attempt comes to them."""

    def __init__(self, routes: Routes, scope: StreamScope) -> None:
        """`following` has for each place those to which the receiver sends its answer; it is empty where a head decides."""
        self.routes, self.scope, self.heads = routes, scope, routes.heads_of(scope)
        self.starts = {h: routes.onward(h, routes.own(h)[0]) for h in self.heads}
        self.following: dict[Place, tuple[Place, ...]] = {}
        todo = [p for places in self.starts.values() for p in places]
        for place in todo:  # grows meanwhile
            if place not in self.following:
                self.following[place] = self._answer(*place)
                todo += self.following[place]
        self.places = tuple(self.following)

    def _answer(self, channel: str, baton: TerminationAttempt) -> tuple[Place, ...]:
        task = self.routes.links[channel].target
        answer = self.routes.answer(channel, baton)
        if answer is None and baton.turn == 1 and not self.routes.is_only_head(task):
            answer = self.routes.own(task)[1]
        return () if answer is None else self.routes.onward(task, answer)

    def receiver(self, place: Place) -> str:
        """The subtask that receives the baton of a place."""
        return self.routes.links[place[0]].target

    @cached_property
    def after(self) -> dict[Place, tuple[Place, ...]]:
        """For each place those that an attempt comes to behind it, before a head decides."""
        found = {}
        for place in self.places:
            behind = dict.fromkeys(self.following[place])
            todo = list(behind)
            for p in todo:  # grows meanwhile
                todo += [q for q in self.following[p] if q not in behind]
                behind.update(dict.fromkeys(self.following[p]))
            found[place] = tuple(behind)
        return found

    @cached_property
    def leading(self) -> dict[str, tuple[Place, ...]]:
        """For each head the places from which batons come to its decisions."""
        final = {h: {p for p in self.places if not self.following[p] and self.receiver(p) == h} for h in self.heads}
        return {h: tuple(p for p in self.places if p in final[h] or final[h] & {*self.after[p]}) for h in self.heads}

    @cached_property
    def ways(self) -> dict[tuple[str, str], tuple[tuple[Place, ...], ...]]:
        """For each two heads the ways from an attempt of the first to a decision of the second."""
        found: dict[tuple[str, str], tuple[tuple[Place, ...], ...]] = {}
        todo: list[tuple[str, tuple[Place, ...]]] = [(h, (p,)) for h in self.heads for p in self.starts[h]]
        for head, way in todo:  # grows meanwhile
            todo += [(head, (*way, p)) for p in self.following[way[-1]]]
            if not self.following[way[-1]]:
                pair = (head, self.receiver(way[-1]))
                found[pair] = (*found.get(pair, ()), way)
        return found

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Different heads with a way from the first to the second."""
        return tuple((i, j) for i, j in self.ways if i != j)

    @cached_property
    def cut(self) -> tuple[Place, ...]:
        """For each channel the place at which an attempt first comes to it."""
        return tuple(p for p in self.places if not any(q[0] == p[0] and p in self.after[q] for q in self.places))

    @cached_property
    def entries(self) -> dict[str, Place]:
        """For each operator in the loop except its heads a place at which an attempt first comes to it."""
        found: dict[str, Place] = {}
        for p in self.places:
            o = self.receiver(p)
            if o not in self.heads and not any(self.receiver(q) == o and p in self.after[q] for q in self.places):
                found.setdefault(o, p)
        return found

    def away(self, head: str) -> tuple[Place, ...]:
        """The places of a baton between a head and the same head: an inner one, or one of several that confirm."""
        own, scope, links = self.routes.own(head), self.routes.scope(head), self.routes.links
        trips = [(self.starts[head], own[0])] if head in self.heads and len(own) > 1 else []
        if head not in self.heads:
            into = [p for p in self.places if self.receiver(p) == head and not links[p[0]].feedback]
            trips = [(self.following[p], p[1].entering(scope)) for p in into]
        found: list[Place] = []
        for sent, returned in trips:
            back = {p for p in self.places if self.receiver(p) == head and p[1] == returned}
            reached = {*sent, *(q for p in sent for q in self.after[p])}
            found += [p for p in self.places if p in reached and (p in back or back & {*self.after[p]})]
        return tuple(found)


@lru_cache(maxsize=64)
def all_ways(routes: Routes) -> tuple[Ways, ...]:
    """The ways of each scope's attempts."""
    return tuple(Ways(routes, scope) for scope in routes.graph.scopes)


@lru_cache(maxsize=64)
def ways_away(routes: Routes) -> dict[str, tuple[Place, ...]]:
    """For each head the places of batons that it has sent and waits for, except in attempts of an only head."""
    return {
        h: tuple(p for w in all_ways(routes) if w.scope.contains(routes.scope(h)) for p in w.away(h))
        for h in routes.heads
    }

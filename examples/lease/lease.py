"""Leases with fencing tokens: a client that pauses for longer than its lease cannot overwrite what came after it."""

from streamproof import Array, Model, Option, Range, State, action, invariant, require


class Lease(Model):
    """Each grant has a new token; the storage refuses tokens older than the newest that it has seen."""

    clients: int = 2
    tokens: int = 3
    instance_bounds = ("tokens",)  # limits this instance, not the protocol

    def state(self):
        """Who has the lease, who believes so, and what the storage has."""
        token = Range(0, self.tokens)
        return State(
            holder=Option(Range(0, self.clients - 1)),
            issued=token,
            held=Array(self.clients, token),  # what each client believes to hold; 0 is no token
            newest=token,  # that the storage has seen
            stored=token,  # under which the value was written
        )

    @action(client="clients")
    def grant(self, s, client):
        """The lease is free; the client gets it with the next token."""
        require(s.holder is None and s.issued < self.tokens)
        s.issued += 1
        s.holder = client
        s.held[client] = s.issued

    @action
    def expire(self, s):
        """The time of the lease is over. Its client does not hear of it."""
        require(s.holder is not None)
        s.holder = None

    @action(client="clients", token=lambda m: range(1, m.tokens + 1))
    def write(self, s, client, token):
        """The storage accepts a write."""
        require(s.held[client] == token and self.accepts(s, token))
        s.stored = token
        s.newest = max(s.newest, token)

    @action(client="clients", token=lambda m: range(1, m.tokens + 1))
    def refuse(self, s, client, token):
        """The storage refuses a write."""
        require(s.held[client] == token and not self.accepts(s, token))

    def accepts(self, s, token):
        """Whether the token is not older than the newest."""
        return token >= s.newest

    @invariant
    def nothing_is_overwritten_by_older(self, s):
        """The stored value is that of the newest token which has written."""
        return s.stored == s.newest


class Unfenced(Lease, variant="unfenced"):
    """The storage does not look at tokens."""

    def accepts(self, s, token):
        """Always."""
        return True

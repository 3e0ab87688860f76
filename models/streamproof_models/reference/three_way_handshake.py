"""The three-way handshake on a network that reorders, duplicates and loses messages.

After R. S. Tomlinson, "Selecting sequence numbers", Interprocess Communications Workshop, 1975, and RFC 9293, 3.5.
"""

from streamproof import Bag, Enum, Model, Range, Record, Set, State, action, choose, invariant, require


class ThreeWayHandshake(Model):
    """The client opens connections one after the other; each side numbers its own."""

    name = "reference.three_way_handshake"
    connections: int = 2
    capacity: int = 3
    requested = "SYN_RECEIVED"  # the server's state after a request
    check_deadlock = False  # it ends when all numbers are used

    def state(self):
        number = Range(0, self.connections)
        segment = Record(flags=Enum("SYN", "SYN+ACK", "ACK"), x=number, y=number)
        return State(
            client=Enum("CLOSED", "SYN_SENT", "ESTABLISHED"),
            server=Enum("LISTEN", "SYN_RECEIVED", "ESTABLISHED"),
            x=number,
            peer=number,
            y=number,
            accepted=Set(number),
            network=Bag(segment, capacity=self.capacity),
        )

    @action
    def open(self, s):
        require(s.client == "CLOSED" and s.x < self.connections and len(s.network) < self.capacity)
        s.client, s.x = "SYN_SENT", s.x + 1
        s.network.add({"flags": "SYN", "x": s.x, "y": 0})

    @action
    def receive(self, s):
        """Any segment arrives; one that nobody waits for is dropped."""
        segment = choose(s.network)
        s.network.remove(segment)
        if segment.flags == "SYN" and s.server == "LISTEN" and s.y < self.connections:
            s.server, s.peer, s.y = self.requested, segment.x, s.y + 1
            s.network.add({"flags": "SYN+ACK", "x": segment.x, "y": s.y})
        if segment.flags == "SYN+ACK" and s.client == "SYN_SENT" and segment.x == s.x:
            s.client = "ESTABLISHED"
            s.accepted.add(segment.y)
            s.network.add({"flags": "ACK", "x": segment.x, "y": segment.y})
        if segment.flags == "ACK" and s.server == "SYN_RECEIVED" and segment.y == s.y:
            s.server = "ESTABLISHED"

    @action
    def disturb(self, s):
        segment = choose(s.network)
        if choose(duplicated=True, lost=False):
            require(len(s.network) < self.capacity)
            s.network.add(segment)
        else:
            s.network.remove(segment)

    @action(side=["client", "server"])
    def close(self, s, side):
        if side == "client":
            require(s.client == "ESTABLISHED")
            s.client = "CLOSED"
        else:
            require(s.server != "LISTEN")
            s.server = "LISTEN"

    @invariant
    def known(self, s):
        """The client has accepted the server's connection, or waits for the answer."""
        return s.server != "ESTABLISHED" or s.y in s.accepted or (s.client == "SYN_SENT" and s.x == s.peer)


class TwoWay(ThreeWayHandshake, variant="two-way"):
    """The server takes a request for a connection: a delayed duplicate opens one that the client does not know."""

    requested = "ESTABLISHED"

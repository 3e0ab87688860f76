"""A binding: the actions of the model for the spans of the service."""

from lease import Lease

from streamproof.conformance import EventLog, Move


def grant(event):
    """The lease service has granted the lease."""
    return Move("grant", {"client": event.args["client"]})


def write(event):
    """The storage has answered a write; the span has what is stored afterwards."""
    action = "write" if event.args["outcome"] == "stored" else "refuse"
    return Move(action, {"client": event.args["client"], "token": event.args["token"]})


BINDING = EventLog(
    Lease,
    {
        "grant": grant,
        "expire": lambda event: Move("expire"),
        "write": write,
        "acquire": None,  # the client's side of a grant
        "store": None,  # the client's side of a write
    },
    clients=3,
    tokens=100,
)

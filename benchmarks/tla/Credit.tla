-------------------------------- MODULE Credit -------------------------------
\* Credit-based flow control of several channels that share a pool of floating buffers.
EXTENDS Integers
CONSTANTS Channels, Exclusive, Floating, Depth
VARIABLES left, backlog, credit, wire, known, free, queued, lent, unannounced, announced, consumer, pool

vars == <<left, backlog, credit, wire, known, free, queued, lent, unannounced, announced, consumer, pool>>

Channel == 0 .. Channels-1
Most == Exclusive + Floating

TypeOK ==
    /\ left \in [Channel -> 0 .. Depth]
    /\ backlog \in [Channel -> 0 .. Depth]
    /\ credit \in [Channel -> 0 .. Most]
    /\ wire \in [Channel -> 0 .. Most]
    /\ known \in [Channel -> 0 .. Depth]
    /\ free \in [Channel -> 0 .. Most]
    /\ queued \in [Channel -> 0 .. Most]
    /\ lent \in [Channel -> 0 .. Floating]
    /\ unannounced \in [Channel -> 0 .. Most]
    /\ announced \in [Channel -> 0 .. Most]
    /\ consumer \in [Channel -> {"LIVE", "STALLED", "GONE"}]
    /\ pool \in 0 .. Floating

Init ==
    /\ left = [c \in Channel |-> Depth]
    /\ backlog = [c \in Channel |-> 0]
    /\ credit = [c \in Channel |-> Exclusive]
    /\ wire = [c \in Channel |-> 0]
    /\ known = [c \in Channel |-> 0]
    /\ free = [c \in Channel |-> Exclusive]
    /\ queued = [c \in Channel |-> 0]
    /\ lent = [c \in Channel |-> 0]
    /\ unannounced = [c \in Channel |-> 0]
    /\ announced = [c \in Channel |-> 0]
    /\ consumer = [c \in Channel |-> "LIVE"]
    /\ pool = Floating

Produce(c) ==
    /\ left[c] > 0
    /\ consumer[c] # "GONE"
    /\ left' = [left EXCEPT ![c] = @ - 1]
    /\ backlog' = [backlog EXCEPT ![c] = @ + 1]
    /\ UNCHANGED <<credit, wire, known, free, queued, lent, unannounced, announced, consumer, pool>>

Send(c) ==
    /\ backlog[c] > 0
    /\ credit[c] > 0
    /\ backlog' = [backlog EXCEPT ![c] = @ - 1]
    /\ credit' = [credit EXCEPT ![c] = @ - 1]
    /\ wire' = [wire EXCEPT ![c] = @ + 1]
    /\ UNCHANGED <<left, known, free, queued, lent, unannounced, announced, consumer, pool>>

AnnounceBacklog(c) ==
    /\ backlog[c] > 0
    /\ credit[c] = 0
    /\ known[c] # backlog[c]
    /\ known' = [known EXCEPT ![c] = backlog[c]]
    /\ UNCHANGED <<left, backlog, credit, wire, free, queued, lent, unannounced, announced, consumer, pool>>

AddCredit(c) ==
    /\ announced[c] > 0
    /\ credit' = [credit EXCEPT ![c] = @ + 1]
    /\ announced' = [announced EXCEPT ![c] = @ - 1]
    /\ UNCHANGED <<left, backlog, wire, known, free, queued, lent, unannounced, consumer, pool>>

Receive(c) ==
    /\ wire[c] > 0
    /\ free[c] > 0
    /\ wire' = [wire EXCEPT ![c] = @ - 1]
    /\ known' = [known EXCEPT ![c] = backlog[c]]
    /\ free' = [free EXCEPT ![c] = @ - 1]
    /\ queued' = [queued EXCEPT ![c] = @ + 1]
    /\ UNCHANGED <<left, backlog, credit, lent, unannounced, announced, consumer, pool>>

Consume(c) ==
    /\ consumer[c] = "LIVE"
    /\ queued[c] > 0
    /\ queued' = [queued EXCEPT ![c] = @ - 1]
    /\ IF lent[c] > 0 /\ free[c] >= known[c] + Exclusive
       THEN /\ lent' = [lent EXCEPT ![c] = @ - 1]
            /\ pool' = pool + 1
            /\ UNCHANGED <<free, unannounced>>
       ELSE /\ free' = [free EXCEPT ![c] = @ + 1]
            /\ unannounced' = [unannounced EXCEPT ![c] = @ + 1]
            /\ UNCHANGED <<lent, pool>>
    /\ UNCHANGED <<left, backlog, credit, wire, known, announced, consumer>>

Borrow(c) ==
    /\ pool > 0
    /\ consumer[c] # "GONE"
    /\ free[c] < known[c] + Exclusive
    /\ free' = [free EXCEPT ![c] = @ + 1]
    /\ lent' = [lent EXCEPT ![c] = @ + 1]
    /\ unannounced' = [unannounced EXCEPT ![c] = @ + 1]
    /\ pool' = pool - 1
    /\ UNCHANGED <<left, backlog, credit, wire, known, queued, announced, consumer>>

Announce(c) ==
    /\ unannounced[c] > 0
    /\ unannounced' = [unannounced EXCEPT ![c] = 0]
    /\ announced' = [announced EXCEPT ![c] = @ + unannounced[c]]
    /\ UNCHANGED <<left, backlog, credit, wire, known, free, queued, lent, consumer, pool>>

Stall(c) ==
    /\ consumer[c] = "LIVE"
    /\ consumer' = [consumer EXCEPT ![c] = "STALLED"]
    /\ UNCHANGED <<left, backlog, credit, wire, known, free, queued, lent, unannounced, announced, pool>>

Release(c) ==
    /\ consumer[c] # "GONE"
    /\ left' = [left EXCEPT ![c] = 0]
    /\ backlog' = [backlog EXCEPT ![c] = 0]
    /\ credit' = [credit EXCEPT ![c] = 0]
    /\ wire' = [wire EXCEPT ![c] = 0]
    /\ known' = [known EXCEPT ![c] = 0]
    /\ free' = [free EXCEPT ![c] = Exclusive]
    /\ queued' = [queued EXCEPT ![c] = 0]
    /\ lent' = [lent EXCEPT ![c] = 0]
    /\ unannounced' = [unannounced EXCEPT ![c] = Exclusive]
    /\ announced' = [announced EXCEPT ![c] = 0]
    /\ consumer' = [consumer EXCEPT ![c] = "GONE"]
    /\ pool' = pool + lent[c]

Next ==
    \E c \in Channel :
        \/ Produce(c) \/ Send(c) \/ AnnounceBacklog(c) \/ AddCredit(c)
        \/ Receive(c) \/ Consume(c) \/ Borrow(c) \/ Announce(c)
        \/ Stall(c) \/ Release(c)

Spec == Init /\ [][Next]_vars

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})

Conservation ==
    \A c \in Channel : credit[c] + announced[c] + wire[c] + queued[c] + unannounced[c] = Exclusive + lent[c]

NoOverflow == \A c \in Channel : wire[c] <= free[c]

PoolConserved == pool + Sum(lent, Channel) = Floating

WithinLimit == Sum(free, Channel) + Sum(queued, Channel) <= Channels * Exclusive + Floating
==============================================================================

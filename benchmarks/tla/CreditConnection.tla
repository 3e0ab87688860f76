--------------------------- MODULE CreditConnection --------------------------
\* Credit-based flow control of several channels, message by message, on one connection that preserves their order.
EXTENDS Integers, Sequences, FiniteSets
CONSTANTS Channels, Exclusive, Floating, Depth
VARIABLES left, backlog, credit, sent, cancelled, down, up, heard, announced,
          expected, known, free, queued, lent, unannounced, consumer, pool

sender == <<left, backlog, credit, sent, cancelled, heard>>
receiver == <<expected, known, free, queued, lent, unannounced, consumer, pool>>
vars == <<sender, down, up, announced, receiver>>

Channel == 0 .. Channels-1
Most == Exclusive + Floating
Buffer == [channel : Channel, number : 0 .. Depth, behind : 0 .. Depth]
Announcement == [channel : Channel, credits : 0 .. Most]

TypeOK ==
    /\ left \in [Channel -> 0 .. Depth]
    /\ backlog \in [Channel -> 0 .. Depth]
    /\ credit \in [Channel -> 0 .. Most]
    /\ sent \in [Channel -> 0 .. Depth]
    /\ cancelled \in [Channel -> BOOLEAN]
    /\ down \in Seq(Buffer)
    /\ up \in Seq(Announcement)
    /\ heard \in [Channel -> 0 .. Most]
    /\ announced \in [Channel -> 0 .. Most]
    /\ expected \in [Channel -> 0 .. Depth]
    /\ known \in [Channel -> 0 .. Depth]
    /\ free \in [Channel -> 0 .. Most]
    /\ queued \in [Channel -> 0 .. Most]
    /\ lent \in [Channel -> 0 .. Floating]
    /\ unannounced \in [Channel -> 0 .. Most]
    /\ consumer \in [Channel -> {"LIVE", "STALLED", "GONE"}]
    /\ pool \in 0 .. Floating

Zero == [c \in Channel |-> 0]

Init ==
    /\ left = [c \in Channel |-> Depth]
    /\ backlog = Zero
    /\ credit = [c \in Channel |-> Exclusive]
    /\ sent = Zero
    /\ cancelled = [c \in Channel |-> FALSE]
    /\ down = <<>>
    /\ up = <<>>
    /\ heard = Zero
    /\ announced = Zero
    /\ expected = Zero
    /\ known = Zero
    /\ free = [c \in Channel |-> Exclusive]
    /\ queued = Zero
    /\ lent = Zero
    /\ unannounced = Zero
    /\ consumer = [c \in Channel |-> "LIVE"]
    /\ pool = Floating

Produce(c) ==
    /\ left[c] > 0
    /\ ~ cancelled[c]
    /\ left' = [left EXCEPT ![c] = @ - 1]
    /\ backlog' = [backlog EXCEPT ![c] = @ + 1]
    /\ UNCHANGED <<credit, sent, cancelled, heard, down, up, announced, receiver>>

Send(c) ==
    /\ credit[c] > 0
    /\ backlog[c] > 0
    /\ credit' = [credit EXCEPT ![c] = @ - 1]
    /\ backlog' = [backlog EXCEPT ![c] = @ - 1]
    /\ sent' = [sent EXCEPT ![c] = @ + 1]
    /\ down' = Append(down, [channel |-> c, number |-> sent[c], behind |-> backlog[c] - 1])
    /\ UNCHANGED <<left, cancelled, heard, up, announced, receiver>>

Listen ==
    /\ up # <<>>
    /\ \A c \in Channel : heard[c] = 0
    /\ LET message == Head(up)
           c == message.channel
       IN  IF message.credits > 0
           THEN /\ heard' = [heard EXCEPT ![c] = message.credits]
                /\ UNCHANGED <<left, backlog, credit, cancelled>>
           ELSE /\ cancelled' = [cancelled EXCEPT ![c] = TRUE]
                /\ left' = [left EXCEPT ![c] = 0]
                /\ backlog' = [backlog EXCEPT ![c] = 0]
                /\ credit' = [credit EXCEPT ![c] = 0]
                /\ UNCHANGED heard
    /\ up' = Tail(up)
    /\ UNCHANGED <<sent, down, announced, receiver>>

Hear(c) ==
    /\ heard[c] > 0
    /\ heard' = [heard EXCEPT ![c] = @ - 1]
    /\ announced' = [announced EXCEPT ![c] = @ - 1]
    /\ credit' = [credit EXCEPT ![c] = @ + 1]
    /\ UNCHANGED <<left, backlog, sent, cancelled, down, up, receiver>>

Min(m, n) == IF m < n THEN m ELSE n

Take(c) ==
    /\ down # <<>>
    /\ Head(down).channel = c
    /\ down' = Tail(down)
    /\ expected' = [expected EXCEPT ![c] = Min(@ + 1, Depth)]

Receive(c) ==
    /\ Take(c)
    /\ consumer[c] # "GONE"
    /\ free[c] > 0
    /\ free' = [free EXCEPT ![c] = @ - 1]
    /\ queued' = [queued EXCEPT ![c] = @ + 1]
    /\ known' = [known EXCEPT ![c] = Head(down).behind]
    /\ UNCHANGED <<sender, up, announced, lent, unannounced, consumer, pool>>

Discard(c) ==
    /\ Take(c)
    /\ consumer[c] = "GONE"
    /\ UNCHANGED <<sender, up, announced, known, free, queued, lent, unannounced, consumer, pool>>

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
    /\ UNCHANGED <<sender, down, up, announced, expected, known, consumer>>

Borrow(c) ==
    /\ pool > 0
    /\ consumer[c] # "GONE"
    /\ free[c] < known[c] + Exclusive
    /\ free' = [free EXCEPT ![c] = @ + 1]
    /\ lent' = [lent EXCEPT ![c] = @ + 1]
    /\ unannounced' = [unannounced EXCEPT ![c] = @ + 1]
    /\ pool' = pool - 1
    /\ UNCHANGED <<sender, down, up, announced, expected, known, queued, consumer>>

Announce(c) ==
    /\ unannounced[c] > 0
    /\ up' = Append(up, [channel |-> c, credits |-> unannounced[c]])
    /\ announced' = [announced EXCEPT ![c] = @ + unannounced[c]]
    /\ unannounced' = [unannounced EXCEPT ![c] = 0]
    /\ UNCHANGED <<sender, down, expected, known, free, queued, lent, consumer, pool>>

Stall(c) ==
    /\ consumer[c] = "LIVE"
    /\ consumer' = [consumer EXCEPT ![c] = "STALLED"]
    /\ UNCHANGED <<sender, down, up, announced, expected, known, free, queued, lent, unannounced, pool>>

Release(c) ==
    /\ consumer[c] # "GONE"
    /\ consumer' = [consumer EXCEPT ![c] = "GONE"]
    /\ pool' = pool + lent[c]
    /\ lent' = [lent EXCEPT ![c] = 0]
    /\ known' = [known EXCEPT ![c] = 0]
    /\ free' = [free EXCEPT ![c] = Exclusive]
    /\ queued' = [queued EXCEPT ![c] = 0]
    /\ unannounced' = [unannounced EXCEPT ![c] = 0]
    /\ up' = Append(up, [channel |-> c, credits |-> 0])
    /\ UNCHANGED <<sender, down, announced, expected>>

Next ==
    \/ Listen
    \/ \E c \in Channel :
        \/ Produce(c) \/ Send(c) \/ Hear(c) \/ Receive(c) \/ Discard(c) \/ Consume(c)
        \/ Borrow(c) \/ Announce(c) \/ Stall(c) \/ Release(c)

Spec == Init /\ [][Next]_vars

OnWire(c, upTo) == Cardinality({k \in 1 .. upTo : down[k].channel = c})

RECURSIVE OnWay(_, _)
OnWay(c, messages) ==
    IF messages = <<>> THEN heard[c]
    ELSE OnWay(c, Tail(messages)) + (IF Head(messages).channel = c THEN Head(messages).credits ELSE 0)

InOrder ==
    \A k \in 1 .. Len(down) : \A c \in Channel :
        down[k].channel = c => down[k].number = expected[c] + OnWire(c, k-1)

NothingLost == \A c \in Channel : sent[c] = expected[c] + OnWire(c, Len(down))

AnnouncementsCounted == \A c \in Channel : announced[c] = OnWay(c, up)

NoOverflow == \A c \in Channel : consumer[c] = "GONE" \/ OnWire(c, Len(down)) <= free[c]

NeverWaits ==
    \A c \in Channel : down # <<>> /\ Head(down).channel = c => consumer[c] = "GONE" \/ free[c] > 0
==============================================================================

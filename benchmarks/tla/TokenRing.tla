------------------------------- MODULE TokenRing -----------------------------
\* Dijkstra's self-stabilizing ring, EWD 426.
EXTENDS Naturals, FiniteSets
CONSTANTS N, M
VARIABLE c

Node == 0 .. N-1

TypeOK == c \in [Node -> 0 .. M-1]

Init == c \in [Node -> 0 .. M-1]

CreateToken ==
    /\ c[0] = c[N-1]
    /\ c' = [c EXCEPT ![0] = (c[N-1] + 1) % M]

PassToken(i) ==
    /\ c[i] # c[i-1]
    /\ c' = [c EXCEPT ![i] = c[i-1]]

Next == CreateToken \/ \E i \in 1 .. N-1 : PassToken(i)

Spec == Init /\ [][Next]_c /\ WF_c(CreateToken) /\ \A i \in 1 .. N-1 : WF_c(PassToken(i))

Tokens == Cardinality({i \in Node : IF i = 0 THEN c[0] = c[N-1] ELSE c[i] # c[i-1]})

SomeToken == Tokens >= 1

NeverMore == [][Tokens' <= Tokens]_c

Stabilises == <>[](Tokens = 1)
==============================================================================

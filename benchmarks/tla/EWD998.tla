-------------------------------- MODULE EWD998 -------------------------------
\* Safra's termination detection, after EWD 998 and its specification among the TLA+ examples.
EXTENDS Integers
CONSTANTS N, Most
VARIABLES active, color, counter, pending, token

vars == <<active, color, counter, pending, token>>

Node == 0 .. N-1
Color == {"white", "black"}
Token == [pos : Node, q : Int, color : Color]

TypeOK ==
    /\ active \in [Node -> BOOLEAN]
    /\ color \in [Node -> Color]
    /\ counter \in [Node -> Int]
    /\ pending \in [Node -> Nat]
    /\ token \in Token

Init ==
    /\ active \in [Node -> BOOLEAN]
    /\ color \in [Node -> Color]
    /\ counter = [i \in Node |-> 0]
    /\ pending = [i \in Node |-> 0]
    /\ token \in [pos : Node, q : {0}, color : {"black"}]

InitiateProbe ==
    /\ token.pos = 0
    /\ \/ token.color = "black"
       \/ color[0] = "black"
       \/ counter[0] + token.q > 0
    /\ token' = [pos |-> N-1, q |-> 0, color |-> "white"]
    /\ color' = [color EXCEPT ![0] = "white"]
    /\ UNCHANGED <<active, counter, pending>>

PassToken(i) ==
    /\ ~ active[i]
    /\ token.pos = i
    /\ token' = [token EXCEPT !.pos = @ - 1,
                              !.q = @ + counter[i],
                              !.color = IF color[i] = "black" THEN "black" ELSE @]
    /\ color' = [color EXCEPT ![i] = "white"]
    /\ UNCHANGED <<active, counter, pending>>

System == InitiateProbe \/ \E i \in Node \ {0} : PassToken(i)

SendMsg(i) ==
    /\ active[i]
    /\ counter' = [counter EXCEPT ![i] = @ + 1]
    /\ \E j \in Node \ {i} : pending' = [pending EXCEPT ![j] = @ + 1]
    /\ UNCHANGED <<active, color, token>>

RecvMsg(i) ==
    /\ pending[i] > 0
    /\ pending' = [pending EXCEPT ![i] = @ - 1]
    /\ counter' = [counter EXCEPT ![i] = @ - 1]
    /\ color' = [color EXCEPT ![i] = "black"]
    /\ active' = [active EXCEPT ![i] = TRUE]
    /\ UNCHANGED token

Deactivate(i) ==
    /\ active[i]
    /\ active' = [active EXCEPT ![i] = FALSE]
    /\ UNCHANGED <<color, counter, pending, token>>

Environment == \E i \in Node : SendMsg(i) \/ RecvMsg(i) \/ Deactivate(i)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars /\ WF_vars(InitiateProbe) /\ \A i \in Node \ {0} : WF_vars(PassToken(i))

StateConstraint ==
    /\ \A i \in Node : counter[i] <= Most /\ pending[i] <= Most
    /\ token.q <= Most * N

terminationDetected ==
    /\ token.pos = 0
    /\ token.color = "white"
    /\ token.q + counter[0] = 0
    /\ color[0] = "white"
    /\ ~ active[0]

terminated == \A i \in Node : ~ active[i] /\ pending[i] = 0

TerminationDetection == terminationDetected => terminated

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})

Rng(a, b) == {i \in Node : a <= i /\ i <= b}

Inv ==
    /\ Sum(pending, Node) = Sum(counter, Node)
    /\ \/ /\ \A i \in Rng(token.pos + 1, N-1) : ~ active[i]
          /\ token.q = Sum(counter, Rng(token.pos + 1, N-1))
       \/ Sum(counter, Rng(0, token.pos)) + token.q > 0
       \/ \E i \in Rng(0, token.pos) : color[i] = "black"
       \/ token.color = "black"
==============================================================================

-------------------------------- MODULE EWD840 -------------------------------
\* Termination detection in a ring, after EWD 840 and its specification among the TLA+ examples.
EXTENDS Naturals
CONSTANT N
VARIABLES active, color, tpos, tcolor

vars == <<active, color, tpos, tcolor>>

Nodes == 0 .. N-1
Color == {"white", "black"}

TypeOK ==
    /\ active \in [Nodes -> BOOLEAN]
    /\ color \in [Nodes -> Color]
    /\ tpos \in Nodes
    /\ tcolor \in Color

Init ==
    /\ active \in [Nodes -> BOOLEAN]
    /\ color \in [Nodes -> Color]
    /\ tpos \in Nodes
    /\ tcolor = "black"

InitiateProbe ==
    /\ tpos = 0
    /\ tcolor = "black" \/ color[0] = "black"
    /\ tpos' = N-1
    /\ tcolor' = "white"
    /\ active' = active
    /\ color' = [color EXCEPT ![0] = "white"]

PassToken(i) ==
    /\ tpos = i
    /\ ~ active[i] \/ color[i] = "black" \/ tcolor = "black"
    /\ tpos' = i-1
    /\ tcolor' = IF color[i] = "black" THEN "black" ELSE tcolor
    /\ active' = active
    /\ color' = [color EXCEPT ![i] = "white"]

SendMsg(i) ==
    /\ active[i]
    /\ \E j \in Nodes \ {i} :
        /\ active' = [active EXCEPT ![j] = TRUE]
        /\ color' = [color EXCEPT ![i] = IF j > i THEN "black" ELSE @]
    /\ UNCHANGED <<tpos, tcolor>>

Deactivate(i) ==
    /\ active[i]
    /\ active' = [active EXCEPT ![i] = FALSE]
    /\ UNCHANGED <<color, tpos, tcolor>>

Controlled == InitiateProbe \/ \E i \in Nodes \ {0} : PassToken(i)

Environment == \E i \in Nodes : SendMsg(i) \/ Deactivate(i)

Next == Controlled \/ Environment

Spec == Init /\ [][Next]_vars /\ WF_vars(InitiateProbe) /\ \A i \in Nodes \ {0} : WF_vars(PassToken(i))

terminationDetected ==
    /\ tpos = 0 /\ tcolor = "white"
    /\ color[0] = "white" /\ ~ active[0]

TerminationDetection == terminationDetected => \A i \in Nodes : ~ active[i]

Inv ==
    \/ \A i \in Nodes : tpos < i => ~ active[i]
    \/ \E j \in 0 .. tpos : color[j] = "black"
    \/ tcolor = "black"

Liveness == (\A i \in Nodes : ~ active[i]) ~> terminationDetected
==============================================================================

-------------------------- MODULE DiningPhilosophers -------------------------
\* Chandy and Misra's philosophers, after their specification among the TLA+ examples.
EXTENDS Naturals
CONSTANT NP
VARIABLES forks, hungry, pc

vars == <<forks, hungry, pc>>

Phil == 0 .. NP-1
Left(p) == p
Right(p) == (p + 1) % NP
LeftNeighbour(p) == (p + NP - 1) % NP
RightNeighbour(p) == (p + 1) % NP

TypeOK ==
    /\ forks \in [Phil -> [holder : Phil, clean : BOOLEAN]]
    /\ hungry \in [Phil -> BOOLEAN]
    /\ pc \in [Phil -> {"Think", "Eat", "Loop"}]

Init ==
    /\ forks = [f \in Phil |-> [holder |-> IF f = 1 THEN 0 ELSE f, clean |-> FALSE]]
    /\ hungry = [p \in Phil |-> TRUE]
    /\ pc = [p \in Phil |-> "Loop"]

Dirty(p, f) == forks[f].holder = p /\ ~ forks[f].clean

Clean(p, f) == forks[f].holder = p /\ forks[f].clean

Loop(p) ==
    /\ pc[p] = "Loop"
    /\ forks' = IF Dirty(p, Left(p))
                THEN [forks EXCEPT ![Left(p)] = [holder |-> LeftNeighbour(p), clean |-> TRUE]]
                ELSE IF Dirty(p, Right(p))
                THEN [forks EXCEPT ![Right(p)] = [holder |-> RightNeighbour(p), clean |-> TRUE]]
                ELSE forks
    /\ pc' = [pc EXCEPT ![p] = IF ~ hungry[p] THEN "Think"
                               ELSE IF Clean(p, Left(p)) /\ Clean(p, Right(p)) THEN "Eat" ELSE @]
    /\ UNCHANGED hungry

Think(p) ==
    /\ pc[p] = "Think"
    /\ hungry' = [hungry EXCEPT ![p] = TRUE]
    /\ pc' = [pc EXCEPT ![p] = "Loop"]
    /\ UNCHANGED forks

Eat(p) ==
    /\ pc[p] = "Eat"
    /\ forks' = [forks EXCEPT ![Left(p)].clean = FALSE, ![Right(p)].clean = FALSE]
    /\ hungry' = [hungry EXCEPT ![p] = FALSE]
    /\ pc' = [pc EXCEPT ![p] = "Loop"]

Philosopher(p) == Loop(p) \/ Think(p) \/ Eat(p)

Next == \E p \in Phil : Philosopher(p)

Spec == Init /\ [][Next]_vars /\ \A p \in Phil : WF_vars(Philosopher(p))

Exclusion == \A p \in Phil : ~ (pc[p] = "Eat" /\ pc[Right(p)] = "Eat")

Starvation == \A p \in Phil : hungry[p] ~> ~ hungry[p]
==============================================================================

-------------------------------- MODULE DieHard ------------------------------
\* The jugs of Lamport's TLA+ course.
EXTENDS Naturals
CONSTANTS SmallJug, LargeJug
VARIABLES small, big

vars == <<small, big>>

TypeOK == small \in 0 .. SmallJug /\ big \in 0 .. LargeJug

Init == small = 0 /\ big = 0

Min(m, n) == IF m < n THEN m ELSE n

FillSmall == small' = SmallJug /\ big' = big

FillBig == big' = LargeJug /\ small' = small

EmptySmall == small' = 0 /\ big' = big

EmptyBig == big' = 0 /\ small' = small

SmallToBig == LET poured == Min(small, LargeJug - big)
              IN  small' = small - poured /\ big' = big + poured

BigToSmall == LET poured == Min(big, SmallJug - small)
              IN  small' = small + poured /\ big' = big - poured

Next == FillSmall \/ FillBig \/ EmptySmall \/ EmptyBig \/ SmallToBig \/ BigToSmall

Spec == Init /\ [][Next]_vars
==============================================================================

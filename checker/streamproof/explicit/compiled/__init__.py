"""The compiled tier of the explicit engine: machine code for one system, compiled by LLVM in tens of milliseconds."""

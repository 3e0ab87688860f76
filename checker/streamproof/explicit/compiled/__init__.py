"""The compiled tier of the explicit engine: machine code for one system at a time, made by LLVM in tens of milliseconds."""

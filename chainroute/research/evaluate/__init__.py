"""How good solvers are: the paper's tables from one command, with statistics.

    tasks, real           what is solved: the benchmark's test sets, and instances from libraries
    policy_solver, classical   the network, on a GPU by the thousand (exchange: its depots), and other solvers
    suites, run, results  all tasks one after the other, kept in result files
    paper, gaps           the paper's figures, and what ours are measured by
    columns               methods, ours and the paper's, with their gaps by task
    table, tables, library_tables, network_tables, statistics, pictures, report   what is shown of them
    networks              networks by what differs from the default

What the GPU machine runs (`python -m chainroute.evaluate`) needs torch, NumPy and safetensors only.
"""

from pathlib import Path

RESULTS, REFERENCES = Path("out/results"), Path("out/reference")  # where runs keep theirs

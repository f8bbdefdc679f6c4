"""Other people's solvers, each in a process of its own: PyVRP, OR-Tools, VROOM, HiGHS (milp) and LKH-3."""

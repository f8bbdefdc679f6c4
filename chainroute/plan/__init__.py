"""A plan of routes: its facts, its timetable, and the checker, which shares no code with any solver.

solution.py   Solution: routes with their depot, cost, and the facts of each route
timetable.py  when a vehicle is where: as late as saves time
check.py      the checker: float64, written from the rules alone
insertion.py  where one more customer fits in a plan, and what that costs
reasons.py    why a customer that may be left out is not served
"""

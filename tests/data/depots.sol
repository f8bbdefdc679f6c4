Route #1: 2
Route #2: 3 4
Cost 23.85
# Depots: 0 1

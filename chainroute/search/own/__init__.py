"""Searches of our own: construction, savings, ejection, ruin and recreate, all plans of a tiny problem."""

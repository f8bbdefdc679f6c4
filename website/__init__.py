"""How the site is made from docs/, from the code and from the command."""

"""The HTTP service and its page. docs/service.md is the interface; `chainroute serve` starts it.

settings.py     what one service allows, and how much of it
requests.py     bodies from the wire, bounded, and the processes that read them
reading.py      from bytes to problems, with coded faults
attributes.py   the declared attributes, as a module of the page
documents.py    what is answered: models for the OpenAPI, solutions with their schedule
examples.py     problems to try
jobs.py         jobs from the queue to their end, in one event loop
batch.py        problems that wait together are decoded together
policy.py       the policy, in processes of the service's own
webhook.py      ended jobs are sent to where their order said
metrics.py      figures for Prometheus
frame.py        around every request: hosts, origins, sizes and times
app.py          addresses and errors
server.py       from a socket to Ctrl-C
"""

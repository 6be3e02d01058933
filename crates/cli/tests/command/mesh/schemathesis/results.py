"""Waits until tasks have results, which have to be what the API's description says.

    results.py DESCRIPTION TASK...
"""

import sys
import time

import schemathesis

_, description, *tasks = sys.argv
api = schemathesis.openapi.from_url(description)
results = api["/api/v1/tasks/{name}/results"]["GET"]


def measured(task, query):
    case = results.Case(path_parameters={"name": task}, query=query)
    return case.call_and_validate().json()["results"]


for task in tasks:
    while not measured(task, {}):
        time.sleep(0.1)
    measured(task, {"step": 60})
for path in ["/api/v1/tasks", "/api/v1/probes"]:
    answer = api[path]["GET"].Case().call_and_validate()
    assert answer.json(), path

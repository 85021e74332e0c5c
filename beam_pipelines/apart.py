"""Imported with the jobs' DoFns: numbers a worker's metrics apart from those of another worker of the same job.

A worker names its metrics by small numbers of its own, and Prism (Beam 2.77) keeps one table of them for all workers of
a job: with two, it decodes one metric as another and fails the job ("error decoding metrics"). The SDK has no setting
for where the numbers begin; where it has no such counter, nothing happens, and one worker still works.
"""

from __future__ import annotations

import os

from apache_beam.runners.worker import sdk_worker

_cache = getattr(sdk_worker, "SHORT_ID_CACHE", None)
if _cache is not None and getattr(_cache, "_last_short_id", None) == 0:
    _cache._last_short_id = os.getpid() << 20

"""External: a separate package with its own API. `python external.py LINEITEM_PARQUET WORKER_URL...`."""

import sys

from datafusion_external import DistributedSessionContext

ctx = DistributedSessionContext(workers=sys.argv[2:])
ctx.register_parquet("lineitem", sys.argv[1])
rows = ctx.sql("SELECT l_shipmode, count(*) AS n FROM lineitem GROUP BY l_shipmode ORDER BY l_shipmode")
print(rows.to_pydict())

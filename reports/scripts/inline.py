"""Inline: distribution built into `datafusion`. `python inline.py LINEITEM_PARQUET WORKER_URL...`."""

import sys

from datafusion import SessionConfig, SessionContext

ctx = SessionContext(SessionConfig().with_distributed(sys.argv[2:]))
ctx.register_parquet("lineitem", sys.argv[1])
rows = ctx.sql("SELECT l_shipmode, count(*) AS n FROM lineitem GROUP BY l_shipmode ORDER BY l_shipmode")
print(rows.to_pydict())

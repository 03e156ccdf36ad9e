"""Local: stock `datafusion`, one process. `python local.py LINEITEM_PARQUET`."""

import sys

from datafusion import SessionContext

ctx = SessionContext()
ctx.register_parquet("lineitem", sys.argv[1])
rows = ctx.sql("SELECT l_shipmode, count(*) AS n FROM lineitem GROUP BY l_shipmode ORDER BY l_shipmode")
print(rows.to_pydict())

"""The workload: TPC-H data, the 22 queries as SQL (two sets) and as DataFrame code, answers and oracles.

Nothing is imported here, because arm processes import `tpch.frames` in environments that have only the standard
library and their own DataFusion.
"""

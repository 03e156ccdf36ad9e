"""Explain a run: one report as data (`reports.model`), and text, Markdown, HTML and a decision record made from it.

May import `harness`; nothing but the command line may import this. It never measures a query: it reads what a run
directory holds. `reports.build.build_report` and `write_report` are the way in.
"""

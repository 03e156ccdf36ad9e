"""One arm process: the script that runs inside the arm's environment, and the harness' end of the pipe to it.

`arm_child.py` is never imported by the harness; it is started as a plain file with `python -I`, so that the timed
process holds the arm and the standard library and nothing else.
"""

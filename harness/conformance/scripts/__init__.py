"""Bodies of the checks. A child process loads this folder as a package of its own; the harness only reads its names."""

"""Statistics of runs: steady state, knees of load curves, comparisons and their power.

Samples of one run follow each other closely (they are autocorrelated), so nothing here takes
seconds as independent: figures of whole runs are compared.
"""

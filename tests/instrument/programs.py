"""Pieces of programs."""

LOAD = """import numpy as np
import pandas as pd
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
F = ["a", "b", "c", "d"]
X, y, T = train[F], train["y"], test[F]
"""
WRITE = """
pd.DataFrame({"id": test["id"], "y": p}).to_csv("submission.csv", index=False)
"""

#!/usr/bin/env bash
# batchstats finds -683 as the variance of four air pressures around 1013 hPa, and 0 as that of ten times a second apart.
#
# Versions: batchstats 0.8, numpy 2.4.6.
# Behaviour: BatchVar is documented as "an implementation of Welford's online algorithm", and "numerically stable". It
# subtracts sums of squares from each other, in the type of the data: the variance of float32 pressures in Pa that differ
# by 10 is 0, or below zero, and BatchStd of them is NaN with a warning of NumPy. In float64 the variance of times in
# seconds since 1970 is 0. BatchCov of the same pressures is right. BatchPeakToPeak wraps in int16, and BatchMean
# of uint64 wraps in the sum.
# Expected before the run: the numbers of NumPy but for the last digits, because Welford's algorithm gives them.
# Output seen:
#   variance of pressures, float32   NumPy 69.8 86.4 93.3 99.4   batchstats 0.0 -682.7 341.3 -682.7
#   deviation of pressures, float32  NumPy 8.4 9.3 9.7 10.0      batchstats 0.0 nan 18.5 nan
#   covariance of two of them        NumPy -7.7                  batchstats -7.7
#   variance of times, float64       NumPy 8.2                   batchstats 0.0
#   mean of uint64                   NumPy 9.223372036854776e+18 batchstats 0.0
#   30000 less -30000, int16         Python 60000.0              batchstats -5536.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install batchstats==0.8 numpy==2.4.6
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import batchstats
import numpy as np


def batched(name, values, *batches):
    statistic = getattr(batchstats, name)()
    for start in range(0, len(values), 12):
        statistic.update_batch(values[start : start + 12], *(batch[start : start + 12] for batch in batches))
    return statistic()


def show(name, right, found, library="NumPy"):
    texts = (" ".join(str(round(float(value), 1)) for value in np.ravel(part)) for part in (right, found))
    print("{:32} {:27} batchstats {}".format(name, f"{library} {next(texts)}", next(texts)))


pressures = (101325 + np.random.default_rng(0).normal(size=(24, 4)) * 10).astype("f4")
variance, deviation = batched("BatchVar", pressures), batched("BatchStd", pressures)
show("variance of pressures, float32", pressures.var(axis=0), variance)
show("deviation of pressures, float32", pressures.std(axis=0), deviation)
assert (pressures.var(axis=0, dtype="f8") > 65).all()
assert (variance <= 0).any() and (abs(variance - pressures.var(axis=0)) > 50).any()
covariance = batched("BatchCov", pressures[:, :2], pressures[:, :2])[0, 1]
right = np.cov(pressures[:, 0], pressures[:, 1], ddof=0)[0, 1]
show("covariance of two of them", right, covariance)
np.testing.assert_allclose(covariance, right, rtol=0.01)
times = 1.6e9 + np.arange(10)[:, None]
show("variance of times, float64", times.var(axis=0), batched("BatchVar", times))
assert batched("BatchVar", times) == 0 and times.var() == 8.25
large = np.array([[2**64 - 1], [1]], "u8")
show("mean of uint64", large.mean(axis=0), batched("BatchMean", large))
assert batched("BatchMean", large) == 0
ends = np.array([[-30000], [30000]], "i2")
show("30000 less -30000, int16", 60000, batched("BatchPeakToPeak", ends), "Python")
assert batched("BatchPeakToPeak", ends) == -5536
PYTHON

"""
Compare two months, or monitor every day
========================================

Two questions look alike. *Is this month different from last month?* To compare two data
sets once, use `calibration_change`. *When is calibration lost?* If samples arrive and
are checked every day, use `CalibrationMonitor`. Its false alarms stay rare, however
often you check.
"""

# %%
# Sixty days of scores. From day 40 onward, events become more frequent, but the scores
# do not reflect this.
import numpy as np
from scipy.special import expit, logit

rng = np.random.default_rng(0)
day = np.repeat(np.arange(60), 200)
scores = rng.beta(1, 4, len(day))
y = (rng.random(len(day)) < expit(logit(scores) + 0.5 * (day >= 40))).astype(int)

# %%
# Compare the first thirty days with the last thirty. The last seven rows are estimates
# with 90 % intervals.
from skcalib.monitoring import CalibrationMonitor, calibration_change

before, after = day < 30, day >= 30
change = calibration_change(
    y[before], scores[before], y[after], scores[after], random_state=0
)
print(f"p-value {change.pvalue:.3f}")
change.to_frame().round(3)

# %%
# The monitor processes one day at a time. It compares the scores with shifted or
# stretched alternatives, and the figure shows the evidence for these. The monitor
# raises an alarm when the line crosses the threshold, and dates the change.
from skcalib.displays import MonitorDisplay

monitor = CalibrationMonitor(average_run_length=100_000)
for today in range(60):
    monitor.partial_fit(scores[day == today], y[day == today])
print(
    f"alarm on day {day[monitor.alarm_row_]}, change dated to day"
    f" {day[monitor.change_row_]}; the truth is day 40"
)
MonitorDisplay.from_monitor(monitor)

# %%
# **See also:** :doc:`/after_release`. Reference: `calibration_change`,
# `CalibrationMonitor`, `MonitorDisplay`.

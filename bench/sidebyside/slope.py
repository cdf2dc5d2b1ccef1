"""How a cost grows with a size."""
import math


def slope_of(points):
    """Of the line through the points on logarithmic scales, by least squares; None if there are fewer than two sizes."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def part_of_n_log_n(points):
    """The slope, divided by the one that a cost of n log n has at the same sizes; None if there are fewer than two sizes."""
    found, usual = slope_of(points), slope_of([(x, x * math.log(x)) for x, _ in points])
    return None if found is None else found / usual

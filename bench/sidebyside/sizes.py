"""The sizes of the rows that take long, which `bench/run --scale` makes smaller to try them out."""
scale = 1.0


def of(number):
    return max(1, int(number * scale))

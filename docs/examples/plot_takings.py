"""Draws an export of the topic ``takings``: ``python docs/examples/plot_takings.py lake/takings takings.png``."""

import sys

import matplotlib

matplotlib.use("Agg")  # no window
import pandas
from matplotlib import pyplot


def main(export: str, picture: str) -> None:
    """Read the Parquet files, and stack each hour's takings by product."""
    takings = pandas.read_parquet(export).sort_values("hour")
    table = takings.pivot_table(index="hour", columns="product", values="takings", aggfunc="sum", fill_value=0)
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    bottom = 0
    for product in table:
        axes.bar(table.index, table[product], width=1 / 26, align="edge", bottom=bottom, label=product)
        bottom = bottom + table[product]
    axes.set(title="What the café took, by the hour of the order", xlabel="UTC", ylabel="takings")
    axes.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.legend(title=None, frameon=False)
    figure.savefig(picture, dpi=120)
    sys.stdout.write(f"{len(takings)} hours of {table.shape[1]} products: {takings['takings'].sum():.2f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

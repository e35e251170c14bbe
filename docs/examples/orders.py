"""Two days of a café, the same each time: orders as files of JSON lines, one for each hour, and payments as lines for
``barnabas produce``, in the order in which they were made.

    python docs/examples/orders.py cafe
"""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

OPENS, CLOSES = 7, 21
PRICES = {"coffee": 3.20, "tea": 2.90, "cake": 4.10, "soup": 6.50}
RUSH = {"coffee": (8, 1.5), "tea": (16, 2.5), "cake": (15, 1.5), "soup": (13, 1.0)}
"""When each sells best: the hour, and for how many hours around it."""


def orders(days: int = 2) -> list[dict[str, object]]:
    """Each order once, as they come."""
    chance = random.Random(1883)
    found = []
    for day in range(days):
        midnight = datetime(2026, 3, 2 + day, tzinfo=UTC)
        for product, price in PRICES.items():
            for _ in range(300):
                hour = an_hour(chance, product)
                at = midnight + timedelta(seconds=int(hour * 3600))
                found.append(
                    {"at": at.isoformat(), "product": product, "count": chance.choice((1, 1, 2)), "price": price}
                )
    found.sort(key=lambda order: str(order["at"]))
    return [{"id": number, **order} for number, order in enumerate(found, 1)]


def an_hour(chance: random.Random, product: str) -> float:
    """When somebody orders it: hours since midnight."""
    while True:
        hour = chance.gauss(*RUSH[product])
        if OPENS <= hour < CLOSES:
            return hour


def payments(those: list[dict[str, object]]) -> list[dict[str, object]]:
    """What was paid for them, and when: mostly soon, one in twenty never."""
    chance = random.Random(1924)
    found = []
    for order in those:
        paid_at = datetime.fromisoformat(str(order["at"])) + timedelta(seconds=int(chance.expovariate(1 / 600)))
        amount = round(float(str(order["count"])) * float(str(order["price"])), 2)
        if chance.random() > 0.05:
            found.append({"order_id": order["id"], "amount": amount, "paid_at": paid_at.isoformat()})
    return sorted(found, key=lambda payment: str(payment["paid_at"]))


def main(to: Path) -> None:
    """Write ``orders/<hour>.json`` and ``payments.txt`` into that directory."""
    (to / "orders").mkdir(parents=True, exist_ok=True)
    made = orders()
    by_hour: dict[str, list[str]] = {}
    for order in made:
        by_hour.setdefault(str(order["at"])[:13], []).append(json.dumps(order))
    for hour, lines in by_hour.items():
        (to / "orders" / f"{hour}.json").write_text("\n".join(lines) + "\n", "utf-8")
    paid = payments(made)
    lines = [f"{payment['order_id']}\t{json.dumps(payment)}" for payment in paid]
    (to / "payments.txt").write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{len(made)} orders in {len(by_hour)} files, {len(paid)} payments\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

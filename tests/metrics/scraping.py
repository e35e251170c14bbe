"""One scrape of a broker, parsed by Prometheus's own parser. Knows nothing of the metrics."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families


class Scrape:
    """The samples of one scrape, by name and labels."""

    def __init__(self, shown):
        url = shown if isinstance(shown, str) else shown.metrics_url
        with urllib.request.urlopen(url + "/metrics", timeout=30) as response:
            self.text = response.read().decode()
        self.values = {}
        self.families = {}
        for family in text_string_to_metric_families(self.text):
            self.families[family.name] = family
            for sample in family.samples:
                self.values[sample.name, frozenset(sample.labels.items())] = sample.value

    def __call__(self, name, **labels):
        return self.values.get((name, frozenset(labels.items())), 0)

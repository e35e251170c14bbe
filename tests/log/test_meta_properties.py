"""meta.properties, as Apache Kafka writes and reads it."""

import pytest

from barnabas.log import meta_properties
from barnabas.log.meta_properties import InvalidMetaProperties, MetaProperties
from barnabas.uuids import uuid_of

APACHE = b"""#
#Sat Nov 21 14:41:21 UTC 2026
node.id=1
directory.id=nVflAZdBIhFINRkTIXgx2g
version=1
cluster.id=EEW8mcVARWKGkGgikykpgw
"""


def test_the_file_of_apache_kafka(place):
    place.files.create(f"{place.path}/meta.properties").write(APACHE)
    directory_id = uuid_of("nVflAZdBIhFINRkTIXgx2g")
    assert meta_properties.read(place.files, place.path) == MetaProperties("EEW8mcVARWKGkGgikykpgw", 1, directory_id)


def test_the_bytes(place):
    properties = MetaProperties("my cluster", 7, bytes(range(16)))
    meta_properties.write(place.files, place.path, properties)
    assert place.files.read(f"{place.path}/meta.properties") == (
        b"version=1\ncluster.id=my cluster\nnode.id=7\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n"
    )
    assert meta_properties.read(place.files, place.path) == properties


def test_no_file(place):
    assert meta_properties.read(place.files, place.path) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"version=0\nbroker.id=1\n", "version 0"),
        (b"", "version none"),
        (b"version=1\nnode.id=1\n", "cluster.id"),
        (b"version=1\nnode.id=one\ncluster.id=x\n", "one"),
        (b"version=1\nnode.id=1\ncluster.id=x\ndirectory.id=short\n", "short"),
    ],
)
def test_an_invalid_file_is_refused(place, text, complaint):
    place.files.create(f"{place.path}/meta.properties").write(text)
    with pytest.raises(InvalidMetaProperties, match=complaint):
        meta_properties.read(place.files, place.path)

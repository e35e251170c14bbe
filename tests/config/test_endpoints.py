import pytest

from barnabas.config.endpoints import Endpoint, check_ports, parse_endpoints, parse_protocol_map
from barnabas.config.validators import ConfigError

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "INTERNAL": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("item", "endpoint"),
    [
        ("PLAINTEXT://127.0.0.1:9092", Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")),
        ("PLAINTEXT://:9092", Endpoint("PLAINTEXT", "", 9092, "PLAINTEXT")),
        ("PLAINTEXT://[::1]:0", Endpoint("PLAINTEXT", "::1", 0, "PLAINTEXT")),
        ("PLAINTEXT://[::]:65535", Endpoint("PLAINTEXT", "::", 65535, "PLAINTEXT")),
        ("internal://kafka.example:19092", Endpoint("INTERNAL", "kafka.example", 19092, "PLAINTEXT")),
        (" SSL://h:1 ", Endpoint("SSL", "h", 1, "SSL")),
    ],
)
def test_an_endpoint_is_name_host_and_port(item, endpoint):
    assert parse_endpoints("listeners", [item], PROTOCOLS) == (endpoint,)


def test_an_endpoint_is_written_as_it_is_read():
    for text in ("PLAINTEXT://[::1]:9092", "SSL://a.example:1", "PLAINTEXT://:0"):
        assert str(parse_endpoints("listeners", [text], PROTOCOLS)[0]) == text


@pytest.mark.parametrize(
    "items",
    [
        ["127.0.0.1:9092"],
        ["PLAINTEXT://127.0.0.1"],
        ["PLAINTEXT://127.0.0.1:"],
        ["PLAINTEXT://127.0.0.1:65536"],
        ["PLAINTEXT://127.0.0.1:-1"],
        ["PLAINTEXT://::1:9092"],
        ["://127.0.0.1:9092"],
        ["PLAINTEXT://a:1", "plaintext://b:2"],
        ["NOPE://a:1"],
    ],
)
def test_what_is_no_endpoint(items):
    with pytest.raises(ConfigError, match=r"^listeners is '.*', but must be "):
        parse_endpoints("listeners", items, PROTOCOLS)


def test_the_protocol_map():
    assert parse_protocol_map(" A:PLAINTEXT , b:ssl") == {"A": "PLAINTEXT", "B": "SSL"}
    assert parse_protocol_map("") == {}
    for wrong in ("A", "A:TLS", "A:SSL,a:SSL", ":SSL"):
        with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map"):
            parse_protocol_map(wrong)


def of(*items):
    return parse_endpoints("listeners", items, PROTOCOLS)


@pytest.mark.parametrize(
    "endpoints",
    [
        of("PLAINTEXT://127.0.0.1:9092", "SSL://[::1]:9092"),
        of("PLAINTEXT://:9092", "SSL://:9093"),
        of("PLAINTEXT://:0", "SSL://:0"),
    ],
)
def test_listeners_that_stand_side_by_side(endpoints):
    check_ports(endpoints, "")


@pytest.mark.parametrize(
    "endpoints",
    [
        of("PLAINTEXT://127.0.0.1:9092", "SSL://127.0.0.2:9092"),
        of("PLAINTEXT://:9092", "SSL://127.0.0.1:9092"),
        of("PLAINTEXT://localhost:9092", "SSL://[::1]:9092"),
        of("PLAINTEXT://[::1]:9092", "SSL://[::2]:9092"),
    ],
)
def test_listeners_in_each_others_way(endpoints):
    with pytest.raises(ConfigError, match="no two listeners"):
        check_ports(endpoints, "")

import pytest

from barnabas.security.clients.jaas import parse_jaas


def test_a_login_module():
    module = parse_jaas("""a.Module required username="al\\"ice;" password='s=e c' tokenauth=true debug="" ;""")
    assert module == ("a.Module", {"username": 'al"ice;', "password": "s=e c", "tokenauth": "true", "debug": ""})
    assert "s=e" not in repr(module)


def test_without_options():
    assert parse_jaas("a.Module required;") == ("a.Module", {})


@pytest.mark.parametrize(
    "text",
    [
        'a.Module required password="secret"',
        'a.Module password="secret";',
        'a.Module required password="secret;',
        'a.Module required password "secret";',
        'a.Module required password="secret"; b.Module required;',
        "secret",
    ],
)
def test_what_is_no_login_module_is_refused_without_showing_it(text):
    with pytest.raises(ValueError) as refused:
        parse_jaas(text)
    assert "secret" not in str(refused.value)

"""The grammar of ``sasl.jaas.config``; the texts of errors are those of Apache Kafka's ``JaasConfig``."""

import pytest

from barnabas.security.sasl.jaas import JaasError, login_module

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN} REQUIRED user_a='it''s' ;", None),
        (f"{PLAIN} Required;", {}),
        (f'{PLAIN} required\n  user_a="x" // a comment\n  /* another; */ user_b="y";', {"user_a": "x", "user_b": "y"}),
        (f"{PLAIN} optional useKeyTab=true storeKey=true;", {"useKeyTab": "true", "storeKey": "true"}),
        (rf'{PLAIN} required user_a="say \"hi\"" user_b="\101\n\\";', {"user_a": 'say "hi"', "user_b": "A\n\\"}),
        (f'{PLAIN} required user_a="1" user_a="2";', {"user_a": "2"}),
        (f'{PLAIN} required user_a="=;,";', {"user_a": "=;,"}),
    ],
)
def test_options(text, options):
    if options is None:
        with pytest.raises(JaasError):
            login_module(text)
    else:
        assert login_module(text) == (PLAIN, options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        (PLAIN, "Login module control flag not specified in JAAS config"),
        (f"{PLAIN} ;", "Login module control flag is not available in the JAAS config"),
        (f"{PLAIN} needed;", "Invalid login module control flag 'needed' in JAAS config"),
        (f'{PLAIN} required user_a="x"', "JAAS config entry not terminated by semi-colon"),
        (f"{PLAIN} required user_a=;", "Value not specified for key 'user_a' in JAAS config"),
        (f"{PLAIN} required user_a", "Value not specified for key 'user_a' in JAAS config"),
        (f"{PLAIN} required; {PLAIN} required;", "JAAS config property contains 2 login modules, should be 1 module"),
    ],
)
def test_errors(text, message):
    with pytest.raises(JaasError) as refusal:
        login_module(text)
    assert str(refusal.value) == message


def test_no_password_is_shown():
    assert "xyzzy" not in repr(login_module(f'{PLAIN} required user_a="xyzzy";'))

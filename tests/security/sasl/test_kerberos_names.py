"""The names that Kerberos principals become, held against Kafka's KerberosRuleTest and KerberosNameTest."""

import pytest

from barnabas.config.validators import InvalidValue
from barnabas.security.sasl.kerberos_names import KerberosNames
from barnabas.security.tls.principal_mapping import NoMatchingRule

RULES = [
    r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[2:$1@$0](.*@OTHER)s/@.*//U",
    "RULE:[1:$1;$0](.*;LOWER)s/;.*///L",
    "DEFAULT",
]


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("App.service-name@REALM.COM", "service-name"),
        ("App.service-name/example.com@REALM.COM", "service-name"),
        ("user@REALM.COM", "user"),
        ("service/host@REALM.COM", "service"),
        ("service/host@OTHER", "SERVICE"),
        ("Alice@LOWER", "alice"),
        ("simple", "simple"),
    ],
)
def test_names(principal, name):
    assert KerberosNames(RULES, "REALM.COM").name_of(principal) == name


@pytest.mark.parametrize("principal", ["user@UNKNOWN", "a/b/c@REALM.COM", "a@b@c", "@@"])
def test_principals_without_a_name(principal):
    with pytest.raises(NoMatchingRule):
        KerberosNames(RULES, "REALM.COM").name_of(principal)


def test_a_name_is_simple():
    with pytest.raises(NoMatchingRule, match="Non-simple name user@REALM"):
        KerberosNames(["RULE:[1:$1@$0]"], "REALM").name_of("user@REALM")


def test_a_parameter_that_is_not_there():
    with pytest.raises(NoMatchingRule):
        KerberosNames(["RULE:[1:$2]"], "REALM").name_of("user@REALM")


def test_without_g_the_first_occurrence_is_replaced():
    assert KerberosNames(["RULE:[1:$1]s/a/b/"], "R").name_of("aaa@R") == "baa"
    assert KerberosNames(["RULE:[1:$1]s/a/b/g"], "R").name_of("aaa@R") == "bbb"


@pytest.mark.parametrize(
    "rule", ["default", "DEFAUL", "DEFAULT/L", "RULE:[x:$1]", "RULE:[1:$1](a", "RULE:[1:$1](a)x", "RULE:[1:$1](+)"]
)
def test_rules_that_are_not_valid(rule):
    with pytest.raises(InvalidValue, match="Invalid rule"):
        KerberosNames([rule], "REALM")

"""Rules and names of Apache Kafka's ``SslPrincipalMapperTest``, and a few more."""

import pytest

from barnabas.config.validators import InvalidValue
from barnabas.security.tls.principal_mapping import NoMatchingRule, PrincipalMapping

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_counts(name, mapped):
    assert PrincipalMapping(RULES).name_of(name) == mapped


@pytest.mark.parametrize(
    ("rule", "name", "mapped"),
    [
        ("RULE:^CN=(.*?),.*$/$1/", "CN=a,O=b", "a"),
        ("RULE:^CN=(.*?),.*$/$10/", "CN=a,O=b", "a0"),
        ("RULE:^CN=(.*?),.*$/x\\/$1\\$1/", "CN=a,O=b", "x/a$1"),
        ("RULE:^CN=(.*?),.*$/$2/", "CN=a,O=b", "$2"),
        ("RULE:^CN=((\\\\, *|\\w)+)(,.*|$)/$1/,DEFAULT", "CN=Tkac\\, Adam,OU=ITZ", "Tkac\\, Adam"),
        ("", "CN=a", None),
        ("RULE:^O=x$/y/", "CN=a", None),
    ],
)
def test_rules(rule, name, mapped):
    mapping = PrincipalMapping(rule)
    if mapped is None:
        with pytest.raises(NoMatchingRule):
            mapping.name_of(name)
    else:
        assert mapping.name_of(name) == mapped


@pytest.mark.parametrize(
    "rule", ["default", "DEFAUL", "DEFAULT/L", "RULE:CN=(.*?),OU=(.*?)/$1", "RULE:^CN=(.*?),.*$/$1/LU", "RULE:(/$1/"]
)
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(InvalidValue):
        PrincipalMapping(rule)

"""The requests about ACLs without an authorizer; with one they are in ``rights_scenarios.py``."""

from ..steps import ask, scenario

ANY = {
    **dict.fromkeys(("ResourceTypeFilter", "PatternTypeFilter", "Operation", "PermissionType"), 1),
    **dict.fromkeys(("ResourceNameFilter", "PrincipalFilter", "HostFilter")),
}
READ = {
    "ResourceType": 2,
    "ResourceName": "~t",
    "ResourcePatternType": 3,
    "Principal": "User:a",
    "Host": "*",
    "Operation": 3,
    "PermissionType": 3,
}

SCENARIOS = [
    scenario("security is disabled", "DescribeAcls", ask("DescribeAcls", **ANY)),
    scenario("security is disabled", "CreateAcls", ask("CreateAcls", Creations=[READ, READ | {"ResourceName": ""}])),
    scenario("security is disabled", "DeleteAcls", ask("DeleteAcls", Filters=[ANY, ANY])),
]

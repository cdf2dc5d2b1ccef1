"""Cases for members, endpoints, maintenance, users and roles, as they are on one server."""
from compare import case

ALL = ("simple", "fields", "json", "protobuf", "table")
TOOK = (r"took = [^\n]*", "took"), (r'"took":"[^"]*"', "took"), (r'"Took" : [^\n]*', "took"), (r"took \S+", "took")
# The columns of a table are as wide as the time in them.
TOOK_TABLE = *TOOK, (r"[0-9.]+(ms|µs|s)\b *", "took"), (r"(?:─|-)+", "-"), (r"  +", " ")
# Both servers have received other requests by then, and their sizes are those of their files.
RAFT = ((r'"raft(Index|AppliedIndex)":\d+', "RAFT"), (r'"Raft(Applied)?Index" : \d+', "RAFT"),
        (r", \d+, \d+, , , false\n", ", RAFT, , , false\n"), (r", \d+, \d+, \n", ", RAFT, \n"),
        (r'"(dbSize|dbSizeInUse)":\d+', "SIZE"), (r'"DBSize(InUse)?" : \d+', "SIZE"), (r"\d+ kB, (\d+ kB, \d+%, )?", "SIZE, "),
        (r"(?:│|\|) +\d+ (?:│|\|) +\d+ (?:│|\|) +(?:│|\|)", "RAFT"), (r"\d+ kB", "SIZE"), (r"\d+%", "PERCENT"),
        (r"(?:─|-)+", "-"), (r"  +", " "))
NOT_THERE = {"ETCDCTL_ENDPOINTS": "127.0.0.1:1"}
# The files of the two servers contain their addresses, and a real etcd's has free pages.
HASH = ((r'"totalSize":\d+', "SIZE"), (r'"Size" : \d+', "SIZE"), (r"\d+ kB", "SIZE"), (r'"hash":\d+', "HASH"),
        (r'"Hash" : \d+', "HASH"), (r"\b[0-9a-f]{6,8}, ", "HASH, "), (r"\| +[0-9a-f]{6,8} \|", "HASH"),
        # The width of a table depends on the digits of the hash.
        (r"\| +HASH +\|", "HASH"), (r"(?m)^\+-+", "+-"))

MEMBERS = [
    case("member list", formats=ALL), case("member list extra"), case("member list --consistency s", only="3.7"),
    case("member list --consistency x", only="3.7"), case("mem li"),
    case("member add"), case("member add a"), case("member add a http://b:1"), case("member add a HTTP://b:1 http://c:1"),
    case("member add a b"), case("member add a --peer-urls ''"), case("member add a --peer-urls bogus"),
    case("member add a --peer-urls http://127.0.0.1:1,bogus"),
    case("member remove"), case("member remove x"), case("member remove 12345678901234567890"), case("member remove 1"),
    case("member remove 0x1"), case("member remove -- -1"), case("member remove ''"), case("member remove 1 2"),
    case("member update"), case("member update x"), case("member update 1"), case("member update 1 --peer-urls http://127.0.0.1:1"),
    case("member update 1 --peer-urls bogus"), case("member update 1 2 --peer-urls http://127.0.0.1:1"),
    case("member promote"), case("member promote x"), case("member promote 1"), case("member promote 1 2"),
    case("member bogus", code_only=True), case("member", code_only=True),
]

ENDPOINTS = [
    case("put a 1"), case("put a 2"), case("del a"),
    *(case(f"endpoint health -w {form}", replace=TOOK) for form in ("simple", "fields", "json")),
    case("endpoint health -w table", replace=TOOK_TABLE), case("endpoint health -w protobuf"), case("endpoint health extra", replace=TOOK),
    case("endpoint health --cluster", replace=TOOK),
    case("endpoint health --command-timeout 200ms --dial-timeout 200ms", env=NOT_THERE, replace=TOOK),
    case("endpoint health -w json --command-timeout 200ms --dial-timeout 200ms", env=NOT_THERE, replace=TOOK),
    *(case(f"endpoint status -w {form}{more}", replace=RAFT) for form in ("simple", "fields", "json", "table")
      for more in ("", " --hex", " --cluster")),
    case("endpoint status -w protobuf"), case("endpoint status -w bogus"),
    case("endpoint status --command-timeout 200ms --dial-timeout 200ms", env=NOT_THERE, only="3.7"),
    case("endpoint status -w json --command-timeout 200ms --dial-timeout 200ms", env=NOT_THERE, only="3.7"),
    *(case(f"endpoint hashkv{more}", formats=ALL) for more in ("", " --rev 2", " --cluster")),
    case("endpoint hashkv --rev 99999"), case("endpoint hashkv --rev x"),
    case("endpoint hashkv --command-timeout 200ms --dial-timeout 200ms", env=NOT_THERE, only="3.7"),
    case("endpoint bogus", code_only=True), case("endpoint", code_only=True),
]

MAINTENANCE = [
    case("put a 1"),
    case("alarm list", formats=("simple", "fields", "json", "protobuf", "table")), case("alarm list x"),
    case("alarm disarm", formats=("simple", "json", "protobuf", "table")), case("alarm disarm -w fields", only="3.7"),
    case("alarm disarm x"),
    case("defrag", replace=TOOK), case("defrag --cluster", replace=TOOK), case("defrag x", replace=TOOK),
    case("defrag --command-timeout 200ms --dial-timeout 200ms", env=NOT_THERE, replace=TOOK),
    case("snapshot save $S/a.db"), case("snapshot save a.db"), case("snapshot save $S/missing/a.db"), case("snapshot save"),
    case("snapshot save a b"), case("snapshot save a.db -w json"), case("snapshot save a.db --command-timeout 30s"),
    case("snapshot save a.db", env={"ETCDCTL_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2"}),
    case("snapshot status a.db", formats=ALL, only="3.4", replace=HASH), case("snapshot status", only="3.4"),
    case("snapshot status missing", only="3.4", code_only=True),
    case("snapshot restore a.db --data-dir r", only="3.4", code_only=True), case("snapshot restore", only="3.4"),
    case("snapshot restore a.db --name n --skip-hash-check --wal-dir w --initial-cluster n=http://127.0.0.1:1 "
         "--initial-cluster-token t --initial-advertise-peer-urls http://127.0.0.1:1", only="3.4", code_only=True),
    case("snapshot status a.db", only="3.7", code_only=True),
    case("completion", only="3.7"), case("completion x", only="3.7"), case("completion bash", only="3.7", code_only=True),
    case("snapshot bogus", code_only=True), case("snapshot", code_only=True),
    case("move-leader"), case("move-leader x"), case("move-leader 1"), case("move-leader 1 2"), case("move-leader 1 -w json"),
    case("move-leader 1", env={"ETCDCTL_ENDPOINTS": "127.0.0.1:1"}, code_only=True),
    case("downgrade validate", only="3.7"), case("downgrade validate 3.6", only="3.7"), case("downgrade validate 3.6 x", only="3.7"),
    case("downgrade validate ''", only="3.7"), case("downgrade validate x", only="3.7"), case("downgrade validate 3.2", only="3.7"),
    case("downgrade enable", only="3.7"), case("downgrade enable x", only="3.7"), case("downgrade cancel", only="3.7"),
    case("downgrade validate 3.6", only="3.4"),
    case("version"), case("version x"), case("check perf --load x"), case("check datascale --load x"),
    case("put /etcdctl-check-perf/x 1"), case("check perf"), case("put /p/x 1"), case("check perf --prefix /p/"),
    case("check datascale --prefix /p/"), case("check perf --prefix /p/ --auto-compact --auto-defrag"),
    case("check datascale --prefix /p/ --auto-compact --auto-defrag"), case("check bogus", code_only=True),
    case("make-mirror"), case("make-mirror a b"), case("make-mirror --prefix a --dest-prefix b --no-dest-prefix $E"),
    case("make-mirror --max-txn-ops x $E"), case("make-mirror --max-txn-ops=-1 $E"),
    case("make-mirror --rev 3 $E", only="3.4"), case("member list --consistency s", only="3.4"), case("defrag --data-dir x", only="3.7"),
    case("make-mirror --dest-cacert /nonexistent $E"), case("make-mirror --dest-cert /nonexistent $E"),
    case("make-mirror --dest-key /nonexistent $E"), case("make-mirror --dest-cert /nonexistent --dest-key /nonexistent $E"),
    case("make-mirror --dest-insecure-transport=x $E"), case("make-mirror --rev x $E", only="3.7"),
    case("make-mirror --dest-user u --dest-password p 127.0.0.1:1", only="3.7"), case("make-mirror --bogus $E"),
]

ROOT = "--user root:pw"
# The original runs stty, which complains where there is no terminal.
STTY = ((r"stty: [^\n]*\n", ""),)
USERS = [
    case("user list", formats=ALL), case("user list x"), case("user get"), case("user get none"), case("user get a b"),
    case("user add"), case("user add a b"), case("user add :x"), case("user add ''", replace=STTY),
    case("user add '' --new-user-password x"),
    case("user add u1:pw"), case("user add u1:pw"), case("user add u2:p:w -w fields"), case("user add u3:pw -w json"),
    case("user add u4:pw -w protobuf"), case("user add u5:pw -w table"), case("user add u6 --new-user-password pw"),
    case("user add u:7 --new-user-password pw"), case("user add u8 --no-password"), case("user add u9:x --no-password"),
    case("user add u10 --interactive=false", stdin="pw\n"), case("user add u11 --interactive=false", stdin="  two words\n"),
    case("user add u12 --interactive=false", stdin=""), case("user add u13", stdin="pw\npw\n", replace=STTY),
    case("user add u14", stdin="a\nb\n", replace=STTY),
    case("user add u15", stdin="\n", replace=STTY), case("user add u16", stdin="  pw \npw\n", replace=STTY), case("user list"),
    case("user passwd"), case("user passwd u1 x"), case("user passwd none --interactive=false", stdin="x\n"),
    case("user passwd u1 --interactive=false", stdin="new\n"), case("user passwd u1", stdin="p\np\n", replace=STTY),
    case("user passwd u1", stdin="p\nq\n", replace=STTY),
    *(case(f"user passwd u1 --interactive=false -w {form}", stdin="new\n") for form in ALL),
    case("user get u1", formats=ALL),
    case("user delete"), case("user delete none"), case("user delete u6"), case("user delete u2 -w json"), case("user delete u3 -w fields"),
    case("user delete u4 -w protobuf"), case("user delete u5 -w table"), case("user delete u1 u8"),
    case("user grant-role"), case("user grant-role u1"), case("user grant-role u1 none"), case("user grant-role none none"),
    case("role add r1"), case("role add r2"), case("user grant-role u1 r1"), case("user grant-role u1 r2 -w json"),
    case("user grant-role u1 r2 -w fields"), case("user get u1", formats=ALL), case("user get u1 --detail"),
    case("user get u1 --detail -w json"),
    case("user revoke-role"), case("user revoke-role u1"), case("user revoke-role u1 none"), case("user revoke-role u1 r1"),
    case("user revoke-role u1 r2 -w fields"), case("user revoke-role u1 r2"), case("user bogus", code_only=True),
    case("user", code_only=True),
]

ROLES = [
    case("role list", formats=ALL), case("role list x"), case("role get"), case("role get none"), case("role add"), case("role add a b"),
    case("role add ''"), case("role add r"), case("role add r"), case("role add r2 -w json"), case("role add r3 -w fields"),
    case("role add r4 -w protobuf"), case("role add r5 -w table"), case('role add \'quo"ted é\''), case("role list", formats=ALL),
    case("role get r", formats=ALL),
    case("role grant-permission"), case("role grant-permission r"), case("role grant-permission r read"),
    case("role grant-permission r bogus k"), case("role grant-permission none read k"), case("role grant-permission r READ k"),
    case("role grant-permission r write k -w json"), case("role grant-permission r readwrite k -w fields"),
    case("role grant-permission r read a b"), case("role grant-permission r write /p/ --prefix"),
    case("role grant-permission r read f --from-key"),
    case("role grant-permission r read a b --prefix"), case("role grant-permission r read a b --from-key"),
    case("role grant-permission r read a --prefix --from-key"), case("role grant-permission r read '' --prefix --from-key"),
    case("role grant-permission r read b a"), case("role grant-permission r read a b c"), case("role get r", formats=ALL),
    case("role grant-permission r2 readwrite '' --prefix"), case("role get r2"), case("role grant-permission r3 read ''"),
    case("role get r3"),
    case("role grant-permission r4 read '' --from-key"), case("role get r4"), case("role grant-permission r5 read '' x"),
    case("role get r5"),
    case("role grant-permission r5 read é ü -w protobuf"), case("role get r5", formats=ALL),
    case("role revoke-permission"), case("role revoke-permission r"), case("role revoke-permission r none"),
    case("role revoke-permission none k"),
    case("role revoke-permission r k"), case("role revoke-permission r a b"), case("role revoke-permission r /p/ --prefix"),
    case("role revoke-permission r f --from-key"), case("role revoke-permission r a b --prefix"),
    case("role revoke-permission r2 '' --prefix"),
    case("role revoke-permission r3 '' -w json"), case("role revoke-permission r4 '' --from-key"), case("role get r", formats=ALL),
    case("role delete"), case("role delete none"), case("role delete r"), case("role delete r2 -w json"), case("role delete r3 -w fields"),
    case("role delete r4 -w protobuf"), case("role delete r5 -w table"), case("role list"), case("role bogus", code_only=True),
]

AUTH = [
    case("auth status", formats=ALL, only="3.7"), case("auth status x", only="3.7"), case("auth status", only="3.4", code_only=True),
    case("auth enable x"), case("auth disable x"), case("auth disable"),
    case("auth enable"), case("user add root:pw"), case("user add u:pw"), case("role add r"),
    case("role grant-permission r read a --prefix"),
    case("user grant-role u r"), case("auth enable"), case(f"{ROOT} user get root"), case(f"{ROOT} role get root", formats=ALL),
    case(f"{ROOT} auth status -w json", only="3.7"), case("user list"), case("role list"), case("member list -w json", code_only=True),
    case(f"{ROOT} user list"), case("--user u:pw user list"), case("--user u:pw user get u"), case("--user u:pw role get r"),
    case("--user u:pw role get root"), case("--user u:wrong user get u"), case("--user none:pw user get u"), case("--user u:pw alarm list"),
    case("--user u:pw endpoint health", replace=TOOK), case("--user u:pw defrag", replace=TOOK), case("--user u:pw snapshot save a.db"),
    case(f"{ROOT} snapshot save a.db"), case(f"{ROOT} endpoint health --cluster", only="3.7", replace=TOOK), case("--user u:pw put a 1"),
    case(f"{ROOT} put a 1"), case("--user u:pw get a"), case("--user root user get root", stdin="pw\n", replace=STTY),
    case(f"{ROOT} user passwd u --interactive=false", stdin="x\n"),
    case("--user u:x get a"), case(f"{ROOT} user delete root"), case(f"{ROOT} user revoke-role root root"),
    case(f"{ROOT} role delete root"),
    case("auth disable"), case(f"{ROOT} auth disable -w json"), case("user list"), case("auth", code_only=True),
    case("auth bogus", code_only=True),
]

TABLES = {"members": MEMBERS, "endpoints": ENDPOINTS, "maintenance": MAINTENANCE, "users": USERS, "roles": ROLES, "auth": AUTH}

# For a short run, which takes everything that changes something. Without hashes: keys of the cases before have leases, whose ids are
# random and part of the hash.
SHORT = [
    case("member list -w table"), case("member remove x"), case("role add r"), case("role grant-permission r readwrite /p/ --prefix"),
    case("role grant-permission r read a b"), case("role get r"), case("role revoke-permission r a b"), case("user add u:pw"),
    case("user grant-role u r"), case("user get u -w json"), case("user add", only="3.7"), case("auth enable", only="3.4"),
    case("snapshot save a.db"), case("endpoint status -w fields", replace=RAFT), case("endpoint health -w json", replace=TOOK),
    case("alarm list -w json"), case("defrag", replace=TOOK), case("version"),
]

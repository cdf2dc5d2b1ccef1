/* Members, endpoints, maintenance and the tools: names, words, flags and texts. */
#include "cmd/ctl/admin/admin.h"
#include "cmd/ctl/offline/offline.h"

#define ANY_WORDS UINT32_MAX
#define FLAGS(rows, type) \
    .flags = (rows), .flag_count = COUNT_OF(rows), .flags_bytes = sizeof(struct type)

/* -- Flags -- */

#define MEMBER(field) offsetof(struct member_flags, field)

static const struct option member_list_flags[] = {
    {.name = "consistency",
     .kind = OPTION_TEXT,
     .fallback = "l",
     .help = "l: the newest list, which needs a majority; s: what the asked member knows.",
     .offset = MEMBER(consistency)},
};
static const struct option member_add_flags[] = {
    {.name = "peer-urls",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The URLs of the new member for the others, separated by commas.",
     .offset = MEMBER(peer_urls)},
    {.name = "learner",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "The new member receives changes, but does not vote until it is promoted.",
     .offset = MEMBER(learner)},
};
static const struct option member_update_flags[] = {
    {.name = "peer-urls",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The URLs of the member for the others, separated by commas.",
     .offset = MEMBER(peer_urls)},
};

#define ENDPOINT(field) offsetof(struct endpoint_flags, field)

#define CLUSTER_FLAG                                                                             \
    {                                                                                            \
        .name = "cluster", .kind = OPTION_BOOL, .fallback = "false",                             \
        .help = "Use the endpoints of all members of the cluster.", .offset = ENDPOINT(cluster), \
    }

static const struct option cluster_flags[] = {CLUSTER_FLAG};
static const struct option defrag_flags[] = {
    CLUSTER_FLAG,
    {.name = "data-dir",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The data directory of an etcd that is not running, instead of an endpoint.",
     .offset = ENDPOINT(data_dir)},
};
static const struct option hashkv_flags[] = {
    CLUSTER_FLAG,
    {.name = "rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "The newest revision that counts; 0 is the newest there is.",
     .offset = ENDPOINT(revision)},
};

#define RESTORE(field) offsetof(struct restore_flags, field)
#define RESTORE_IGNORED(flag)                                                          \
    {                                                                                  \
        .name = (flag), .kind = OPTION_TEXT, .fallback = "", .offset = OPTION_NOWHERE, \
        .help = "Has no effect: vigil serve has this flag.",                           \
    }

static const struct option restore_flags[] = {
    {.name = "data-dir",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The data directory to make, new or empty: by default NAME.etcd.",
     .offset = RESTORE(data_dir)},
    {.name = "name",
     .kind = OPTION_TEXT,
     .fallback = "default",
     .help = "The member's name, for the default of --data-dir.",
     .offset = RESTORE(name)},
    {.name = "skip-hash-check",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Accept a file with a wrong or missing checksum, such as a copy of etcd's db file.",
     .offset = RESTORE(skip_hash_check)},
    RESTORE_IGNORED("wal-dir"),
    RESTORE_IGNORED("initial-cluster"),
    RESTORE_IGNORED("initial-cluster-token"),
    RESTORE_IGNORED("initial-advertise-peer-urls"),
};

#define CHECK(field) offsetof(struct check_flags, field)

#define CHECK_FLAGS(prefix_text)                                                                  \
    {.name = "load",                                                                              \
     .kind = OPTION_TEXT,                                                                         \
     .fallback = "s",                                                                             \
     .help = "The size of the load: s, m, l or xl (small, medium, large, xLarge).",               \
     .offset = CHECK(load)},                                                                      \
        {.name = "prefix",                                                                        \
         .kind = OPTION_TEXT,                                                                     \
         .fallback = (prefix_text),                                                               \
         .help = "The keys that are written begin with this; a prefix that has keys is refused.", \
         .offset = CHECK(prefix)},                                                                \
        {.name = "auto-compact",                                                                  \
         .kind = OPTION_BOOL,                                                                     \
         .fallback = "false",                                                                     \
         .help = "Compact the history afterwards.",                                               \
         .offset = CHECK(auto_compact)},                                                          \
    {                                                                                             \
        .name = "auto-defrag", .kind = OPTION_BOOL, .fallback = "false",                          \
        .help = "Defragment the store afterwards.", .offset = CHECK(auto_defrag),                 \
    }

static const struct option perf_flags[] = {CHECK_FLAGS("/etcdctl-check-perf/")};
static const struct option datascale_flags[] = {CHECK_FLAGS("/etcdctl-check-datascale/")};

#define MIRROR(field) offsetof(struct mirror_flags, field)

static const struct option mirror_flags[] = {
    {.name = "prefix",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "Mirror the keys that begin with this; all keys if it is empty.",
     .offset = MIRROR(prefix)},
    {.name = "rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "Begin with the changes of this revision, and copy nothing older.",
     .offset = MIRROR(revision)},
    {.name = "max-txn-ops",
     .kind = OPTION_INT,
     .fallback = "128",
     .help = "The most changes in one transaction at the destination.",
     .offset = MIRROR(max_txn_ops),
     .min = 0,
     .max = INT64_MAX},
    {.name = "dest-prefix",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "At the destination the keys begin with this in place of --prefix.",
     .offset = MIRROR(dest_prefix)},
    {.name = "no-dest-prefix",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "At the destination the keys are without the prefix.",
     .offset = MIRROR(no_dest_prefix)},
    {.name = "dest-cert",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The client's certificate for the destination, a file.",
     .offset = MIRROR(cert_file)},
    {.name = "dest-key",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The key of that certificate, a file.",
     .offset = MIRROR(key_file)},
    {.name = "dest-cacert",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "A file of certificates that may have signed the destination's.",
     .offset = MIRROR(ca_file)},
    {.name = "dest-insecure-transport",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "Connect to the destination without TLS unless another flag asks for it.",
     .offset = MIRROR(insecure_transport)},
    {.name = "dest-user",
     .kind = OPTION_TEXT,
     .fallback = "",
     .secret = true,
     .help =
         "NAME or NAME:PASSWORD at the destination. Without a password the command asks for it.",
     .offset = MIRROR(user)},
    {.name = "dest-password",
     .kind = OPTION_TEXT,
     .fallback = "",
     .secret = true,
     .help = "The password at the destination, if --dest-user does not contain it.",
     .offset = MIRROR(password)},
};

#define MIGRATE(field) offsetof(struct migrate_flags, field)

static const struct option migrate_flags[] = {
    {.name = "data-dir",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The data directory of an etcd that is not running.",
     .offset = MIGRATE(data_dir)},
    {.name = "wal-dir",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "Its write-ahead log, if that is not in the data directory.",
     .offset = MIGRATE(wal_dir)},
    {.name = "transformer",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "A program that reads the nodes of the v2 store and writes the keys to be stored.",
     .offset = MIGRATE(transformer)},
    {.name = "no-ttl",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Leave out keys that expire; otherwise they are stored for ever.",
     .offset = MIGRATE(no_ttl)},
};

/* -- Commands -- */

static const struct ctl_command commands[] = {
    {.path = "member list",
     .words = "",
     .summary = "Lists the members of the cluster",
     .examples = "vigil member list -w table\n",
     FLAGS(member_list_flags, member_flags),
     .flags_not_3_4 = " consistency ",
     .words_max = ANY_WORDS,
     .run = admin_member_list},
    {.path = "member add",
     .words = "<memberName>",
     .summary = "Adds a member, which must then be started with the settings that are printed",
     .examples = "vigil member add c --peer-urls http://10.0.0.3:2380 --learner\n",
     FLAGS(member_add_flags, member_flags),
     .words_min = 1,
     .words_max = ANY_WORDS,
     .words_error = "member name not provided",
     .run = admin_member_add},
    {.path = "member remove",
     .words = "<memberID>",
     .summary = "Removes a member",
     .examples = "vigil member remove 8e9e05c52164694d\n",
     .words_min = 1,
     .words_max = 1,
     .words_error = "member ID is not provided",
     .run = admin_member_remove},
    {.path = "member update",
     .words = "<memberID>",
     .summary = "Changes the address of a member for the others",
     .examples = "vigil member update 8e9e05c52164694d --peer-urls http://10.0.0.7:2380\n",
     FLAGS(member_update_flags, member_flags),
     .words_min = 1,
     .words_max = 1,
     .words_error = "member ID is not provided",
     .run = admin_member_update},
    {.path = "member promote",
     .words = "<memberID>",
     .summary = "Lets a learner vote",
     .words_min = 1,
     .words_max = 1,
     .words_error = "member ID is not provided",
     .run = admin_member_promote},

    {.path = "endpoint health",
     .words = "",
     .summary = "Checks whether each endpoint answers a read and has no alarm",
     .examples = "vigil endpoint health --cluster\n",
     FLAGS(cluster_flags, endpoint_flags),
     .words_max = ANY_WORDS,
     .run = admin_endpoint_health},
    {.path = "endpoint status",
     .words = "",
     .summary = "Shows version, size, leader and revision numbers of each endpoint",
     .examples = "vigil endpoint status --cluster -w table\n",
     FLAGS(cluster_flags, endpoint_flags),
     .words_max = ANY_WORDS,
     .run = admin_endpoint_status},
    {.path = "endpoint hashkv",
     .words = "",
     .summary = "Shows a hash of the history of each endpoint, which members have in common",
     .examples = "vigil endpoint hashkv --cluster --rev 1200\n",
     FLAGS(hashkv_flags, endpoint_flags),
     .words_max = ANY_WORDS,
     .run = admin_endpoint_hashkv},

    {.path = "alarm list",
     .words = "",
     .summary = "Lists the alarms that are raised",
     .words_error = "alarm list command accepts no arguments",
     .run = admin_alarm_list},
    {.path = "alarm disarm",
     .words = "",
     .summary = "Lowers all alarms",
     .examples = "vigil compaction 1200 && vigil defrag && vigil alarm disarm\n",
     .words_error = "alarm disarm command accepts no arguments",
     .run = admin_alarm_disarm},
    {.path = "defrag",
     .words = "",
     .summary = "Gives the space that deleted data took back to the file system",
     .examples = "vigil defrag --cluster --command-timeout 60s\n",
     FLAGS(defrag_flags, endpoint_flags),
     .flags_only_3_4 = " data-dir ",
     .words_max = ANY_WORDS,
     .run = admin_defrag},
    {.path = "snapshot save",
     .words = "<filename>",
     .summary = "Writes the whole store of one server into a file",
     .examples = "vigil snapshot save /backup/today.db\n"
                 "vigil --endpoints https://db1:2379 --cacert ca.pem snapshot save db1.db\n",
     .words_max = ANY_WORDS, /* the texts of 3.4 and 3.7 differ */
     .run = admin_snapshot_save},
    {.path = "snapshot status",
     .words = "<filename>",
     .summary = "Shows what a snapshot contains",
     .words_min = 1,
     .words_max = 1,
     .words_error = "snapshot status requires exactly one argument",
     .only_3_4 = true,
     .run = admin_snapshot_status},
    {.path = "snapshot restore",
     .words = "<filename>",
     .summary = "Makes a data directory of Vigil from a snapshot",
     FLAGS(restore_flags, restore_flags),
     .words_min = 1,
     .words_max = 1,
     .words_error = "snapshot restore requires exactly one argument",
     .only_3_4 = true,
     .run = admin_snapshot_restore},
    {.path = "move-leader",
     .words = "<transferee-member-id>",
     .summary = "Hands the leadership of the cluster over to another member",
     .examples = "vigil --endpoints a:2379,b:2379,c:2379 move-leader 8e9e05c52164694d\n",
     .words_min = 1,
     .words_max = 1,
     .words_error = "move-leader command needs 1 argument",
     .run = admin_move_leader},
    {.path = "downgrade validate",
     .words = "<TARGET_VERSION>",
     .summary = "Asks whether the cluster can go back to a version",
     .examples = "vigil downgrade validate 3.6\n",
     .words_min = 1,
     .words_max = ANY_WORDS,
     .words_error = "TARGET_VERSION not provided",
     .not_3_4 = true,
     .run = admin_downgrade_validate},
    {.path = "downgrade enable",
     .words = "<TARGET_VERSION>",
     .summary = "Lets the members be replaced by those of an older version",
     .words_min = 1,
     .words_max = ANY_WORDS,
     .words_error = "TARGET_VERSION not provided",
     .not_3_4 = true,
     .run = admin_downgrade_enable},
    {.path = "downgrade cancel",
     .words = "",
     .summary = "Ends a downgrade that was enabled",
     .words_max = ANY_WORDS,
     .not_3_4 = true,
     .run = admin_downgrade_cancel},

    {.path = "check perf",
     .words = "",
     .summary = "Writes for a minute and says whether the server is fast enough",
     .examples = "vigil check perf --load m\n",
     FLAGS(perf_flags, check_flags),
     .words_max = ANY_WORDS,
     .run = admin_check_perf},
    {.path = "check datascale",
     .words = "",
     .summary = "Writes many keys and says how much memory the server needs for them",
     .examples = "vigil check datascale --load s --auto-compact\n",
     FLAGS(datascale_flags, check_flags),
     .words_max = ANY_WORDS,
     .run = admin_check_datascale},
    {.path = "make-mirror",
     .words = "<destination>",
     .summary = "Copies keys to another cluster and keeps them equal, until it is stopped",
     .examples = "vigil --endpoints a:2379 make-mirror b:2379\n"
                 "vigil make-mirror --prefix /app/ --dest-prefix /copy/ b:2379\n",
     FLAGS(mirror_flags, mirror_flags),
     .flags_not_3_4 = " dest-password dest-user max-txn-ops rev ",
     .words_min = 1,
     .words_max = 1,
     .words_error = "make-mirror takes one destination argument",
     .run = admin_make_mirror},
    {.path = "migrate",
     .words = "",
     .summary = "Copies the keys of the v2 API into the v3 API's database, in etcd's directory",
     FLAGS(migrate_flags, migrate_flags),
     .words_max = ANY_WORDS,
     .only_3_4 = true,
     .run = offline_migrate},
    {.path = "version",
     .words = "",
     .summary = "Prints the version of etcdctl",
     .words_max = ANY_WORDS,
     .only_etcdctl = true,
     .run = admin_version},
    {.path = "completion",
     .words = "bash|zsh|fish",
     .summary = "Writes a completion script for a shell",
     .words_max = ANY_WORDS,
     .only_etcdctl = true,
     .run = admin_completion},
};

const struct ctl_group ctl_cluster_group = {
    .title = "Cluster maintenance commands",
    .commands = commands,
    .count = COUNT_OF(commands),
};

/* Members, endpoints, maintenance and the tools: names, words, flags and texts. */
#include "cmd/ctl/admin/admin.h"
#include "cmd/ctl/offline/offline.h"

/* -- Flags -- */

static const struct option member_list_flags[] = {
    FLAG_TEXT("consistency", member_flags, consistency, "l",
              "l: the newest list, which needs a majority; s: what the asked member knows."),
};
static const struct option member_add_flags[] = {
    FLAG_TEXT("peer-urls", member_flags, peer_urls, "",
              "The URLs of the new member for the others, separated by commas."),
    FLAG_BOOL("learner", member_flags, learner,
              "The new member receives changes, but does not vote until it is promoted."),
};
static const struct option member_update_flags[] = {
    FLAG_TEXT("peer-urls", member_flags, peer_urls, "",
              "The URLs of the member for the others, separated by commas."),
};

#define CLUSTER_FLAG                              \
    FLAG_BOOL("cluster", endpoint_flags, cluster, \
              "Use the endpoints of all members of the cluster.")

static const struct option cluster_flags[] = {CLUSTER_FLAG};
static const struct option defrag_flags[] = {
    CLUSTER_FLAG,
    FLAG_TEXT("data-dir", endpoint_flags, data_dir, "",
              "The data directory of an etcd that is not running, instead of an endpoint."),
};
static const struct option hashkv_flags[] = {
    CLUSTER_FLAG,
    FLAG_INT("rev", endpoint_flags, revision, "0",
             "The newest revision that counts; 0 is the newest there is."),
};

#define RESTORE_IGNORED(flag)                                                          \
    {                                                                                  \
        .name = (flag), .kind = OPTION_TEXT, .fallback = "", .offset = OPTION_NOWHERE, \
        .help = "Has no effect: vigil serve has this flag.",                           \
    }

static const struct option restore_flags[] = {
    FLAG_TEXT("data-dir", restore_flags, data_dir, "",
              "The data directory to make, new or empty: by default NAME.etcd."),
    FLAG_TEXT("name", restore_flags, name, "default",
              "The member's name, for the default of --data-dir."),
    FLAG_BOOL("skip-hash-check", restore_flags, skip_hash_check,
              "Accept a file with a wrong or missing checksum, such as a copy of etcd's db file."),
    RESTORE_IGNORED("wal-dir"),
    RESTORE_IGNORED("initial-cluster"),
    RESTORE_IGNORED("initial-cluster-token"),
    RESTORE_IGNORED("initial-advertise-peer-urls"),
};

#define CHECK_FLAGS(keys)                                                                        \
    FLAG_TEXT("load", check_flags, load, "s",                                                    \
              "The size of the load: s, m, l or xl (small, medium, large, xLarge)."),            \
        FLAG_TEXT(                                                                               \
            "prefix", check_flags, prefix, keys,                                                 \
            "The keys that are written begin with this; a prefix that has keys is refused."),    \
        FLAG_BOOL("auto-compact", check_flags, auto_compact, "Compact the history afterwards."), \
        FLAG_BOOL("auto-defrag", check_flags, auto_defrag, "Defragment the store afterwards.")

static const struct option perf_flags[] = {CHECK_FLAGS("/etcdctl-check-perf/")};
static const struct option datascale_flags[] = {CHECK_FLAGS("/etcdctl-check-datascale/")};

static const struct option mirror_flags[] = {
    FLAG_TEXT("prefix", mirror_flags, prefix, "",
              "Mirror the keys that begin with this; all keys if it is empty."),
    FLAG_INT("rev", mirror_flags, revision, "0",
             "Begin with the changes of this revision, and copy nothing older."),
    FLAG_INT("max-txn-ops", mirror_flags, max_txn_ops, "128",
             "The most changes in one transaction at the destination.", NOT_NEGATIVE),
    FLAG_TEXT("dest-prefix", mirror_flags, dest_prefix, "",
              "At the destination the keys begin with this in place of --prefix."),
    FLAG_BOOL("no-dest-prefix", mirror_flags, no_dest_prefix,
              "At the destination the keys are without the prefix."),
    FLAG_TEXT("dest-cert", mirror_flags, cert_file, "",
              "The client's certificate for the destination, a file."),
    FLAG_TEXT("dest-key", mirror_flags, key_file, "", "The key of that certificate, a file."),
    FLAG_TEXT("dest-cacert", mirror_flags, ca_file, "",
              "A file of certificates that may have signed the destination's."),
    FLAG_TRUE("dest-insecure-transport", mirror_flags, insecure_transport,
              "Connect to the destination without TLS unless another flag asks for it."),
    FLAG_TEXT(
        "dest-user", mirror_flags, user, "",
        "NAME or NAME:PASSWORD at the destination. Without a password the command asks for it.",
        .secret = true),
    FLAG_TEXT("dest-password", mirror_flags, password, "",
              "The password at the destination, if --dest-user does not contain it.",
              .secret = true),
};

static const struct option migrate_flags[] = {
    FLAG_TEXT("data-dir", migrate_flags, data_dir, "",
              "The data directory of an etcd that is not running."),
    FLAG_TEXT("wal-dir", migrate_flags, wal_dir, "",
              "Its write-ahead log, if that is not in the data directory."),
    FLAG_TEXT("transformer", migrate_flags, transformer, "",
              "A program that reads the nodes of the v2 store and writes the keys to be stored."),
    FLAG_BOOL("no-ttl", migrate_flags, no_ttl,
              "Leave out keys that expire; otherwise they are stored for ever."),
};

/* -- Commands -- */

static const struct ctl_command commands[] = {
    COMMAND("member list", "", "Lists the members of the cluster", admin_member_list,
            FLAGS(member_list_flags, member_flags), WORDS(0, ANY_WORDS, NULL),
            .flags_not_3_4 = " consistency ", .examples = "vigil member list -w table\n"),
    COMMAND("member add", "<memberName>",
            "Adds a member, which must then be started with the settings that are printed",
            admin_member_add, FLAGS(member_add_flags, member_flags),
            WORDS(1, ANY_WORDS, "member name not provided"),
            .examples = "vigil member add c --peer-urls http://10.0.0.3:2380 --learner\n"),
    COMMAND("member remove", "<memberID>", "Removes a member", admin_member_remove,
            WORDS(1, 1, "member ID is not provided"),
            .examples = "vigil member remove 8e9e05c52164694d\n"),
    COMMAND("member update", "<memberID>", "Changes the address of a member for the others",
            admin_member_update, FLAGS(member_update_flags, member_flags),
            WORDS(1, 1, "member ID is not provided"),
            .examples = "vigil member update 8e9e05c52164694d --peer-urls http://10.0.0.7:2380\n"),
    COMMAND("member promote", "<memberID>", "Lets a learner vote", admin_member_promote,
            WORDS(1, 1, "member ID is not provided")),

    COMMAND("endpoint health", "", "Checks whether each endpoint answers a read and has no alarm",
            admin_endpoint_health, FLAGS(cluster_flags, endpoint_flags), WORDS(0, ANY_WORDS, NULL),
            .examples = "vigil endpoint health --cluster\n"),
    COMMAND("endpoint status", "",
            "Shows version, size, leader and revision numbers of each endpoint",
            admin_endpoint_status, FLAGS(cluster_flags, endpoint_flags), WORDS(0, ANY_WORDS, NULL),
            .examples = "vigil endpoint status --cluster -w table\n"),
    COMMAND("endpoint hashkv", "",
            "Shows a hash of the history of each endpoint, which members have in common",
            admin_endpoint_hashkv, FLAGS(hashkv_flags, endpoint_flags), WORDS(0, ANY_WORDS, NULL),
            .examples = "vigil endpoint hashkv --cluster --rev 1200\n"),

    COMMAND("alarm list", "", "Lists the alarms that are raised", admin_alarm_list,
            WORDS(0, 0, "alarm list command accepts no arguments")),
    COMMAND("alarm disarm", "", "Lowers all alarms", admin_alarm_disarm,
            WORDS(0, 0, "alarm disarm command accepts no arguments"),
            .examples = "vigil compaction 1200 && vigil defrag && vigil alarm disarm\n"),
    COMMAND("defrag", "", "Gives the space that deleted data took back to the file system",
            admin_defrag, FLAGS(defrag_flags, endpoint_flags), WORDS(0, ANY_WORDS, NULL),
            .flags_only_3_4 = " data-dir ",
            .examples = "vigil defrag --cluster --command-timeout 60s\n"),
    /* The texts of 3.4 and 3.7 about its words differ. */
    COMMAND("snapshot save", "<filename>", "Writes the whole store of one server into a file",
            admin_snapshot_save, WORDS(0, ANY_WORDS, NULL),
            .examples =
                "vigil snapshot save /backup/today.db\n"
                "vigil --endpoints https://db1:2379 --cacert ca.pem snapshot save db1.db\n"),
    COMMAND("snapshot status", "<filename>", "Shows what a snapshot contains",
            admin_snapshot_status, WORDS(1, 1, "snapshot status requires exactly one argument"),
            .only_3_4 = true),
    COMMAND("snapshot restore", "<filename>", "Makes a data directory of Vigil from a snapshot",
            admin_snapshot_restore, FLAGS(restore_flags, restore_flags),
            WORDS(1, 1, "snapshot restore requires exactly one argument"), .only_3_4 = true),
    COMMAND("move-leader", "<transferee-member-id>",
            "Hands the leadership of the cluster over to another member", admin_move_leader,
            WORDS(1, 1, "move-leader command needs 1 argument"),
            .examples = "vigil --endpoints a:2379,b:2379,c:2379 move-leader 8e9e05c52164694d\n"),
    COMMAND("downgrade validate", "<TARGET_VERSION>",
            "Asks whether the cluster can go back to a version", admin_downgrade_validate,
            WORDS(1, ANY_WORDS, "TARGET_VERSION not provided"), .not_3_4 = true,
            .examples = "vigil downgrade validate 3.6\n"),
    COMMAND("downgrade enable", "<TARGET_VERSION>",
            "Lets the members be replaced by those of an older version", admin_downgrade_enable,
            WORDS(1, ANY_WORDS, "TARGET_VERSION not provided"), .not_3_4 = true),
    COMMAND("downgrade cancel", "", "Ends a downgrade that was enabled", admin_downgrade_cancel,
            WORDS(0, ANY_WORDS, NULL), .not_3_4 = true),

    COMMAND("check perf", "", "Writes for a minute and says whether the server is fast enough",
            admin_check_perf, FLAGS(perf_flags, check_flags), WORDS(0, ANY_WORDS, NULL),
            .examples = "vigil check perf --load m\n"),
    COMMAND("check datascale", "",
            "Writes many keys and says how much memory the server needs for them",
            admin_check_datascale, FLAGS(datascale_flags, check_flags), WORDS(0, ANY_WORDS, NULL),
            .examples = "vigil check datascale --load s --auto-compact\n"),
    COMMAND("make-mirror", "<destination>",
            "Copies keys to another cluster and keeps them equal, until it is stopped",
            admin_make_mirror, FLAGS(mirror_flags, mirror_flags),
            WORDS(1, 1, "make-mirror takes one destination argument"),
            .flags_not_3_4 = " dest-password dest-user max-txn-ops rev ",
            .examples = "vigil --endpoints a:2379 make-mirror b:2379\n"
                        "vigil make-mirror --prefix /app/ --dest-prefix /copy/ b:2379\n"),
    COMMAND("migrate", "",
            "Copies the keys of the v2 API into the v3 API's database, in etcd's directory",
            offline_migrate, FLAGS(migrate_flags, migrate_flags), WORDS(0, ANY_WORDS, NULL),
            .only_3_4 = true),
    COMMAND("version", "", "Prints the version of etcdctl", admin_version,
            WORDS(0, ANY_WORDS, NULL), .only_etcdctl = true),
    COMMAND("completion", "bash|zsh|fish", "Writes a completion script for a shell",
            admin_completion, WORDS(0, ANY_WORDS, NULL), .only_etcdctl = true),
};

const struct ctl_group ctl_cluster_group = {
    .title = "Cluster maintenance commands",
    .commands = commands,
    .count = COUNT_OF(commands),
};

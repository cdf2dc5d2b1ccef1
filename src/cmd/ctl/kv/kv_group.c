/* The commands about keys, leases and locks: their flags, words and examples. */
#include "cmd/ctl/kv/kv.h"

static const struct option get_rows[] = {
    FLAG_BOOL("prefix", get_flags, prefix, "All keys that begin with the key."),
    FLAG_BOOL("from-key", get_flags, from_key, "The key and all that follow it."),
    FLAG_INT("limit", get_flags, limit, "0", "At most this many keys."),
    FLAG_INT("rev", get_flags, revision, "0", "As the keys were at this revision."),
    FLAG_BOOL("keys-only", get_flags, keys_only, "Without values."),
    FLAG_BOOL("count-only", get_flags, count_only, "Only how many keys there are; for -w fields."),
    FLAG_BOOL("print-value-only", get_flags, print_value_only, "Without keys; for -w simple."),
    FLAG_TEXT("order", get_flags, order, "", "ASCEND or DESCEND."),
    FLAG_TEXT("sort-by", get_flags, sort_by, "", "CREATE, KEY, MODIFY, VALUE or VERSION."),
    FLAG_TEXT("consistency", get_flags, consistency, "l",
              "l: the newest state; s: what the server has, which may be older."),
    FLAG_INT("min-create-rev", get_flags, min_create_revision, "0",
             "Only keys that were created at this revision or later."),
    FLAG_INT("max-create-rev", get_flags, max_create_revision, "0",
             "Only keys that were created at this revision or earlier."),
    FLAG_INT("min-mod-rev", get_flags, min_mod_revision, "0",
             "Only keys that were changed last at this revision or later."),
    FLAG_INT("max-mod-rev", get_flags, max_mod_revision, "0",
             "Only keys that were changed last at this revision or earlier."),
    FLAG_BOOL("stream", get_flags, stream, "Receive the answer in parts, for very many keys."),
};

static const struct option put_rows[] = {
    FLAG_TEXT("lease", put_flags, lease, "0",
              "The id of a lease, in hexadecimal: the key is deleted when it ends."),
    FLAG_BOOL("prev-kv", put_flags, prev_kv, "Also show what the key was before."),
    FLAG_BOOL("ignore-value", put_flags, ignore_value, "Keep the value of the key."),
    FLAG_BOOL("ignore-lease", put_flags, ignore_lease, "Keep the lease of the key."),
};

static const struct option del_rows[] = {
    FLAG_BOOL("prefix", del_flags, prefix, "Delete all keys that begin with the key."),
    FLAG_BOOL("prev-kv", del_flags, prev_kv, "Also show what was deleted."),
    FLAG_BOOL("from-key", del_flags, from_key, "Delete the key and all that follow it."),
    FLAG_BOOL("range", del_flags, range,
              "Delete a range without the pause that lets you interrupt it."),
};

static const struct option txn_rows[] = {
    FLAG_BOOL("interactive", txn_flags, interactive, "Say what is expected next.", .letter = 'i'),
};

static const struct option watch_rows[] = {
    FLAG_BOOL("interactive", watch_flags, interactive,
              "Read what to watch from standard input: watch KEY, or progress.", .letter = 'i'),
    FLAG_BOOL("prefix", watch_flags, prefix, "Watch all keys that begin with the key."),
    FLAG_INT("rev", watch_flags, revision, "0",
             "Begin with this revision, which may be in the past."),
    FLAG_BOOL("prev-kv", watch_flags, prev_kv, "Also show what the key was before."),
    FLAG_BOOL("progress-notify", watch_flags, progress_notify,
              "Show now and then which revision has been reached."),
};

static const struct option compaction_rows[] = {
    FLAG_BOOL("physical", compaction_flags, physical,
              "Wait until the old revisions have been removed."),
};

static const struct option timetolive_rows[] = {
    FLAG_BOOL("keys", timetolive_flags, keys, "Also show the keys of the lease."),
};

static const struct option keep_alive_rows[] = {
    FLAG_BOOL("once", keep_alive_flags, once, "Renew it once and end."),
};

static const struct option lock_rows[] = {
    FLAG_INT("ttl", lock_flags, ttl, "10",
             "After this many seconds without this program the lock is free."),
};

static const struct option elect_rows[] = {
    FLAG_BOOL("listen", elect_flags, listen, "Show each leader; do not become one.", .letter = 'l'),
};

static const struct ctl_command kv_commands[] = {
    COMMAND("get", "<key> [range_end]", "Gets the key or a range of keys", get_run,
            FLAGS(get_rows, get_flags), WORDS(0, ANY_WORDS, NULL),
            .flags_not_3_4 =
                " count-only max-create-rev max-mod-rev min-create-rev min-mod-rev stream ",
            .examples = "vigil get config/port\n"
                        "vigil get config/ --prefix --keys-only\n"
                        "vigil get jobs/ --prefix --sort-by MODIFY --limit 10 -w json\n"
                        "vigil get config/port --rev 1042"),
    COMMAND("put", "<key> <value> (<value> can also be given from stdin)",
            "Puts the given key into the store", put_run, FLAGS(put_rows, put_flags),
            WORDS(0, ANY_WORDS, NULL),
            .examples = "vigil put config/port 8080\n"
                        "vigil put config/page < page.html\n"
                        "vigil put --prev-kv config/port 8081\n"
                        "vigil put session/7 active --lease 694d5765fc71500b\n"
                        "vigil put -- -key -value"),
    COMMAND("del", "<key> [range_end]",
            "Removes the specified key or range of keys [key, range_end)", del_run,
            FLAGS(del_rows, del_flags), WORDS(0, ANY_WORDS, NULL), .flags_not_3_4 = " range ",
            .examples = "vigil del config/port\n"
                        "vigil del jobs/ --prefix --prev-kv\n"
                        "vigil del --range jobs/1 jobs/5"),
    COMMAND("txn", "", "Processes all the requests in one transaction", txn_run,
            FLAGS(txn_rows, txn_flags), WORDS(0, 0, "txn command does not accept argument"),
            .examples =
                "vigil txn -i\n"
                "printf 'mod(\"k\") > \"0\"\\n\\nput k new\\n\\nput k first\\n\\n' | vigil txn"),
    COMMAND("watch", "[key or prefix] [range_end] [--] [exec-command arg1 arg2 ...]",
            "Watches events on keys or prefixes", watch_run, FLAGS(watch_rows, watch_flags),
            WORDS(0, ANY_WORDS, NULL), .flags_not_3_4 = " progress-notify ",
            .examples = "vigil watch config/ --prefix\n"
                        "vigil watch config/port --rev 1042 --prev-kv\n"
                        "vigil watch config/ --prefix -- sh -c 'echo $ETCD_WATCH_KEY changed'"),
    COMMAND("compaction", "<revision>", "Compacts the event history", compaction_run,
            FLAGS(compaction_rows, compaction_flags),
            WORDS(1, 1, "compaction command needs 1 argument"),
            .examples = "vigil compaction 1042\nvigil compaction --physical 1042"),
    COMMAND("lease grant", "<ttl>", "Creates a lease that lasts this many seconds", lease_grant_run,
            WORDS(1, 1, "lease grant command needs TTL argument"),
            .examples = "vigil lease grant 60"),
    COMMAND("lease revoke", "<leaseID>", "Ends a lease and deletes its keys", lease_revoke_run,
            WORDS(1, 1, "lease revoke command needs 1 argument"),
            .examples = "vigil lease revoke 694d5765fc71500b"),
    COMMAND("lease timetolive", "<leaseID>", "Shows how long a lease still lasts",
            lease_timetolive_run, FLAGS(timetolive_rows, timetolive_flags),
            WORDS(1, 1, "lease timetolive command needs lease ID as argument"),
            .examples = "vigil lease timetolive 694d5765fc71500b --keys"),
    COMMAND("lease list", "", "Lists all leases", lease_list_run, WORDS(0, ANY_WORDS, NULL)),
    COMMAND("lease keep-alive", "<leaseID>", "Renews a lease again and again", lease_keep_alive_run,
            FLAGS(keep_alive_rows, keep_alive_flags),
            WORDS(1, 1, "lease keep-alive command needs lease ID as argument"),
            .examples = "vigil lease keep-alive 694d5765fc71500b\n"
                        "vigil lease keep-alive --once 694d5765fc71500b"),
};

const struct ctl_group ctl_kv_group = {"Keys", kv_commands, COUNT_OF(kv_commands)};

static const struct ctl_command lock_commands[] = {
    COMMAND(
        "lock", "<lockname> [exec-command arg1 arg2 ...]", "Acquires a named lock", lock_run,
        FLAGS(lock_rows, lock_flags),
        WORDS(1, ANY_WORDS, "lock takes a lock name argument and an optional command to execute"),
        .examples = "vigil lock deploy\nvigil lock deploy --ttl 30 -- ./deploy.sh --all"),
    COMMAND("elect", "<election-name> [proposal]", "Observes and participates in leader election",
            elect_run, FLAGS(elect_rows, elect_flags),
            WORDS(1, 2, "elect takes one election name argument and an optional proposal argument"),
            .examples = "vigil elect scheduler node-1\nvigil elect --listen scheduler"),
};

const struct ctl_group ctl_lock_group = {"Locks and elections", lock_commands,
                                         COUNT_OF(lock_commands)};

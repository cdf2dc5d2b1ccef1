/* The commands about keys, leases and locks: their flags, words and examples. */
#include "cmd/ctl/kv/kv.h"
#include "cmd/ctl/kv/lease.h"
#include "cmd/ctl/kv/lock.h"
#include "cmd/ctl/kv/txn.h"
#include "cmd/ctl/kv/watch.h"

#define IN(type, field) offsetof(type, field)

static const struct option get_rows[] = {
    {.name = "prefix",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "All keys that begin with the key.",
     .offset = IN(struct get_flags, prefix)},
    {.name = "from-key",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "The key and all that follow it.",
     .offset = IN(struct get_flags, from_key)},
    {.name = "limit",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "At most this many keys.",
     .offset = IN(struct get_flags, limit)},
    {.name = "rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "As the keys were at this revision.",
     .offset = IN(struct get_flags, revision)},
    {.name = "keys-only",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Without values.",
     .offset = IN(struct get_flags, keys_only)},
    {.name = "count-only",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Only how many keys there are; for -w fields.",
     .offset = IN(struct get_flags, count_only)},
    {.name = "print-value-only",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Without keys; for -w simple.",
     .offset = IN(struct get_flags, print_value_only)},
    {.name = "order",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "ASCEND or DESCEND.",
     .offset = IN(struct get_flags, order)},
    {.name = "sort-by",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "CREATE, KEY, MODIFY, VALUE or VERSION.",
     .offset = IN(struct get_flags, sort_by)},
    {.name = "consistency",
     .kind = OPTION_TEXT,
     .fallback = "l",
     .help = "l: the newest state; s: what the server has, which may be older.",
     .offset = IN(struct get_flags, consistency)},
    {.name = "min-create-rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "Only keys that were created at this revision or later.",
     .offset = IN(struct get_flags, min_create_revision)},
    {.name = "max-create-rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "Only keys that were created at this revision or earlier.",
     .offset = IN(struct get_flags, max_create_revision)},
    {.name = "min-mod-rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "Only keys that were changed last at this revision or later.",
     .offset = IN(struct get_flags, min_mod_revision)},
    {.name = "max-mod-rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "Only keys that were changed last at this revision or earlier.",
     .offset = IN(struct get_flags, max_mod_revision)},
    {.name = "stream",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Receive the answer in parts, for very many keys.",
     .offset = IN(struct get_flags, stream)},
};

static const struct option put_rows[] = {
    {.name = "lease",
     .kind = OPTION_TEXT,
     .fallback = "0",
     .help = "The id of a lease, in hexadecimal: the key is deleted when it ends.",
     .offset = IN(struct put_flags, lease)},
    {.name = "prev-kv",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Also show what the key was before.",
     .offset = IN(struct put_flags, prev_kv)},
    {.name = "ignore-value",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Keep the value of the key.",
     .offset = IN(struct put_flags, ignore_value)},
    {.name = "ignore-lease",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Keep the lease of the key.",
     .offset = IN(struct put_flags, ignore_lease)},
};

static const struct option del_rows[] = {
    {.name = "prefix",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Delete all keys that begin with the key.",
     .offset = IN(struct del_flags, prefix)},
    {.name = "prev-kv",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Also show what was deleted.",
     .offset = IN(struct del_flags, prev_kv)},
    {.name = "from-key",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Delete the key and all that follow it.",
     .offset = IN(struct del_flags, from_key)},
    {.name = "range",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Delete a range without the pause that lets you interrupt it.",
     .offset = IN(struct del_flags, range)},
};

static const struct option txn_rows[] = {
    {.name = "interactive",
     .letter = 'i',
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Say what is expected next.",
     .offset = IN(struct txn_flags, interactive)},
};

static const struct option watch_rows[] = {
    {.name = "interactive",
     .letter = 'i',
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Read what to watch from standard input: watch KEY, or progress.",
     .offset = IN(struct watch_flags, interactive)},
    {.name = "prefix",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Watch all keys that begin with the key.",
     .offset = IN(struct watch_flags, prefix)},
    {.name = "rev",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "Begin with this revision, which may be in the past.",
     .offset = IN(struct watch_flags, revision)},
    {.name = "prev-kv",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Also show what the key was before.",
     .offset = IN(struct watch_flags, prev_kv)},
    {.name = "progress-notify",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Show now and then which revision has been reached.",
     .offset = IN(struct watch_flags, progress_notify)},
};

static const struct option compaction_rows[] = {
    {.name = "physical",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Wait until the old revisions have been removed.",
     .offset = IN(struct compaction_flags, physical)},
};

static const struct option timetolive_rows[] = {
    {.name = "keys",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Also show the keys of the lease.",
     .offset = IN(struct timetolive_flags, keys)},
};

static const struct option keep_alive_rows[] = {
    {.name = "once",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Renew it once and end.",
     .offset = IN(struct keep_alive_flags, once)},
};

static const struct option lock_rows[] = {
    {.name = "ttl",
     .kind = OPTION_INT,
     .fallback = "10",
     .help = "After this many seconds without this program the lock is free.",
     .offset = IN(struct lock_flags, ttl)},
};

static const struct option elect_rows[] = {
    {.name = "listen",
     .letter = 'l',
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Show each leader; do not become one.",
     .offset = IN(struct elect_flags, listen)},
};

#define FLAGS(rows, type) .flags = rows, .flag_count = COUNT_OF(rows), .flags_bytes = sizeof(type)

static const struct ctl_command kv_commands[] = {
    {
        .path = "get",
        .words = "<key> [range_end]",
        .summary = "Gets the key or a range of keys",
        .examples = "vigil get config/port\n"
                    "vigil get config/ --prefix --keys-only\n"
                    "vigil get jobs/ --prefix --sort-by MODIFY --limit 10 -w json\n"
                    "vigil get config/port --rev 1042",
        FLAGS(get_rows, struct get_flags),
        .flags_not_3_4 =
            " count-only max-create-rev max-mod-rev min-create-rev min-mod-rev stream ",
        .words_max = UINT32_MAX,
        .run = get_run,
    },
    {
        .path = "put",
        .words = "<key> <value> (<value> can also be given from stdin)",
        .summary = "Puts the given key into the store",
        .examples = "vigil put config/port 8080\n"
                    "vigil put config/page < page.html\n"
                    "vigil put --prev-kv config/port 8081\n"
                    "vigil put session/7 active --lease 694d5765fc71500b\n"
                    "vigil put -- -key -value",
        FLAGS(put_rows, struct put_flags),
        .words_max = UINT32_MAX,
        .run = put_run,
    },
    {
        .path = "del",
        .words = "<key> [range_end]",
        .summary = "Removes the specified key or range of keys [key, range_end)",
        .examples = "vigil del config/port\n"
                    "vigil del jobs/ --prefix --prev-kv\n"
                    "vigil del --range jobs/1 jobs/5",
        FLAGS(del_rows, struct del_flags),
        .flags_not_3_4 = " range ",
        .words_max = UINT32_MAX,
        .run = del_run,
    },
    {
        .path = "txn",
        .words = "",
        .summary = "Processes all the requests in one transaction",
        .examples = "vigil txn -i\n"
                    "printf 'mod(\"k\") > \"0\"\\n\\nput k new\\n\\nput k first\\n\\n' | vigil txn",
        FLAGS(txn_rows, struct txn_flags),
        .words_error = "txn command does not accept argument",
        .run = txn_run,
    },
    {
        .path = "watch",
        .words = "[key or prefix] [range_end] [--] [exec-command arg1 arg2 ...]",
        .summary = "Watches events on keys or prefixes",
        .examples = "vigil watch config/ --prefix\n"
                    "vigil watch config/port --rev 1042 --prev-kv\n"
                    "vigil watch config/ --prefix -- sh -c 'echo $ETCD_WATCH_KEY changed'",
        FLAGS(watch_rows, struct watch_flags),
        .flags_not_3_4 = " progress-notify ",
        .words_max = UINT32_MAX,
        .run = watch_run,
    },
    {
        .path = "compaction",
        .words = "<revision>",
        .summary = "Compacts the event history",
        .examples = "vigil compaction 1042\nvigil compaction --physical 1042",
        FLAGS(compaction_rows, struct compaction_flags),
        .words_min = 1,
        .words_max = 1,
        .words_error = "compaction command needs 1 argument",
        .run = compaction_run,
    },
    {
        .path = "lease grant",
        .words = "<ttl>",
        .summary = "Creates a lease that lasts this many seconds",
        .examples = "vigil lease grant 60",
        .words_min = 1,
        .words_max = 1,
        .words_error = "lease grant command needs TTL argument",
        .run = lease_grant_run,
    },
    {
        .path = "lease revoke",
        .words = "<leaseID>",
        .summary = "Ends a lease and deletes its keys",
        .examples = "vigil lease revoke 694d5765fc71500b",
        .words_min = 1,
        .words_max = 1,
        .words_error = "lease revoke command needs 1 argument",
        .run = lease_revoke_run,
    },
    {
        .path = "lease timetolive",
        .words = "<leaseID>",
        .summary = "Shows how long a lease still lasts",
        .examples = "vigil lease timetolive 694d5765fc71500b --keys",
        FLAGS(timetolive_rows, struct timetolive_flags),
        .words_min = 1,
        .words_max = 1,
        .words_error = "lease timetolive command needs lease ID as argument",
        .run = lease_timetolive_run,
    },
    {
        .path = "lease list",
        .words = "",
        .summary = "Lists all leases",
        .words_max = UINT32_MAX,
        .run = lease_list_run,
    },
    {
        .path = "lease keep-alive",
        .words = "<leaseID>",
        .summary = "Renews a lease again and again",
        .examples = "vigil lease keep-alive 694d5765fc71500b\n"
                    "vigil lease keep-alive --once 694d5765fc71500b",
        FLAGS(keep_alive_rows, struct keep_alive_flags),
        .words_min = 1,
        .words_max = 1,
        .words_error = "lease keep-alive command needs lease ID as argument",
        .run = lease_keep_alive_run,
    },
};

const struct ctl_group ctl_kv_group = {"Keys", kv_commands, COUNT_OF(kv_commands)};

static const struct ctl_command lock_commands[] = {
    {
        .path = "lock",
        .words = "<lockname> [exec-command arg1 arg2 ...]",
        .summary = "Acquires a named lock",
        .examples = "vigil lock deploy\nvigil lock deploy --ttl 30 -- ./deploy.sh --all",
        FLAGS(lock_rows, struct lock_flags),
        .words_min = 1,
        .words_max = UINT32_MAX,
        .words_error = "lock takes a lock name argument and an optional command to execute",
        .run = lock_run,
    },
    {
        .path = "elect",
        .words = "<election-name> [proposal]",
        .summary = "Observes and participates in leader election",
        .examples = "vigil elect scheduler node-1\nvigil elect --listen scheduler",
        FLAGS(elect_rows, struct elect_flags),
        .words_min = 1,
        .words_max = 2,
        .words_error = "elect takes one election name argument and an optional proposal argument",
        .run = elect_run,
    },
};

const struct ctl_group ctl_lock_group = {"Locks and elections", lock_commands,
                                         COUNT_OF(lock_commands)};

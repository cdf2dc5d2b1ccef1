#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/live/live.h"

#define FLAG_INT(struct_, field_, name_, fallback_, help_)                             \
    {                                                                                  \
        .name = (name_), .kind = OPTION_INT, .fallback = (fallback_), .help = (help_), \
        .max = INT64_MAX, .offset = offsetof(struct struct_, field_)                   \
    }
#define FLAG_BOOL(struct_, field_, name_, letter_, help_)                               \
    {                                                                                   \
        .name = (name_), .letter = (letter_), .kind = OPTION_BOOL, .fallback = "false", \
        .help = (help_), .offset = offsetof(struct struct_, field_)                     \
    }

#define LINES_HELP "Lines of each value or difference that are shown; 0: all."

static const struct option tree_flags[] = {
    FLAG_INT(tree_flags, depth, "depth", "3", "Levels that are shown; 0: all."),
    {.name = "separator",
     .kind = OPTION_TEXT,
     .fallback = "/",
     .help = "What separates the parts of a key.",
     .offset = offsetof(struct tree_flags, separator)},
    {.name = "sort",
     .kind = OPTION_ENUM,
     .choices = "name|keys|size",
     .fallback = "name",
     .help = "The order of the names in a level.",
     .offset = offsetof(struct tree_flags, sort)},
    FLAG_INT(tree_flags, limit, "limit", "50", "Names of one directory that are shown; 0: all."),
    FLAG_BOOL(tree_flags, keys_only, "keys-only", 0,
              "Count only: without sizes, and without reading values."),
    FLAG_INT(tree_flags, revision, "rev", "0", "The revision to look at; 0: the newest."),
};

static const struct option history_flags[] = {
    FLAG_BOOL(history_flags, no_values, "no-values", 0, "Only one line for each version."),
    FLAG_INT(history_flags, lines, "lines", "60", LINES_HELP),
};

static const struct option diff_flags[] = {
    FLAG_INT(diff_flags, from, "from", "0", "The older revision."),
    FLAG_INT(diff_flags, to, "to", "0", "The newer revision; 0: the newest."),
    FLAG_BOOL(diff_flags, brief, "brief", 'q',
              "Only one line for each key, without reading values."),
    FLAG_INT(diff_flags, lines, "lines", "60", LINES_HELP),
};

static const struct option grep_flags[] = {
    FLAG_BOOL(grep_flags, ignore_case, "ignore-case", 'i', "Upper and lower case are the same."),
    FLAG_BOOL(grep_flags, keys_only, "keys-only", 0, "Examine keys only, without reading values."),
    FLAG_BOOL(grep_flags, values_only, "values-only", 0, "Examine values only."),
    FLAG_BOOL(grep_flags, list, "list", 'l', "Show only the keys."),
    FLAG_BOOL(grep_flags, count, "count", 'c', "Show only the number of keys that match."),
    FLAG_BOOL(grep_flags, invert, "invert-match", 'v', "Show the keys that do not match."),
    FLAG_INT(grep_flags, revision, "rev", "0", "The revision to search; 0: the newest."),
};

static const struct option restore_flags[] = {
    FLAG_INT(restore_flags, revision, "rev", "0", "The revision whose value is written again."),
    FLAG_BOOL(restore_flags, dry_run, "dry-run", 0,
              "Show what would be written, and write nothing."),
    {.name = "lease",
     .kind = OPTION_ENUM,
     .choices = RESTORE_LEASE_CHOICES,
     .fallback = "keep",
     .help = "The lease of the restored key: the one it has now, none, or the one it had then, "
             "which must still exist.",
     .offset = offsetof(struct restore_flags, lease)},
};

static const struct option top_flags[] = {
    {.name = "interval",
     .kind = OPTION_DURATION,
     .fallback = "2s",
     .min = 100000000,
     .max = INT64_C(3600000000000),
     .help = "The time between two readings.",
     .offset = offsetof(struct top_flags, interval_ns)},
    {.name = "iterations",
     .letter = 'n',
     .kind = OPTION_INT,
     .fallback = "0",
     .max = INT64_MAX,
     .help = "Show so many readings, one after the other, and end; 0: until q is pressed.",
     .offset = offsetof(struct top_flags, count)},
    FLAG_BOOL(top_flags, once, "once", 0, "Show one reading and end, for scripts."),
    FLAG_INT(top_flags, depth, "depth", "2", "Parts of a key that its prefix has."),
    {.name = "separator",
     .kind = OPTION_TEXT,
     .fallback = "/",
     .help = "What separates the parts of a key.",
     .offset = offsetof(struct top_flags, separator)},
    {.name = "sort",
     .kind = OPTION_ENUM,
     .choices = "changes|bytes|total",
     .fallback = "changes",
     .help = "The order of the prefixes; the key s changes it.",
     .offset = offsetof(struct top_flags, sort)},
    FLAG_BOOL(top_flags, no_prefixes, "no-prefixes", 0,
              "Do not watch keys: all changes would be sent to this command."),
};

static const struct option doctor_flags[] = {
    FLAG_BOOL(doctor_flags, cluster, "cluster", 0,
              "Examine every member of the cluster, not only the endpoints that were given."),
};

#define FLAGS(name_) \
    .flags = name_, .flag_count = COUNT_OF(name_), .flags_bytes = sizeof(struct name_)

static const struct ctl_command commands[] = {
    {
        .path = "tree",
        .words = "[prefix]",
        .summary = "Shows the directories of keys with the number of keys in each and their size",
        .examples = "vigil tree /registry/ --depth 2\n"
                    "vigil tree --sort size --limit 10\n"
                    "vigil tree app: --separator :",
        FLAGS(tree_flags),
        .words_max = 1,
        .ours = true,
        .run = explore_tree,
    },
    {
        .path = "history",
        .words = "<key>",
        .summary = "Shows all versions of a key that are not compacted, with their differences",
        .examples = "vigil history /app/config\n"
                    "vigil history /registry/configmaps/default/a -w jsonl --decode k8s",
        FLAGS(history_flags),
        .words_min = 1,
        .words_max = 1,
        .ours = true,
        .run = explore_history,
    },
    {
        .path = "diff",
        .words = "<prefix>",
        .summary =
            "Shows what has changed below a prefix between two revisions; the exit code is 1 "
            "if something has",
        .examples = "vigil diff /app/ --from 1200\n"
                    "vigil diff '' --from 1200 --to 1300 --brief",
        FLAGS(diff_flags),
        .words_min = 1,
        .words_max = 1,
        .ours = true,
        .run = explore_diff,
    },
    {
        .path = "grep",
        .words = "<pattern> [prefix]",
        .summary = "Finds keys and values that match an extended regular expression; the exit code "
                   "is 1 if there are none",
        .examples = "vigil grep 'image: .*:latest' /registry/pods/\n"
                    "vigil grep -i password -l\n"
                    "vigil grep --keys-only -c '/leases/'",
        FLAGS(grep_flags),
        .words_min = 1,
        .words_max = 2,
        .ours = true,
        .run = explore_grep,
    },
    {
        .path = "restore-key",
        .words = "<key>",
        .summary =
            "Writes the value that a key had at a revision, unless the key changes meanwhile",
        .examples = "vigil restore-key /app/config --rev 1240 --dry-run\n"
                    "vigil restore-key /app/config --rev 1240",
        FLAGS(restore_flags),
        .words_min = 1,
        .words_max = 1,
        .ours = true,
        .run = explore_restore_key,
    },
    {
        .path = "top",
        .words = "[prefix]",
        .summary = "Shows what a server is doing: calls, changes by prefix, watchers, disk, memory",
        .examples = "vigil top\n"
                    "vigil top /registry/ --depth 3\n"
                    "vigil top --once -w json",
        FLAGS(top_flags),
        .words_max = 1,
        .ours = true,
        .run = live_top,
    },
    {
        .path = "doctor",
        .words = "",
        .summary = "Examines servers and says what is wrong or slow, and what to do; the exit code "
                   "is 1 if something is wrong",
        .examples = "vigil doctor --endpoints https://a:2379,https://b:2379\n"
                    "vigil doctor --cluster -w json",
        FLAGS(doctor_flags),
        .ours = true,
        .run = live_doctor,
    },
    {
        .path = "profile list",
        .words = "",
        .summary = "Lists the profiles, which --profile uses",
        .examples = "vigil profile list",
        .ours = true,
        .run = explore_profile_list,
    },
    {
        .path = "profile show",
        .words = "<name>",
        .summary = "Shows the flags of a profile, without its secrets",
        .examples = "vigil profile show prod",
        .words_min = 1,
        .words_max = 1,
        .ours = true,
        .run = explore_profile_show,
    },
};

const struct ctl_group ctl_explore_group = {
    .title = "Looking into a store",
    .commands = commands,
    .count = COUNT_OF(commands),
};

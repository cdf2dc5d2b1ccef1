#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/live/live.h"

#define LINES_HELP "Lines of each value or difference that are shown; 0: all."

static const struct option tree_flags[] = {
    FLAG_INT("depth", tree_flags, depth, "3", "Levels that are shown; 0: all.", NOT_NEGATIVE),
    FLAG_TEXT("separator", tree_flags, separator, "/", "What separates the parts of a key."),
    FLAG_ENUM("sort", tree_flags, sort, "name", "The order of the names in a level.",
              "name|keys|size"),
    FLAG_INT("limit", tree_flags, limit, "50", "Names of one directory that are shown; 0: all.",
             NOT_NEGATIVE),
    FLAG_BOOL("keys-only", tree_flags, keys_only,
              "Count only: without sizes, and without reading values."),
    FLAG_INT("rev", tree_flags, revision, "0", "The revision to look at; 0: the newest.",
             NOT_NEGATIVE),
};

static const struct option history_flags[] = {
    FLAG_BOOL("no-values", history_flags, no_values, "Only one line for each version."),
    FLAG_INT("lines", history_flags, lines, "60", LINES_HELP, NOT_NEGATIVE),
};

static const struct option diff_flags[] = {
    FLAG_INT("from", diff_flags, from, "0", "The older revision.", NOT_NEGATIVE),
    FLAG_INT("to", diff_flags, to, "0", "The newer revision; 0: the newest.", NOT_NEGATIVE),
    FLAG_BOOL("brief", diff_flags, brief, "Only one line for each key, without reading values.",
              .letter = 'q'),
    FLAG_INT("lines", diff_flags, lines, "60", LINES_HELP, NOT_NEGATIVE),
};

static const struct option grep_flags[] = {
    FLAG_BOOL("ignore-case", grep_flags, ignore_case, "Upper and lower case are the same.",
              .letter = 'i'),
    FLAG_BOOL("keys-only", grep_flags, keys_only, "Examine keys only, without reading values."),
    FLAG_BOOL("values-only", grep_flags, values_only, "Examine values only."),
    FLAG_BOOL("list", grep_flags, list, "Show only the keys.", .letter = 'l'),
    FLAG_BOOL("count", grep_flags, count, "Show only the number of keys that match.",
              .letter = 'c'),
    FLAG_BOOL("invert-match", grep_flags, invert, "Show the keys that do not match.",
              .letter = 'v'),
    FLAG_INT("rev", grep_flags, revision, "0", "The revision to search; 0: the newest.",
             NOT_NEGATIVE),
};

static const struct option restore_flags[] = {
    FLAG_INT("rev", restore_flags, revision, "0", "The revision whose value is written again.",
             NOT_NEGATIVE),
    FLAG_BOOL("dry-run", restore_flags, dry_run, "Show what would be written, and write nothing."),
    FLAG_ENUM("lease", restore_flags, lease, "keep",
              "The lease of the restored key: the one it has now, none, or the one it had then, "
              "which must still exist.",
              RESTORE_LEASE_CHOICES),
};

static const struct option top_flags[] = {
    FLAG_DURATION("interval", top_flags, interval_ns, "2s", "The time between two readings.",
                  BETWEEN(100000000, INT64_C(3600000000000))),
    FLAG_INT("iterations", top_flags, count, "0",
             "Show so many readings, one after the other, and end; 0: until q is pressed.",
             NOT_NEGATIVE, .letter = 'n'),
    FLAG_BOOL("once", top_flags, once, "Show one reading and end, for scripts."),
    FLAG_INT("depth", top_flags, depth, "2", "Parts of a key that its prefix has.", NOT_NEGATIVE),
    FLAG_TEXT("separator", top_flags, separator, "/", "What separates the parts of a key."),
    FLAG_ENUM("sort", top_flags, sort, "changes",
              "The order of the prefixes; the key s changes it.", "changes|bytes|total"),
    FLAG_BOOL("no-prefixes", top_flags, no_prefixes,
              "Do not watch keys: all changes would be sent to this command."),
};

static const struct option doctor_flags[] = {
    FLAG_BOOL("cluster", doctor_flags, cluster,
              "Examine every member of the cluster, not only the endpoints that were given."),
};

static const struct ctl_command commands[] = {
    COMMAND("tree", "[prefix]",
            "Shows the directories of keys with the number of keys in each and their size",
            explore_tree, FLAGS(tree_flags, tree_flags), WORDS(0, 1, NULL), .ours = true,
            .examples = "vigil tree /registry/ --depth 2\n"
                        "vigil tree --sort size --limit 10\n"
                        "vigil tree app: --separator :"),
    COMMAND("history", "<key>",
            "Shows all versions of a key that are not compacted, with their differences",
            explore_history, FLAGS(history_flags, history_flags), WORDS(1, 1, NULL), .ours = true,
            .examples = "vigil history /app/config\n"
                        "vigil history /registry/configmaps/default/a -w jsonl --decode k8s"),
    COMMAND("diff", "<prefix>",
            "Shows what has changed below a prefix between two revisions; the exit code is 1 "
            "if something has",
            explore_diff, FLAGS(diff_flags, diff_flags), WORDS(1, 1, NULL), .ours = true,
            .examples = "vigil diff /app/ --from 1200\n"
                        "vigil diff '' --from 1200 --to 1300 --brief"),
    COMMAND("grep", "<pattern> [prefix]",
            "Finds keys and values that match an extended regular expression; the exit code "
            "is 1 if there are none",
            explore_grep, FLAGS(grep_flags, grep_flags), WORDS(1, 2, NULL), .ours = true,
            .examples = "vigil grep 'image: .*:latest' /registry/pods/\n"
                        "vigil grep -i password -l\n"
                        "vigil grep --keys-only -c '/leases/'"),
    COMMAND("restore-key", "<key>",
            "Writes the value that a key had at a revision, unless the key changes meanwhile",
            explore_restore_key, FLAGS(restore_flags, restore_flags), WORDS(1, 1, NULL),
            .ours = true,
            .examples = "vigil restore-key /app/config --rev 1240 --dry-run\n"
                        "vigil restore-key /app/config --rev 1240"),
    COMMAND("top", "[prefix]",
            "Shows what a server is doing: calls, changes by prefix, watchers, disk, memory",
            live_top, FLAGS(top_flags, top_flags), WORDS(0, 1, NULL), .ours = true,
            .examples = "vigil top\n"
                        "vigil top /registry/ --depth 3\n"
                        "vigil top --once -w json"),
    COMMAND("doctor", "",
            "Examines servers and says what is wrong or slow, and what to do; the exit code "
            "is 1 if something is wrong",
            live_doctor, FLAGS(doctor_flags, doctor_flags), .ours = true,
            .examples = "vigil doctor --endpoints https://a:2379,https://b:2379\n"
                        "vigil doctor --cluster -w json"),
    COMMAND("profile list", "", "Lists the profiles, which --profile uses", explore_profile_list,
            .ours = true, .examples = "vigil profile list"),
    COMMAND("profile show", "<name>", "Shows the flags of a profile, without its secrets",
            explore_profile_show, WORDS(1, 1, NULL), .ours = true,
            .examples = "vigil profile show prod"),
};

const struct ctl_group ctl_explore_group = {
    .title = "Looking into a store",
    .commands = commands,
    .count = COUNT_OF(commands),
};

#include "cmd/import.h"

#include "base/options/rows.h"
#include "cmd/arguments.h"
#include "cmd/import_report.h"

struct import_flags {
    const char *data_dir;
    const char *wal_dir;
    bool skip_hash_check;
    bool json;
};

static const struct option rows[] = {
    FLAG_TEXT("data-dir", import_flags, data_dir, "",
              "The data directory to create. It must not exist, or must be empty."),
    FLAG_TEXT("wal-dir", import_flags, wal_dir, "",
              "The directory of etcd's write-ahead log, if etcd was started with --wal-dir."),
    FLAG_BOOL("skip-hash-check", import_flags, skip_hash_check,
              "Accept a snapshot with a wrong checksum. Its contents may be wrong, too."),
    FLAG_BOOL("json", import_flags, json, "Print the result as one line of JSON."),
};

static const struct option_group group = {"Import", rows, COUNT_OF(rows)};
static const struct option_group *const groups[] = {&group};

const struct options_table import_table = {
    .program = "vigil import",
    .summary = "Converts a data directory or snapshot of etcd into a data directory of Vigil. "
               "Revisions, leases, users and roles are kept.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .words = "SOURCE",
    .flags_only = true,
    .man_more = ".SH SOURCE\n"
                "A snapshot that etcdctl or etcdutl saved, or the data directory of an etcd 3.4 to "
                "3.7 that "
                "has stopped or was killed. It is only read.\n"
                ".SH EXIT STATUS\n"
                ".TP\n0\nThe data directory is complete.\n"
                ".TP\n1\nThe import failed, and left nothing behind.\n"
                ".TP\n2\nA flag is unknown or has an invalid value.\n",
};

int import_main(int count, char **args)
{
    struct import_flags flags = {0};
    struct words words = {.table = &import_table, .config = &flags, .word_count_needed = 1};
    int exit_status = words_read(&words, count - 1, args + 1);
    if (exit_status >= 0)
        return exit_status;
    if (!*flags.data_dir)
        return words_refuse(&words, "say with --data-dir which data directory to make");
    struct import_options options = {
        .source = words.words[0],
        .wal_dir = *flags.wal_dir ? flags.wal_dir : NULL,
        .data_dir = flags.data_dir,
        .digest = flags.skip_hash_check ? IMPORT_DIGEST_SKIPPED : IMPORT_DIGEST_IF_THERE,
    };
    return import_and_report(import_table.program, &options,
                             flags.json ? IMPORT_JSON : IMPORT_TEXT);
}

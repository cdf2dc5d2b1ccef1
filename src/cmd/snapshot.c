#include "base/options/rows.h"
#include "cmd/arguments.h"
#include "cmd/import.h"
#include "cmd/import_report.h"
#include "import/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

struct snapshot_flags {
    const char *name;
    const char *data_dir;
    bool skip_hash_check;
    int64_t bump_revision;
    bool mark_compacted;
    bool json;
    int write_out;
};

#define START_SAYS "vigil serve takes it when it starts"

static const struct option restore_rows[] = {
    FLAG_TEXT("data-dir", snapshot_flags, data_dir, "",
              "The data directory to make, new or empty: by default NAME.etcd."),
    FLAG_TEXT("name", snapshot_flags, name, "default",
              "The member's name, for the default of --data-dir."),
    FLAG_BOOL("skip-hash-check", snapshot_flags, skip_hash_check,
              "Accept a file with a wrong or missing checksum, such as a copy of etcd's db file."),
    FLAG_INT(
        "bump-revision", snapshot_flags, bump_revision, "0",
        "Raise the newest revision by this number, for clients that have seen later revisions.",
        NOT_NEGATIVE),
    FLAG_BOOL(
        "mark-compacted", snapshot_flags, mark_compacted,
        "Compact everything before the raised revision, so that watchers start over. Use with "
        "--bump-revision."),
    FLAG_BOOL("json", snapshot_flags, json, "Print the result as one line of JSON."),
    FLAG_IGNORED("initial-cluster", TEXT, "", START_SAYS, .help = "The cluster."),
    FLAG_IGNORED("initial-cluster-token", TEXT, "", START_SAYS, .help = "The cluster."),
    FLAG_IGNORED("initial-advertise-peer-urls", TEXT, "", START_SAYS, .help = "The member."),
    FLAG_IGNORED("wal-dir", TEXT, "", "the log is in the data directory",
                 .help = "The place of the log."),
    FLAG_IGNORED("initial-memory-map-size", TEXT, "", "etcd uses it to map its file",
                 .help = "etcd's memory."),
};

static const struct option status_rows[] = {
    FLAG_ENUM("write-out", snapshot_flags, write_out, "simple", "The output format.",
              "simple|table|json|fields"),
    FLAG_ALIAS("w", "write-out"),
};

static const struct option_group restore_group = {"Restore", restore_rows, COUNT_OF(restore_rows)};
static const struct option_group status_group = {"Status", status_rows, COUNT_OF(status_rows)};
static const struct option_group *const groups[] = {&restore_group, &status_group};

const struct options_table snapshot_table = {
    .program = "vigil snapshot",
    .summary = "Restores a snapshot into a new data directory, or shows what a snapshot contains.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .words = "save|restore|status FILE",
    .flags_only = true,
    .man_more =
        ".SH FILE\n"
        "A snapshot, made by vigil snapshot save or etcdctl snapshot save from Vigil or from etcd "
        "3.4 to 3.7.\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\nDone.\n"
        ".TP\n1\nThe file cannot be read, or the data directory cannot be made; nothing is left "
        "behind.\n"
        ".TP\n2\nA flag is unknown or has an invalid value.\n",
};

/* -- Restore -- */

static int restore_to(const char *program, const char *path, const struct snapshot_flags *flags,
                      enum import_report report)
{
    char default_dir[4096];
    snprintf(default_dir, sizeof(default_dir), "%s.etcd", flags->name);
    struct import_options options = {
        .source = path,
        .data_dir = *flags->data_dir ? flags->data_dir : default_dir,
        .digest = flags->skip_hash_check ? IMPORT_DIGEST_SKIPPED : IMPORT_DIGEST_NEEDED,
        .bump_revision = flags->bump_revision,
        .is_file = true,
    };
    return import_and_report(program, &options, report);
}

int snapshot_restore(const char *path, const char *name, const char *data_dir, bool skip_hash_check)
{
    struct snapshot_flags flags = {
        .name = name, .data_dir = data_dir, .skip_hash_check = skip_hash_check};
    return restore_to("Error", path, &flags, IMPORT_SILENT);
}

/* -- Status -- */

enum { COLUMNS = 5, CELL_BYTES = 32 };

static void write_rule(const size_t widths[COLUMNS], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputc('+', stdout);
        for (size_t n = 0; n < widths[i] + 2; n++)
            fputc('-', stdout);
    }
    fputs("+\n", stdout);
}

static void write_table(const char *const heads[COLUMNS], char cells[COLUMNS][CELL_BYTES],
                        size_t count)
{
    size_t widths[COLUMNS];
    for (size_t i = 0; i < count; i++)
        widths[i] = size_max(strlen(heads[i]), strlen(cells[i]));
    write_rule(widths, count);
    for (size_t i = 0; i < count; i++) {
        size_t space = widths[i] - strlen(heads[i]);
        printf("| %*s%s%*s ", (int)(space / 2), "", heads[i], (int)(space - space / 2), "");
    }
    fputs("|\n", stdout);
    write_rule(widths, count);
    for (size_t i = 0; i < count; i++)
        printf("| %*s ", (int)widths[i], cells[i]);
    fputs("|\n", stdout);
    write_rule(widths, count);
}

/* 3.4 does not know the version of a snapshot. */
static void write_status_3_4(const struct import_status *found, char cells[COLUMNS][CELL_BYTES],
                             int how)
{
    if (how == SNAPSHOT_JSON)
        printf("{\"hash\":%" PRIu32 ",\"revision\":%" PRId64 ",\"totalKey\":%" PRIu64
               ",\"totalSize\":%" PRIu64 "}\n",
               found->hash, found->revision, found->total_entries, found->total_bytes);
    else if (how == SNAPSHOT_FIELDS)
        printf("\"Hash\" : %" PRIu32 "\n\"Revision\" : %" PRId64 "\n\"Keys\" : %" PRIu64
               "\n\"Size\" : %" PRIu64 "\n",
               found->hash, found->revision, found->total_entries, found->total_bytes);
    else
        printf("%s, %s, %s, %s\n", cells[0], cells[1], cells[2], cells[3]);
}

static void write_status(const struct import_status *found, int how, bool is_3_4)
{
    static const char *const heads[COLUMNS] = {"HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE",
                                               "VERSION"};
    char cells[COLUMNS][CELL_BYTES];
    snprintf(cells[0], CELL_BYTES, "%" PRIx32, found->hash);
    snprintf(cells[1], CELL_BYTES, "%" PRId64, found->revision);
    snprintf(cells[2], CELL_BYTES, "%" PRIu64, is_3_4 ? found->total_entries : found->total_keys);
    progress_bytes_text(found->total_bytes, cells[3]);
    snprintf(cells[4], CELL_BYTES, "%s", found->version);
    /* 3.4 counts the entries of all buckets, later versions the keys that exist. */
    if (is_3_4 && how != SNAPSHOT_TABLE) {
        write_status_3_4(found, cells, how);
        return;
    }
    switch (how) {
    case SNAPSHOT_TABLE:
        write_table(heads, cells, is_3_4 ? COLUMNS - 1 : COLUMNS);
        break;
    case SNAPSHOT_JSON:
        printf("{\"hash\":%" PRIu32 ",\"revision\":%" PRId64 ",\"totalKey\":%" PRIu64
               ",\"totalSize\":%" PRIu64 ",\"version\":\"%s\"}\n",
               found->hash, found->revision, found->total_keys, found->total_bytes, found->version);
        break;
    case SNAPSHOT_FIELDS:
        printf("\"Hash\" : %" PRIu32 "\n\"Revision\" : %" PRId64 "\n\"Keys\" : %" PRIu64
               "\n\"Size\" : %" PRIu64 "\n\"Version\" : %s\n",
               found->hash, found->revision, found->total_keys, found->total_bytes, found->version);
        break;
    default:
        printf("%s, %s, %s, %s, %s\n", cells[0], cells[1], cells[2], cells[3], cells[4]);
    }
}

int snapshot_show(const char *program, const char *path, int how, bool is_3_4)
{
    struct import_bar bar;
    /* etcdctl shows no progress, and neither does a command whose output goes to a file or a
     * pipe. */
    import_bar_init(&bar, stderr, program, is_3_4 || isatty(STDERR_FILENO) != 1);
    struct import_progress progress = import_bar_progress(&bar);
    struct import_source source = {0};
    struct import_status found;
    struct error error = {0};
    enum status status = import_source_open(&source,
                                            &(struct import_source_options){
                                                .fs = fs_posix(),
                                                .path = path,
                                                .is_file = true,
                                                .digest = IMPORT_DIGEST_IF_THERE,
                                                .progress = &progress,
                                            },
                                            &error);
    if (status == ST_OK)
        status = import_status_read(&source, &progress, &found, &error);
    import_source_close(&source);
    import_bar_end(&bar);
    if (status != ST_OK)
        return import_report_failure(program, status, &error);
    write_status(&found, how, is_3_4);
    return EXIT_SUCCESS;
}

int snapshot_main(int count, char **args)
{
    struct snapshot_flags flags = {0};
    struct words words = {.table = &snapshot_table, .config = &flags, .word_count_needed = 2};
    int exit_status = words_read(&words, count - 1, args + 1);
    if (exit_status >= 0)
        return exit_status;
    if (strcmp(words.words[0], "restore") == 0) {
        /* Clients may have seen revisions that the raised store never had events for. Only a
         * compaction makes their watches start over. */
        if (flags.mark_compacted != (flags.bump_revision > 0))
            return words_refuse(&words, "--bump-revision and --mark-compacted go together");
        return restore_to("vigil snapshot restore", words.words[1], &flags,
                          flags.json ? IMPORT_JSON : IMPORT_TEXT);
    }
    if (strcmp(words.words[0], "status") == 0)
        return snapshot_show("vigil snapshot status", words.words[1],
                             flags.json ? SNAPSHOT_JSON : flags.write_out, false);
    return words_refuse(&words, "say save, restore or status");
}

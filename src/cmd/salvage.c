#include "cmd/salvage.h"

#include "base/options/rows.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "cmd/arguments.h"
#include "cmd/repair.h"
#include "cmd/serve/preflight.h"
#include "codec/base64.h"
#include "engine/local/local.h"
#include "engine/local/page_fault.h"
#include "import/target.h"
#include "io/patched.h"
#include "store/salvage.h"

#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>

enum { EXIT_LOST = 3 };

struct salvage_flags {
    const char *to;
    bool json;
};

static const struct option rows[] = {
    FLAG_TEXT("to", salvage_flags, to, "",
              "The data directory to create. It must not exist, or must be empty, and should be on "
              "another disk."),
    FLAG_BOOL("json", salvage_flags, json, "Print the result as one line of JSON."),
};

static const struct option_group group = {"Salvage", rows, COUNT_OF(rows)};
static const struct option_group *const groups[] = {&group};

const struct options_table salvage_table = {
    .program = "vigil salvage",
    .summary = "Copies everything that can be read of a damaged data directory into a new one, and "
               "lists what is lost. The damaged one is not changed.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .words = "DIR",
    .flags_only = true,
    .man_more =
        ".SH WHAT IS SALVAGED\n"
        "DIR is the data directory of a Vigil that is not running. Any part of it may be damaged "
        "or missing: FORMAT, the heads and seals of segments, records, the mark, the checkpoint. "
        "What the disk cannot read is listed by file and offset, and counts as damaged. "
        "Every version of a key is verified by its checksum.\n"
        ".PP\n"
        "If nothing is lost, the new directory has all keys with their history. Otherwise it has "
        "the newest value of each key, and its history is compacted to the newest revision, so "
        "that watches start over; revisions do not go back. A key whose newest value cannot be "
        "read does not exist there, because its older value would be wrong.\n"
        ".PP\n"
        "Lost versions are listed by key and revision. Of records that cannot be read at all the "
        "range of log indexes is listed: keys that they changed have the value from before. This "
        "differs from vigil repair, which cuts the log off there.\n"
        ".PP\n"
        "The command needs about as much memory as a server with the same data.\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\nThe new directory is complete, and nothing is lost.\n"
        ".TP\n1\nThe command failed and left nothing behind; the last line says why.\n"
        ".TP\n2\nA flag is unknown or has an invalid value.\n"
        ".TP\n3\nThe new directory is complete, except for what was listed as lost.\n",
};

/* -- The report -- */

struct salvage_report {
    bool json;
    uint64_t lost, gaps, unreadable;
    struct progress progress;
};

static void show_lost(void *ctx, const struct store_lost *lost)
{
    struct salvage_report *report = ctx;
    /* The line of progress is finished before a line of the report appears below it on the same
     * terminal. */
    progress_end(&report->progress);
    if (report->json) {
        printf("%s{\"key\":\"", report->lost++ ? "," : "");
        uint8_t *text = xmalloc(base64_encoded_len(lost->key.len) + 1);
        base64_encode(lost->key, text);
        fwrite(text, 1, base64_encoded_len(lost->key.len), stdout);
        free(text);
        printf("\",\"revision\":%" PRId64 ",\"current\":%s,\"unsure\":%s}", lost->revision,
               lost->older ? "false" : "true", lost->unsure || lost->doubtful ? "true" : "false");
        return;
    }
    if (!report->lost++)
        printf("Lost versions of keys:\n");
    printf("  revision %" PRId64 ": ", lost->revision);
    repair_write_key(lost->key, SIZE_MAX);
    printf("%s%s%s%s\n", lost->deleted ? " (a deletion)" : "",
           lost->older ? " (an older version; the newest one is kept)" : "",
           lost->doubtful ? " (it may have been deleted before: this cannot be determined)" : "",
           lost->unsure ? " (its bytes are damaged: perhaps another key)" : "");
}

static void show_gap(void *ctx, const struct store_gap *gap)
{
    struct salvage_report *report = ctx;
    progress_end(&report->progress);
    report->gaps++;
    if (report->json)
        return; /* they are counted in the result */
    printf("Log index %" PRIu64 " to %" PRIu64, gap->from_index, gap->to_index);
    if (gap->segment_id)
        printf(" (%016" PRIx64 ".seg, offset %" PRIu64 ")", gap->segment_id, gap->offset);
    printf(": not readable as a whole, %" PRIu64 " of its changes are kept\n", gap->kept_changes);
}

/* A part of a file that the disk could not read. */
static void show_unreadable(void *ctx, const char *path, uint64_t offset, uint64_t bytes)
{
    struct salvage_report *report = ctx;
    const char *name = strrchr(path, '/');
    if (report->json)
        printf("%s{\"file\":\"%s\",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
               report->unreadable ? "," : "", name ? name + 1 : path, offset, bytes);
    else
        printf("%s  %s: %" PRIu64 " bytes from offset %" PRIu64 "\n",
               report->unreadable ? "" : "Parts of files that the disk cannot read:\n", path, bytes,
               offset);
    report->unreadable += bytes;
}

static void show_progress(void *ctx, uint64_t done, uint64_t all)
{
    struct salvage_report *report = ctx;
    progress_show(&report->progress, done, all);
}

static const char *const format_texts[] = {
    [DATADIR_FORMAT_INTACT] = "intact",
    [DATADIR_FORMAT_DAMAGED] = "damaged",
    [DATADIR_FORMAT_MISSING] = "missing",
};

static const char *const checkpoint_texts[] = {
    [REBUILT_NOT] = "intact",
    [REBUILT_AS_IT_WAS] = "read with all checksums right",
    [REBUILT_FROM_LOG] = "made from the log, which has every change",
    [REBUILT_IN_PART] = "made from its intact parts and from the log",
};

static void write_text(struct salvage_report *report, const struct store_salvage *found,
                       const char *from, const char *to)
{
    report->unreadable = patched_losses(show_unreadable, report);
    printf("Salvaged %s into %s.\n", from, to);
    printf("  revision     %" PRId64 ", %s\n", found->revision,
           found->has_history ? "with its history" : "compacted to it");
    printf("  keys         %" PRIu64 ", %" PRIu64 " versions\n", found->keys, found->versions);
    printf("  lost         %" PRIu64 " versions, of these %" PRIu64 " current values; %" PRIu64
           " ranges of the log\n",
           found->lost_versions, found->lost_current, found->gaps);
    printf("  checkpoint   %s\n", checkpoint_texts[found->checkpoint.how]);
    if (found->format != DATADIR_FORMAT_INTACT)
        printf("  FORMAT       was %s\n", format_texts[found->format]);
    if (found->heads_mended)
        printf("  heads        %u damaged ones of segments were made again\n", found->heads_mended);
    if (report->unreadable)
        printf("  disk         %" PRIu64 " bytes cannot be read\n", report->unreadable);
    if (found->unreadable)
        printf("  segments     %u could not be read\n", found->unreadable);
    if (found->checkpoint.lost_rows)
        printf("  lost: %" PRIu64 " leases, users, roles or alarms\n", found->checkpoint.lost_rows);
    if (found->checkpoint.rows_unsure)
        printf("  check leases, users and roles, and whether authentication is enabled, before "
               "clients connect: they could not be verified\n");
    if (found->checkpoint.identity_lost)
        printf("  the ids of cluster and member are lost: the first start sets new ones\n");
    printf("Start it with: vigil serve --data-dir %s\n", to);
}

static void write_json(struct salvage_report *report, const struct store_salvage *found)
{
    static const char *const truth[] = {"false", "true"};
    const struct store_rebuild *checkpoint = &found->checkpoint;
    printf("],\"unreadable\":[");
    report->unreadable = patched_losses(show_unreadable, report);
    printf("],\"keys\":%" PRIu64 ",\"versions\":%" PRIu64 ",\"revision\":%" PRId64
           ",\"history\":%s,\"lostVersions\":%" PRIu64 ",\"lostCurrent\":%" PRIu64
           ",\"gaps\":%" PRIu64,
           found->keys, found->versions, found->revision, truth[found->has_history],
           found->lost_versions, found->lost_current, found->gaps);
    printf(",\"format\":\"%s\",\"headsMended\":%u,\"segmentsUnreadable\":%u,\"checkpoint\":\"%s\""
           ",\"lostRows\":%" PRIu64 ",\"rowsUnsure\":%s,\"identityLost\":%s}\n",
           format_texts[found->format], found->heads_mended, found->unreadable,
           checkpoint_texts[checkpoint->how], checkpoint->lost_rows, truth[checkpoint->rows_unsure],
           truth[checkpoint->identity_lost]);
}

/* -- The command -- */

/* The damaged directory must not be written to, nor anything below it. */
static bool is_within(const char *to, const char *dir)
{
    char above[PATH_MAX], to_path[PATH_MAX], dir_path[PATH_MAX];
    snprintf(above, sizeof(above), "%s", to);
    /* The new directory usually does not exist yet, and its parent decides. If the parent does not
     * exist either, making the target fails with a message. */
    if (!realpath(dir, dir_path) || (!realpath(to, to_path) && !realpath(dirname(above), to_path)))
        return false;
    size_t len = strlen(dir_path);
    return strncmp(to_path, dir_path, len) == 0 && (to_path[len] == 0 || to_path[len] == '/');
}

static enum status salvage_into(struct salvage_report *report, const char *from, const char *to,
                                struct store_salvage *ret_found, struct error *ret_error)
{
    struct import_target target = {0};
    TRY(preflight_data_dir(to, ret_error));
    /* Everything is written beside the target and renamed at the end, so that a failure leaves no
     * half-made directory that could be started. */
    TRY(import_target_begin(&target, fs_posix(), to, ret_error));
    enum status status = store_salvage(
        &(struct store_salvage_options){
            .fs = fs_posix(),
            .dir = from,
            .to = target.build_dir,
            .checkpoint_map_bytes = engine_local_map_bytes(),
            .salt = random_seed_system(),
            .lost = show_lost,
            .gap = show_gap,
            .progress = show_progress,
            .ctx = report,
        },
        ret_found, ret_error);
    if (status == ST_OK)
        status = import_target_commit(&target, fs_posix(), ret_error);
    import_target_end(&target);
    return status;
}

int salvage_main(int count, char **args)
{
    struct salvage_flags flags = {0};
    struct words words = {.table = &salvage_table, .config = &flags, .word_count_needed = 1};
    int exit_status = words_read(&words, count - 1, args + 1);
    if (exit_status >= 0)
        return exit_status;
    const char *from = words.words[0];
    if (!*flags.to)
        return words_refuse(&words, "say with --to which data directory to make");
    if (is_within(flags.to, from))
        return words_refuse(&words, "--to must not be within the damaged directory");
    /* Faults of the damaged directory are patched; any others are those of the new one. */
    page_fault_report("vigil salvage", from, false);
    struct salvage_report report = {.json = flags.json};
    struct store_salvage found;
    struct error error = {0};
    progress_init(&report.progress, stderr, "salvage", "versions");
    if (flags.json)
        printf("{\"lost\":[");
    enum status status = salvage_into(&report, from, flags.to, &found, &error);
    progress_end(&report.progress);
    if (status != ST_OK) {
        fprintf(stderr, "vigil salvage: %s\n", *error.text ? error.text : status_reason(status));
        return EXIT_FAILURE;
    }
    if (flags.json)
        write_json(&report, &found);
    else
        write_text(&report, &found, from, flags.to);
    bool lost = report.unreadable || found.lost_versions || found.gaps || found.unreadable ||
                found.checkpoint.lost_rows || found.checkpoint.rows_unsure;
    return lost ? EXIT_LOST : EXIT_SUCCESS;
}

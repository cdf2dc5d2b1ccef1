#include "cmd/import_report.h"

#include "base/random.h"
#include "cmd/serve/preflight.h"
#include "engine/local/local.h"

#include <inttypes.h>
#include <stdlib.h>

/* -- The bar -- */

void import_bar_init(struct import_bar *bar, FILE *to, const char *program, bool is_quiet)
{
    *bar = (struct import_bar){
        .program = program,
        .is_quiet = is_quiet,
        .stage = -1,
    };
    progress_init(&bar->progress, to, "", NULL);
}

static const char *const stage_texts[IMPORT_STAGES] = {
    [IMPORT_CHECKING] = "checksum",
    [IMPORT_KEYS] = "keys",
    [IMPORT_ENTRIES] = "write-ahead log",
    [IMPORT_FINISHING] = "finishing",
};

static void tell(void *ctx, enum import_stage stage, uint64_t done, uint64_t all)
{
    struct import_bar *bar = ctx;
    if (bar->is_quiet)
        return;
    if (bar->stage != (int)stage) {
        bar->stage = (int)stage;
        progress_next(&bar->progress, stage_texts[stage]);
        bar->progress.unit = stage == IMPORT_ENTRIES ? "entries" : NULL;
        if (!bar->progress.is_terminal)
            fprintf(bar->progress.to, "%s: %s\n", bar->program, stage_texts[stage]);
    }
    progress_show(&bar->progress, done, all);
}

struct import_progress import_bar_progress(struct import_bar *bar)
{
    return (struct import_progress){.fn = tell, .ctx = bar};
}

void import_bar_end(struct import_bar *bar)
{
    progress_end(&bar->progress);
}

/* -- The result -- */

static void write_log_line(FILE *to, const struct import_summary *summary)
{
    if (!summary->is_directory)
        return;
    fprintf(to, "  log          %" PRIu64 " entries applied", summary->entries);
    if (summary->entries_refused)
        fprintf(to, ", %" PRIu64 " left out that etcd had refused", summary->entries_refused);
    fputs(summary->wal_is_torn ? "; its last record was torn\n" : "\n", to);
}

static void write_notes(FILE *to, const struct import_summary *summary)
{
    if (summary->has_v2_keys || summary->entries_v2)
        fprintf(to, "  v2           not imported: keys and requests of the v2 API%s\n",
                summary->has_v2_keys ? "" : " (members alone, most likely)");
    if (summary->cluster_id)
        fprintf(to, "  cluster      %" PRIx64 ", member %" PRIx64 "\n", summary->cluster_id,
                summary->member_id);
    if (summary->alarms)
        fprintf(to, "  alarms       %" PRIu64 " raised\n", summary->alarms);
}

static void write_text(FILE *to, const struct import_options *options,
                       const struct import_summary *summary)
{
    char size[32];
    progress_bytes_text(summary->file_bytes, size);
    fprintf(to, "%s %s%s%s (%s) into %s in %.1f s.\n", options->is_file ? "Restored" : "Imported",
            options->source, *summary->etcd_version ? ", etcd " : "", summary->etcd_version, size,
            options->data_dir, (double)summary->elapsed_ns / (double)NS_PER_S);
    fprintf(to, "  revision     %" PRId64, summary->revision);
    if (summary->compact_revision >= 0)
        fprintf(to, ", compacted at %" PRId64, summary->compact_revision);
    fprintf(to, "\n  keys         %" PRIu64 ", %" PRIu64 " changes\n", summary->keys,
            summary->changes);
    fprintf(to, "  leases       %" PRIu64 "\n", summary->leases);
    fprintf(to, "  users        %" PRIu64 ", %" PRIu64 " roles, authentication %s\n",
            summary->users, summary->roles, summary->auth_enabled ? "on" : "off");
    write_log_line(to, summary);
    write_notes(to, summary);
    fprintf(to, "Start it with: vigil serve --data-dir %s\n", options->data_dir);
}

static void write_json(FILE *to, const struct import_summary *s)
{
    static const char *const truth[] = {"false", "true"};
    fprintf(to,
            "{\"revision\":%" PRId64 ",\"compactRevision\":%" PRId64 ",\"keys\":%" PRIu64
            ",\"changes\":%" PRIu64 ",\"leases\":%" PRIu64 ",\"users\":%" PRIu64
            ",\"roles\":%" PRIu64 ",\"alarms\":%" PRIu64 ",\"authEnabled\":%s",
            s->revision, s->compact_revision, s->keys, s->changes, s->leases, s->users, s->roles,
            s->alarms, truth[s->auth_enabled]);
    fprintf(to,
            ",\"logEntries\":%" PRIu64 ",\"logEntriesRefused\":%" PRIu64 ",\"v2Entries\":%" PRIu64
            ",\"v2Keys\":%s,\"logTorn\":%s",
            s->entries, s->entries_refused, s->entries_v2, truth[s->has_v2_keys],
            truth[s->wal_is_torn]);
    fprintf(to,
            ",\"clusterID\":\"%" PRIx64 "\",\"memberID\":\"%" PRIx64
            "\",\"etcdVersion\":\"%s\",\"bytes\":%" PRIu64 ",\"seconds\":%.3f}\n",
            s->cluster_id, s->member_id, s->etcd_version, s->file_bytes,
            (double)s->elapsed_ns / (double)NS_PER_S);
}

/* -- The command -- */

int import_report_failure(const char *program, enum status status, const struct error *error)
{
    fprintf(stderr, "%s: %s\n", program, *error->text ? error->text : status_reason(status));
    return EXIT_FAILURE;
}

int import_and_report(const char *program, struct import_options *options,
                      enum import_report report)
{
    struct import_bar bar;
    import_bar_init(&bar, stderr, program, report != IMPORT_TEXT);
    options->fs = fs_posix();
    options->checkpoint_map_bytes = engine_local_map_bytes();
    options->salt = random_seed_system();
    options->progress = import_bar_progress(&bar);
    struct import_summary summary;
    struct error error = {0};
    enum status status = preflight_data_dir(options->data_dir, &error);
    if (status == ST_OK)
        status = import_run(options, &summary, &error);
    import_bar_end(&bar);
    if (status != ST_OK)
        return import_report_failure(program, status, &error);
    if (report == IMPORT_JSON)
        write_json(stdout, &summary);
    else if (report == IMPORT_TEXT)
        write_text(stdout, options, &summary);
    return EXIT_SUCCESS;
}

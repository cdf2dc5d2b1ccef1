#include "engine/local/state/check.h"

#include "base/clock.h"
#include "engine/local/state/metrics.h"
#include "store/upkeep.h"

#include <stdio.h>

enum {
    STEP_BYTES = 512 * 1024, /* about 0.1 ms */
    STEPS_PER_SECOND = 64,   /* 32 MiB/s */
    WARNINGS_MAX = 16,       /* per pass; further damage is only counted */
};

/* -- Reporting -- */

static void on_damage(void *ctx, const struct store_check_damage *damage)
{
    struct local_check *check = ctx;
    if (check->warnings++ >= WARNINGS_MAX)
        return;
    char detail[LOCAL_DAMAGE_TEXT_BYTES];
    local_damage_text(detail, damage->segment_id, damage->offset, damage->key);
    local_warn(check->options.report, damage->what, ST_DAMAGED, detail);
}

static void report_end(const struct local_check *check, const struct store_check_counts *counts)
{
    uint64_t bad = counts->bad_records + counts->bad_versions;
    if (!bad)
        return;
    char detail[160];
    snprintf(detail, sizeof(detail), "%llu of %llu records, %llu of %llu versions of keys",
             (unsigned long long)counts->bad_records, (unsigned long long)counts->records,
             (unsigned long long)counts->bad_versions, (unsigned long long)counts->versions);
    local_warn(check->options.report, "the check of the store has found damage", ST_DAMAGED,
               detail);
}

/* -- Steps -- */

void local_check_init(struct local_check *check, const struct local_check_options *options,
                      int64_t now_ns)
{
    *check = (struct local_check){.options = *options, .next_ns = now_ns + options->interval_ns};
}

void local_check_fini(struct local_check *check)
{
    store_check_free(check->pass);
    check->pass = NULL;
}

static void count(struct local_check *check, const struct store_check_counts *now)
{
    struct store_check_counts *before = &check->counted;
    local_count(check->options.counts, LOCAL_CHECKED_RECORDS, now->records - before->records);
    local_count(check->options.counts, LOCAL_CHECKED_VERSIONS, now->versions - before->versions);
    local_count(check->options.counts, LOCAL_BAD_RECORDS, now->bad_records - before->bad_records);
    local_count(check->options.counts, LOCAL_BAD_VERSIONS,
                now->bad_versions - before->bad_versions);
    *before = *now;
}

static void pass_end(struct local_check *check, int64_t now_ns)
{
    struct store_check_counts counts = store_check_counts(check->pass);
    report_end(check, &counts);
    struct local_check_result *result = check->options.result;
    atomic_store(&result->bad, counts.bad_records + counts.bad_versions);
    atomic_store(&result->took_ns, now_ns - check->begun_ns);
    atomic_store(&result->ended_unix_s, clock_real_ns(clock_system()) / NS_PER_S);
    local_count(check->options.counts, LOCAL_CHECKS, 1);
    store_check_free(TAKE(check->pass));
    int64_t next = check->begun_ns + check->options.interval_ns;
    check->next_ns = next > now_ns ? next : now_ns + NS_PER_S;
}

void local_check_turn(struct local_check *check, int64_t now_ns)
{
    if (now_ns < check->next_ns)
        return;
    if (!check->pass) {
        check->pass = store_check_new(on_damage, check);
        check->counted = (struct store_check_counts){0};
        check->warnings = 0;
        check->begun_ns = now_ns;
    }
    enum status status = upkeep_check_step(check->options.upkeep, check->pass, STEP_BYTES);
    struct store_check_counts counts = store_check_counts(check->pass);
    count(check, &counts);
    check->next_ns = now_ns + NS_PER_S / STEPS_PER_SECOND;
    if (status != ST_AGAIN)
        pass_end(check, now_ns);
}

/* -- While opening -- */

struct first_damage {
    struct error *error;
    bool bad;
};

static void on_first_damage(void *ctx, const struct store_check_damage *damage)
{
    struct first_damage *first = ctx;
    if (first->bad)
        return;
    char detail[LOCAL_DAMAGE_TEXT_BYTES];
    local_damage_text(detail, damage->segment_id, damage->offset, damage->key);
    (void)error_set(first->error, ST_DAMAGED, "%s: %s", damage->what, detail);
    first->bad = true;
}

enum status local_check_first(const struct store_view *view, const struct log *log,
                              struct error *ret_error)
{
    struct first_damage first = {.error = ret_error};
    AUTO(store_check_freep) struct store_check *pass = store_check_new(on_first_damage, &first);
    while (store_check_step(pass, view, log, SIZE_MAX) == ST_AGAIN)
        ;
    return first.bad ? ST_DAMAGED : ST_OK;
}

void local_check_metrics_write(const struct local_check_result *result, struct metric_page *page)
{
    metric_page_gauge(page, "vigil_store_check_last_bad",
                      "Damaged records and versions that the last complete check found.",
                      atomic_load(&result->bad));
    metric_page_gauge(page, "vigil_store_check_last_timestamp_seconds",
                      "When the last complete check ended, in Unix time; 0: no check has ended.",
                      (uint64_t)atomic_load(&result->ended_unix_s));
    metric_page_gauge(page, "vigil_store_check_last_duration_seconds",
                      "Duration of the last complete check, which is slowed down on purpose.",
                      (uint64_t)(atomic_load(&result->took_ns) / NS_PER_S));
}

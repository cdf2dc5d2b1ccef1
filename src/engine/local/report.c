#include "engine/local/report.h"

#include "base/clock.h"
#include "store/log/damage.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAILURE_TEXT_BYTES = 256 };

static void failure_text(char text[static FAILURE_TEXT_BYTES], const char *what, enum status status)
{
    snprintf(text, FAILURE_TEXT_BYTES, "%s: %s", what, status_reason(status));
}

_Noreturn void local_fatal(const struct local_report *report, const char *what, enum status status)
{
    char text[FAILURE_TEXT_BYTES];
    failure_text(text, what, status);
    if (report->on_fatal)
        report->on_fatal(report->ctx, text);
    fprintf(stderr, "vigil: %s\n", text);
    abort();
}

void local_fail(struct local_report *report, const char *what, enum status status)
{
    char text[FAILURE_TEXT_BYTES];
    if (!report->on_failure)
        local_fatal(report, what, status);
    failure_text(text, what, status);
    if (!atomic_exchange(&report->failed, true))
        report->on_failure(report->ctx, text);
}

void local_warn(const struct local_report *report, const char *what, enum status status,
                const char *detail)
{
    if (!report->on_warning)
        return;
    char text[512];
    snprintf(text, sizeof(text), "%s: %s%s%s", what, status_reason(status), *detail ? "; " : "",
             detail);
    report->on_warning(report->ctx, text);
}

/* The first bytes of a key, with a dot for each that is not printable ASCII. */
static void key_text(struct slice key, char text[static 65])
{
    size_t len = size_min(key.len, 64);
    for (size_t i = 0; i < len; i++) {
        bool plain = key.ptr[i] > ' ' && key.ptr[i] < 0x7f && key.ptr[i] != '"';
        text[i] = plain ? (char)key.ptr[i] : '.';
    }
    text[len] = 0;
}

void local_damage_text(char text[static LOCAL_DAMAGE_TEXT_BYTES], uint64_t segment_id,
                       uint64_t offset, struct slice key)
{
    char name[65];
    key_text(key, name);
    snprintf(text, LOCAL_DAMAGE_TEXT_BYTES,
             "log/%016llx.seg, offset %llu%s%s: put the key again, or restore a snapshot",
             (unsigned long long)segment_id, (unsigned long long)offset, key.len ? ", key " : "",
             name);
}

static void warn_damage(const struct local_report *report, struct slice key)
{
    char detail[LOCAL_DAMAGE_TEXT_BYTES];
    uint64_t segment, offset;
    (void)log_damage_count(report->log, &segment, &offset);
    local_damage_text(detail, segment, offset, key);
    local_warn(report, "a request met damage", ST_DAMAGED, detail);
}

enum status local_report_damage(struct local_report *report, enum status status, struct slice key)
{
    if (LIKELY(status != ST_DAMAGED))
        return status;
    atomic_fetch_add(&report->damaged_requests, 1);
    int64_t now = clock_mono_ns(clock_system()), last = atomic_load(&report->damage_logged_ns);
    if ((!last || now - last >= NS_PER_S) &&
        atomic_compare_exchange_strong(&report->damage_logged_ns, &last, now))
        warn_damage(report, key);
    return ST_CORRUPT;
}

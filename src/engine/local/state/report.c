#include "engine/local/state/report.h"

#include "base/clock.h"
#include "engine/operation.h"
#include "store/log/damage.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAILURE_TEXT_BYTES = LOG_FAILURE_TEXT_BYTES + 512 };

static void failure_text(const struct local_report *report, char text[static FAILURE_TEXT_BYTES],
                         const char *what, enum status status)
{
    char file[LOG_FAILURE_TEXT_BYTES] = "";
    if (report->log)
        log_failure_text(report->log, file);
    snprintf(text, FAILURE_TEXT_BYTES,
             "%s: %s%s%s. It is not known which of the last changes are on the disk, so nothing "
             "more is accepted: see in the kernel's log whether the disk fails, then start again, "
             "which examines what was written",
             what, file, *file ? ": " : "", status_reason(status));
}

_Noreturn void local_fatal(const struct local_report *report, const char *what, enum status status)
{
    char text[FAILURE_TEXT_BYTES];
    failure_text(report, text, what, status);
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
    failure_text(report, text, what, status);
    if (!atomic_exchange(&report->failed, true))
        report->on_failure(report->ctx, text);
}

void local_warn(const struct local_report *report, const char *what, enum status status,
                const char *detail)
{
    if (!report->on_warning)
        return;
    char text[1024];
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
             "log/%016llx.seg, offset %llu%s%s: put the key again or delete it, or stop the server "
             "and use vigil repair",
             (unsigned long long)segment_id, (unsigned long long)offset, key.len ? ", key " : "",
             name);
}

/* The key as it was stored, quoted; a long one is cut. */
static void damaged_key_text(const struct log_damaged *damaged, char *text, size_t size)
{
    size_t len = size_min(damaged->key_len, sizeof(damaged->key)), at = 0;
    text[at++] = '"';
    for (size_t i = 0; i < len && at + sizeof("\\xff\"...") <= size; i++) {
        uint8_t byte = damaged->key[i];
        bool plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
        at += (size_t)snprintf(text + at, size - at, plain ? "%c" : "\\x%02x", byte);
    }
    snprintf(text + at, size - at, "\"%s", len < damaged->key_len ? "..." : "");
}

void local_describe_damage(struct engine_op *op)
{
    struct log_damaged damaged = log_take_damage();
    if (!damaged.loc)
        return;
    char key[4 * LOG_DAMAGED_KEY_BYTES + 8], place[64], text[sizeof(key) + 320];
    uint64_t segment, offset;
    int len;
    log_loc_split(damaged.loc, &segment, &offset);
    snprintf(place, sizeof(place), "log/%016llx.seg, offset %llu", (unsigned long long)segment,
             (unsigned long long)offset);
    damaged_key_text(&damaged, key, sizeof(key));
    const char *corrupt = status_text(ST_CORRUPT);
    if (!damaged.key_len)
        len = snprintf(text, sizeof(text),
                       "%s: a stored record is damaged (%s), and no version of a key needs it: "
                       "stop the server and run vigil repair --data-dir DIR, or wait until its "
                       "segment is full, then compact to the newest revision and defragment",
                       corrupt, place);
    else if (damaged.revision)
        len = snprintf(text, sizeof(text),
                       "%s: the value of key %s at revision %lld is damaged (%s): put the key "
                       "again or delete it, or stop the server and use vigil repair",
                       corrupt, key, (long long)damaged.revision, place);
    else
        len = snprintf(text, sizeof(text),
                       "%s: an older version of key %s is damaged (%s): read a newer revision, and "
                       "compact to remove it",
                       corrupt, key, place);
    if (arena_dup(op->arena, slice_of(text, (size_t)len), &op->text) != ST_OK)
        op->text = SLICE_EMPTY; /* the text of the status must do */
}

static void warn_damage(const struct local_report *report, const struct engine_op *op)
{
    char detail[LOCAL_DAMAGE_TEXT_BYTES];
    uint64_t segment, offset;
    (void)log_damage_count(report->log, &segment, &offset);
    if (op && op->text.len)
        snprintf(detail, sizeof(detail), "%.*s", SLICE_ARGS(op->text));
    else
        local_damage_text(detail, segment, offset, SLICE_EMPTY);
    local_warn(report, "a request met damage", ST_DAMAGED, detail);
}

enum status local_report_damage(struct local_report *report, const struct engine_op *op)
{
    atomic_fetch_add(&report->damaged_requests, 1);
    int64_t now = clock_mono_ns(clock_system()), last = atomic_load(&report->damage_logged_ns);
    if ((!last || now - last >= NS_PER_S) &&
        atomic_compare_exchange_strong(&report->damage_logged_ns, &last, now))
        warn_damage(report, op);
    return ST_CORRUPT;
}

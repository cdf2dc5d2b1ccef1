#include "etcd/auto_compaction.h"

#include "base/options/value.h"
#include "base/xalloc.h"

#include <assert.h>

#define HOUR_NS (3600 * NS_PER_S)

enum { NOTES_KEPT = 3 }; /* noted revisions that are kept of a history that is too large */

static const int64_t revision_interval_ns = 300 * NS_PER_S;

static bool only_digits(const char *text)
{
    const char *p = text;
    while (*p >= '0' && *p <= '9')
        p++;
    return p != text && *p == '\0';
}

enum status auto_compaction_parse(enum auto_compaction_mode mode, const char *text,
                                  int64_t *ret_retention)
{
    int64_t value;
    if (*text == '\0')
        text = "0";
    const char *digits = *text == '+' ? text + 1 : text;
    if (!only_digits(digits)) {
        /* In the mode "revision", too: etcd then uses the nanoseconds as the number of revisions.
         */
        TRY(option_value_duration(text, &value));
    } else {
        /* Leading zeros do not make the number octal. */
        while (digits[0] == '0' && digits[1] != '\0')
            digits++;
        TRY(option_value_int(digits, &value));
        if (mode == AUTO_COMPACTION_PERIODIC && __builtin_mul_overflow(value, HOUR_NS, &value))
            return ST_INVALID;
    }
    if (value < 0)
        return ST_INVALID;
    *ret_retention = value;
    return ST_OK;
}

static int64_t at_most_an_hour(int64_t ns)
{
    return ns < HOUR_NS ? ns : HOUR_NS;
}

static size_t notes_max(const struct auto_compaction *compaction)
{
    return (size_t)(compaction->retention / compaction->interval_ns) + 1;
}

static void notes_grow(struct auto_compaction *compaction)
{
    size_t capacity = compaction->noted_capacity ? compaction->noted_capacity * 2 : 16;
    if (capacity > notes_max(compaction))
        capacity = notes_max(compaction);
    /* The ring wraps around only at its full length. */
    assert(compaction->noted_first == 0);
    compaction->noted = xrealloc(compaction->noted, capacity * sizeof(*compaction->noted));
    compaction->noted_capacity = capacity;
}

static void note(struct auto_compaction *compaction, int64_t revision)
{
    if (compaction->noted_count < notes_max(compaction)) {
        if (compaction->noted_count == compaction->noted_capacity)
            notes_grow(compaction);
        compaction->noted[compaction->noted_count++] = revision;
        return;
    }
    compaction->noted[compaction->noted_first] = revision;
    compaction->noted_first = (compaction->noted_first + 1) % compaction->noted_count;
}

void auto_compaction_init(struct auto_compaction *compaction, enum auto_compaction_mode mode,
                          int64_t retention, int64_t now_ns, int64_t revision)
{
    assert(retention > 0);
    *compaction = (struct auto_compaction){
        .mode = mode,
        .retention = retention,
        .interval_ns = revision_interval_ns,
        .last_ns = now_ns,
        .between_ns = retention,
    };
    if (mode == AUTO_COMPACTION_PERIODIC) {
        int64_t tenth = at_most_an_hour(retention) / 10;
        compaction->interval_ns = tenth > NS_PER_MS ? tenth : NS_PER_MS;
        note(compaction, revision);
    }
    compaction->next_ns = clock_add(now_ns, compaction->interval_ns);
}

void auto_compaction_fini(struct auto_compaction *compaction)
{
    free(compaction->noted);
    *compaction = (struct auto_compaction){0};
}

void auto_compaction_limit(struct auto_compaction *compaction, int64_t bytes_max)
{
    compaction->bytes_max = bytes_max;
    compaction->bytes_least = INT64_MAX;
}

void auto_compaction_measure(struct auto_compaction *compaction, int64_t bytes)
{
    compaction->bytes = bytes;
    if (bytes < compaction->bytes_least)
        compaction->bytes_least = bytes;
}

static void finish_round(struct auto_compaction *compaction, int64_t now_ns, int64_t revision)
{
    if (compaction->mode == AUTO_COMPACTION_PERIODIC)
        note(compaction, revision);
    compaction->next_ns = clock_add(now_ns, compaction->interval_ns);
}

static int64_t due(struct auto_compaction *compaction, int64_t now_ns, int64_t revision)
{
    if (compaction->mode == AUTO_COMPACTION_REVISION) {
        int64_t keep_from = revision - compaction->retention;
        return keep_from > 0 && keep_from != compaction->last ? keep_from : 0;
    }
    /* A compaction frees its bytes in steps, so the growth is measured from the least size since.
     */
    if (compaction->bytes_max &&
        compaction->bytes - compaction->bytes_least > compaction->bytes_max) {
        size_t back = size_min(compaction->noted_count, NOTES_KEPT);
        size_t at = compaction->noted_first + compaction->noted_count - back;
        int64_t noted = compaction->noted[at % compaction->noted_count];
        return noted != compaction->last ? noted : 0;
    }
    int64_t noted = compaction->noted[compaction->noted_first];
    if (now_ns - compaction->last_ns < compaction->between_ns || noted == compaction->last)
        return 0;
    compaction->between_ns = at_most_an_hour(compaction->retention);
    return noted;
}

int64_t auto_compaction_step(struct auto_compaction *compaction, int64_t now_ns, int64_t revision)
{
    if (now_ns < compaction->next_ns)
        return 0;
    int64_t to = due(compaction, now_ns, revision);
    if (to == 0)
        finish_round(compaction, now_ns, revision);
    return to;
}

void auto_compaction_done(struct auto_compaction *compaction, int64_t now_ns, int64_t compacted,
                          bool succeeded, int64_t revision)
{
    if (succeeded) {
        compaction->last = compacted;
        compaction->last_ns = now_ns;
        compaction->bytes_least = INT64_MAX;
    }
    finish_round(compaction, now_ns, revision);
}

#include "store/log/damage.h"

#include "store/log/log_private.h"

#include <stdio.h>

static _Thread_local struct log_damaged noted_here;

void log_note_damage(const struct log *log, log_loc loc)
{
    struct log *noted = (struct log *)(uintptr_t)log;
    struct segment *segment = segment_table_get(&log->table, log_loc_segment(loc));
    if (segment)
        atomic_store(&segment->damaged, true);
    noted_here = (struct log_damaged){.loc = loc};
    atomic_store_explicit(&noted->damage_loc, loc, memory_order_relaxed);
    atomic_fetch_add_explicit(&noted->damage_count, 1, memory_order_release);
}

void log_name_damage(struct slice key, int64_t revision)
{
    noted_here.revision = revision;
    noted_here.key_len = key.len;
    memcpy(noted_here.key, key.ptr, size_min(key.len, sizeof(noted_here.key)));
}

struct log_damaged log_take_damage(void)
{
    struct log_damaged taken = noted_here;
    noted_here = (struct log_damaged){0};
    return taken;
}

unsigned log_heads_mended(const struct log *log)
{
    return log->heads_mended;
}

bool log_is_damaged(const struct log *log)
{
    return atomic_load_explicit(&log->damage_count, memory_order_relaxed) > 0;
}

uint64_t log_damage_count(const struct log *log, uint64_t *ret_segment_id, uint64_t *ret_offset)
{
    uint64_t count = atomic_load_explicit(&log->damage_count, memory_order_acquire);
    log_loc loc = atomic_load_explicit(&log->damage_loc, memory_order_relaxed);
    log_loc_split(loc, ret_segment_id, ret_offset);
    return count;
}

const char *log_failure_text(const struct log *log, char text[static LOG_FAILURE_TEXT_BYTES])
{
    LOCK_SCOPE((struct lock *)&log->lock);
    text[0] = '\0';
    if (log->failed_doing)
        snprintf(text, LOG_FAILURE_TEXT_BYTES, "%s %s", log->failed_doing,
                 segment_path(log->dir, log->failed_id, ".seg").text);
    return text;
}

uint64_t log_removed_spare(const struct log *log)
{
    return log->removed_spare;
}

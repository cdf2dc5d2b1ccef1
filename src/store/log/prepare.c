#include "store/log/prepare.h"

#include "store/log/log_private.h"

bool log_is_preparing(const struct log *log)
{
    return log->draft.file;
}

static enum status begin_draft(struct log *log)
{
    struct segment_head head;
    TRY(log_new_head(log, atomic_load(&log->next_capacity), log->segment_bytes_first, &head));
    TRY(segment_draft_begin(log->fs, log->dir, &head, !log->unsynced, &log->draft));
    atomic_store_explicit(&log->drafting, true, memory_order_relaxed);
    return ST_OK;
}

static enum status finish_draft(struct log *log)
{
    AUTO(segment_freep) struct segment *segment = NULL;
    TRY(segment_draft_finish(&log->draft, &segment));
    TRY(log_add_segment(log, segment));
    return log_offer(log, TAKE(segment));
}

static enum status continue_draft(struct log *log, uint64_t bytes)
{
    if (!log->draft.file)
        TRY(begin_draft(log));
    TRY(segment_draft_fill(&log->draft, bytes));
    return log->draft.filled == log->draft.head.capacity ? finish_draft(log) : ST_OK;
}

enum status log_prepare_step(struct log *log, uint64_t bytes, bool *ret_done)
{
    log_sweep(log);
    enum status status = log_failed(log);
    bool wanted = log_lacks_next(log);
    if (wanted)
        status = continue_draft(log, bytes);
    if (status != ST_OK || !wanted || !log->draft.file) {
        segment_draft_drop(log->fs, log->dir, &log->draft);
        atomic_store_explicit(&log->drafting, false, memory_order_relaxed);
    }
    *ret_done = !log->draft.file;
    return status;
}

enum status log_prepare(struct log *log)
{
    bool done = false;
    while (!done)
        TRY(log_prepare_step(log, UINT64_MAX, &done));
    return ST_OK;
}

bool log_prepare_lags(const struct log *log)
{
    /* What the writer may write between two steps that wait. */
    enum { BETWEEN_STEPS_BYTES = 2 << 20 };
    if (!log->draft.file)
        return false;
    uint64_t used, capacity;
    {
        LOCK_SCOPE((struct lock *)&log->lock);
        const struct segment *current = log->order.items[log->order.count - 1];
        used = atomic_load(&current->written) + BETWEEN_STEPS_BYTES;
        capacity = current->head.capacity;
    }
    double used_part = (double)used / (double)capacity;
    double filled_part = (double)log->draft.filled / (double)log->draft.head.capacity;
    return filled_part < 2 * used_part; /* so that it is complete when half of it is used */
}

bool log_seems_short(const struct log *log)
{
    uint64_t used, capacity;
    if (atomic_load_explicit(&log->waiting, memory_order_relaxed))
        return false;
    {
        LOCK_SCOPE((struct lock *)&log->lock);
        const struct segment *current = log->order.items[log->order.count - 1];
        used = atomic_load(&current->written);
        capacity = current->head.capacity;
    }
    return log_is_kept(capacity, used) && !log_has_space(log, log->segment_bytes_first);
}

enum status log_free_bytes(const struct log *log, uint64_t *ret_bytes)
{
    return fs_space(log->fs, log->dir, ret_bytes);
}

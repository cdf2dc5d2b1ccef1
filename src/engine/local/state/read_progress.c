#include "engine/local/state/read_progress.h"

#include <sched.h>

void read_progress_begin(struct read_progress *progress, struct mailbox *to, int64_t now_ns)
{
    atomic_store(&progress->read_ns, now_ns);
    atomic_store(&progress->asked, false); /* the shard before with this number may be gone */
    atomic_store(&progress->to, to);
}

void read_progress_end(struct read_progress *progress)
{
    atomic_store(&progress->to, NULL);
    while (atomic_load(&progress->asking))
        sched_yield();
}

int64_t read_progress_wanted(const struct read_progress *progress)
{
    return atomic_load_explicit(&progress->wanted_ns, memory_order_relaxed);
}

void read_progress_report(struct read_progress *progress, int64_t read_ns)
{
    atomic_store_explicit(&progress->read_ns, read_ns, memory_order_release);
    atomic_store_explicit(&progress->asked, false, memory_order_release);
}

void read_progress_ask(struct read_progress *progress, int64_t now_ns)
{
    if (atomic_load_explicit(&progress->asked, memory_order_acquire))
        return;
    atomic_store_explicit(&progress->wanted_ns, now_ns, memory_order_relaxed);
    atomic_fetch_add(&progress->asking, 1);
    struct mailbox *to = atomic_load(&progress->to);
    if (to) {
        atomic_store_explicit(&progress->asked, true, memory_order_release);
        mailbox_post(to, &progress->node);
    }
    atomic_fetch_sub(&progress->asking, 1);
}

void read_progress_check(const struct read_progress *progress)
{
    assert(progress->asking == 0);
    if (progress->to && !progress->asked)
        assert(progress->read_ns >= progress->wanted_ns); /* every question was answered */
}

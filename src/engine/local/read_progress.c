#include "engine/local/read_progress.h"

#include "base/clock.h"

#include <sched.h>

void local_hearing_begin(struct local_hearing *hearing, struct mailbox *to, int64_t now_ns)
{
    atomic_store(&hearing->heard_ns, now_ns);
    atomic_store(&hearing->to, to);
}

void local_hearing_end(struct local_hearing *hearing)
{
    atomic_store(&hearing->to, NULL);
    while (atomic_load(&hearing->asking))
        sched_yield();
}

int64_t local_hearing_wanted(const struct local_hearing *hearing)
{
    return atomic_load_explicit(&hearing->wanted_ns, memory_order_relaxed);
}

void local_hearing_answer(struct local_hearing *hearing, int64_t heard_ns)
{
    atomic_store_explicit(&hearing->heard_ns, heard_ns, memory_order_release);
    atomic_store_explicit(&hearing->asked, false, memory_order_release);
}

int64_t local_hearing_heard(const struct local_hearing *hearing)
{
    if (!atomic_load(&hearing->to))
        return CLOCK_NEVER;
    return atomic_load_explicit(&hearing->heard_ns, memory_order_acquire);
}

void local_hearing_ask(struct local_hearing *hearing, int64_t now_ns)
{
    if (atomic_load_explicit(&hearing->asked, memory_order_acquire))
        return;
    atomic_store_explicit(&hearing->wanted_ns, now_ns, memory_order_relaxed);
    atomic_fetch_add(&hearing->asking, 1);
    struct mailbox *to = atomic_load(&hearing->to);
    if (to) {
        atomic_store_explicit(&hearing->asked, true, memory_order_release);
        mailbox_post(to, &hearing->node);
    }
    atomic_fetch_sub(&hearing->asking, 1);
}

#include "engine/local/state/revision_notice.h"

#include "base/clock.h"

#include <sched.h>

enum { NOTICE_WANTED = 1, NOTICE_SENT = 2 /* and not received */ };

/*
 * All accesses to `state` are read-modify-writes, so that of two threads the later one sees what
 * the earlier did before: either the writer finds the shard listening, or the shard finds what the
 * writer has published.
 */
static unsigned state_of(struct revision_notice *notice)
{
    return atomic_fetch_or_explicit(&notice->state, 0, memory_order_acq_rel);
}

void revision_notice_listen(struct revision_notice *notice, bool wanted)
{
    if (wanted)
        atomic_fetch_or_explicit(&notice->state, NOTICE_WANTED, memory_order_acq_rel);
    else
        atomic_fetch_and_explicit(&notice->state, ~(unsigned)NOTICE_WANTED, memory_order_acq_rel);
}

void revision_notice_seen(struct revision_notice *notice, int64_t revision)
{
    atomic_store_explicit(&notice->seen, revision, memory_order_release);
}

bool revision_notice_lags(struct revision_notice *notice, int64_t revision)
{
    return state_of(notice) & NOTICE_WANTED &&
           atomic_load_explicit(&notice->seen, memory_order_acquire) < revision;
}

void revision_notice_received(struct revision_notice *notice)
{
    atomic_fetch_and_explicit(&notice->state, ~(unsigned)NOTICE_SENT, memory_order_acq_rel);
}

bool revision_notice_hold(struct revision_notice *notice)
{
    return !(atomic_fetch_or_explicit(&notice->state, NOTICE_SENT, memory_order_acq_rel) &
             NOTICE_SENT);
}

void revision_notice_end(struct revision_notice *notice)
{
    revision_notice_listen(notice, false);
    while (atomic_load(&notice->sending))
        sched_yield();
}

void revision_notice_send(struct revision_notice *notice)
{
    atomic_fetch_add(&notice->sending, 1);
    if (state_of(notice) & NOTICE_WANTED &&
        !(atomic_fetch_or_explicit(&notice->state, NOTICE_SENT, memory_order_acq_rel) &
          NOTICE_SENT)) {
        notice->sent_ns = clock_mono_ns(clock_system());
        mailbox_post(notice->to, &notice->node);
    }
    atomic_fetch_sub(&notice->sending, 1);
}

void revision_notice_check(const struct revision_notice *notice)
{
    assert(notice->state <= (NOTICE_WANTED | NOTICE_SENT));
    assert(notice->sending == 0);
    assert(!(notice->state & NOTICE_WANTED) || notice->to);
    assert(notice->seen >= 0);
}

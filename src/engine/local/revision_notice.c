#include "engine/local/revision_notice.h"

#include "base/clock.h"

#include <sched.h>

enum { NEWS_WANTED = 1, NEWS_SENT = 2 /* and not received */ };

/*
 * Everybody reads and writes `state` in one step, so that of two who meet there the later one sees
 * what the earlier did before: either the writer finds the shard listening, or the shard finds what
 * the writer has published.
 */
static unsigned look(struct local_news *news)
{
    return atomic_fetch_or_explicit(&news->state, 0, memory_order_acq_rel);
}

void local_news_listen(struct local_news *news, bool wanted)
{
    if (wanted)
        atomic_fetch_or_explicit(&news->state, NEWS_WANTED, memory_order_acq_rel);
    else
        atomic_fetch_and_explicit(&news->state, ~(unsigned)NEWS_WANTED, memory_order_acq_rel);
}

void local_news_taken(struct local_news *news, int64_t revision)
{
    atomic_store_explicit(&news->taken, revision, memory_order_release);
}

bool local_news_lags(struct local_news *news, int64_t revision)
{
    return look(news) & NEWS_WANTED &&
           atomic_load_explicit(&news->taken, memory_order_acquire) < revision;
}

void local_news_received(struct local_news *news)
{
    atomic_fetch_and_explicit(&news->state, ~(unsigned)NEWS_SENT, memory_order_acq_rel);
}

bool local_news_hold(struct local_news *news)
{
    return !(atomic_fetch_or_explicit(&news->state, NEWS_SENT, memory_order_acq_rel) & NEWS_SENT);
}

void local_news_end(struct local_news *news)
{
    local_news_listen(news, false);
    while (atomic_load(&news->telling))
        sched_yield();
}

void local_news_tell(struct local_news *news)
{
    atomic_fetch_add(&news->telling, 1);
    if (look(news) & NEWS_WANTED &&
        !(atomic_fetch_or_explicit(&news->state, NEWS_SENT, memory_order_acq_rel) & NEWS_SENT)) {
        news->told_ns = clock_mono_ns(clock_system());
        mailbox_post(news->to, &news->node);
    }
    atomic_fetch_sub(&news->telling, 1);
}

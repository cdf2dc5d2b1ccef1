#include "tier/link/rate.h"

#include "base/metric/page.h"
#include "base/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { BURST_SECONDS = 2 }; /* as in client-go, whose bucket has twice its rate */

struct tier_rate {
    int64_t token_ns; /* in which one token is added; 0: no limit */
    int64_t burst_ns; /* in which an empty bucket becomes full */
    _Atomic int64_t full_ns;
    _Atomic uint64_t calls, delayed, delay_ns;
};

struct tier_rate *tier_rate_new(uint32_t per_second)
{
    struct tier_rate *rate = xcalloc(1, sizeof(*rate));
    if (per_second) {
        rate->token_ns = NS_PER_S / per_second > 0 ? NS_PER_S / per_second : 1;
        rate->burst_ns = rate->token_ns * per_second * BURST_SECONDS;
    }
    return rate;
}

void tier_rate_free(struct tier_rate *rate)
{
    free(rate);
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Takes a token, which is there at the time that is returned; that may be in the past. */
static int64_t reserve(struct tier_rate *rate, int64_t now_ns)
{
    int64_t full_ns = atomic_load_explicit(&rate->full_ns, memory_order_relaxed), next_ns;
    do
        next_ns = (full_ns > now_ns ? full_ns : now_ns) + rate->token_ns;
    while (!atomic_compare_exchange_weak_explicit(&rate->full_ns, &full_ns, next_ns,
                                                  memory_order_relaxed, memory_order_relaxed));
    return next_ns - rate->burst_ns;
}

bool tier_lane_take(struct tier_lane *lane)
{
    struct tier_rate *rate = lane->rate;
    int64_t now_ns = loop_now_ns(lane->loop);
    if (!rate)
        return true;
    if (rate->token_ns && !lane->reserved) {
        lane->at_ns = reserve(rate, now_ns);
        lane->since_ns = now_ns;
        lane->reserved = true;
    }
    if (rate->token_ns && lane->at_ns > now_ns) {
        loop_timer_set(lane->loop, &lane->timer, lane->at_ns);
        return false;
    }
    if (lane->reserved && now_ns > lane->since_ns) {
        add(&rate->delayed, 1);
        add(&rate->delay_ns, (uint64_t)(now_ns - lane->since_ns));
    }
    lane->reserved = false;
    add(&rate->calls, 1);
    return true;
}

static void on_timer(struct timer *timer)
{
    struct tier_lane *lane = CONTAINER_OF(timer, struct tier_lane, timer);
    lane->ready(lane);
}

void tier_lane_init(struct tier_lane *lane, struct tier_rate *rate, struct loop *loop,
                    void (*ready)(struct tier_lane *lane))
{
    *lane = (struct tier_lane){.rate = rate, .loop = loop, .ready = ready, .timer.fn = on_timer};
}

void tier_lane_fini(struct tier_lane *lane)
{
    if (lane->loop)
        loop_timer_cancel(lane->loop, &lane->timer);
}

void tier_rate_write_metrics(const struct tier_rate *rate, struct metric_page *page)
{
    metric_page_counter(page, "vigil_tier_upstream_calls_total",
                        "Calls that the tier has made on its own account, which --upstream-qps "
                        "limits: lists, watches, fences, reviews, and whether it is ready.",
                        atomic_load_explicit(&rate->calls, memory_order_relaxed));
    metric_page_counter(page, "vigil_tier_upstream_calls_delayed_total",
                        "Those of these calls that waited for --upstream-qps.",
                        atomic_load_explicit(&rate->delayed, memory_order_relaxed));
    metric_page_head(page, "vigil_tier_upstream_delay_seconds_total", METRIC_COUNTER,
                     "Seconds that these calls have waited.");
    metric_page_row_real(page, "vigil_tier_upstream_delay_seconds_total", "",
                         (double)atomic_load_explicit(&rate->delay_ns, memory_order_relaxed) /
                             (double)NS_PER_S);
}

#include "tier/rights/readiness.h"

#include "base/clock.h"

#define ASK_AGAIN_NS (100 * NS_PER_MS)
#define TIMEOUT_NS (5 * NS_PER_S)
/* How long an answer is used. The review that confirms a denial follows within two seconds, unless
 * it waits in line; a kube-apiserver behind a proxy takes longer to start. */
#define VALID_NS (3 * NS_PER_S)

static struct tier_ready *find(struct tier_readiness *r, uint32_t connection)
{
    for (size_t i = 0; connection && i < TIER_READY_MAX; i++)
        if (r->ready[i].connection == connection)
            return &r->ready[i];
    return NULL;
}

static struct tier_ready *oldest(struct tier_readiness *r)
{
    struct tier_ready *found = &r->ready[0];
    for (size_t i = 1; i < TIER_READY_MAX; i++)
        if (r->ready[i].last_ns < found->last_ns)
            found = &r->ready[i];
    return found;
}

static void is_ready(struct tier_readiness *r, uint32_t connection)
{
    int64_t now_ns = loop_now_ns(r->loop);
    struct tier_ready *ready = find(r, connection);
    if (!ready) {
        ready = oldest(r);
        *ready = (struct tier_ready){.connection = connection, .first_ns = now_ns};
    } else if (now_ns > ready->last_ns + VALID_NS) {
        ready->first_ns = now_ns;
    }
    ready->last_ns = now_ns;
}

static void on_done(struct tier_call *call, unsigned code, struct slice body, const char *reason)
{
    struct tier_readiness *r = CONTAINER_OF(call, struct tier_readiness, call);
    struct tier_ready *ready = find(r, call->connection);
    (void)body, (void)reason;
    if (code == 200)
        is_ready(r, call->connection);
    else if (ready)
        *ready = (struct tier_ready){0};
}

static void start(struct tier_readiness *r)
{
    if (!tier_lane_take(&r->lane))
        return;
    r->asked_ns = loop_now_ns(r->loop);
    r->call.done = on_done;
    /* Without memory the next denial asks again. */
    (void)!tier_call_start(r->link, &r->call, "GET", "/readyz", SLICE_EMPTY, TIMEOUT_NS);
}

static void on_lane_ready(struct tier_lane *lane)
{
    start(CONTAINER_OF(lane, struct tier_readiness, lane));
}

void tier_readiness_ask(struct tier_readiness *r)
{
    bool lately = r->asked_ns && loop_now_ns(r->loop) < r->asked_ns + ASK_AGAIN_NS;
    if (!lately && !r->call.state && !tier_lane_waits(&r->lane))
        start(r);
}

bool tier_readiness_covers(struct tier_readiness *r, uint32_t connection, int64_t sent_ns)
{
    const struct tier_ready *ready = find(r, connection);
    return ready && ready->first_ns <= sent_ns && sent_ns <= ready->last_ns + VALID_NS;
}

void tier_readiness_init(struct tier_readiness *r, struct loop *loop, struct tier_link *link,
                         struct tier_rate *rate)
{
    *r = (struct tier_readiness){.loop = loop, .link = link};
    tier_lane_init(&r->lane, rate, loop, on_lane_ready);
}

void tier_readiness_fini(struct tier_readiness *r)
{
    tier_call_cancel(&r->call);
    tier_lane_fini(&r->lane);
}

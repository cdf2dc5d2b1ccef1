#include "kubeclient/connect/server_backoff.h"

#include <assert.h>

void server_backoff_succeeded(struct server_backoff *backoff)
{
    *backoff = (struct server_backoff){0};
}

static int64_t next_delay(const struct server_backoff *backoff)
{
    if (backoff->delay_ns == 0)
        return SERVER_BACKOFF_MIN_NS;
    return backoff->delay_ns < SERVER_BACKOFF_MAX_NS / 2 ? 2 * backoff->delay_ns
                                                         : SERVER_BACKOFF_MAX_NS;
}

void server_backoff_failed(struct server_backoff *backoff, int64_t started_ns, int64_t now_ns,
                           struct random *random)
{
    assert(started_ns <= now_ns);
    if (backoff->delay_ns && started_ns < backoff->until_ns)
        return;
    backoff->delay_ns = next_delay(backoff);
    backoff->until_ns = now_ns + random_between(random, backoff->delay_ns / 2, backoff->delay_ns);
}

int64_t server_backoff_delay_ns(const struct server_backoff *backoff, int64_t now_ns,
                                struct random *random)
{
    if (now_ns >= backoff->until_ns)
        return 0;
    return backoff->until_ns - now_ns + random_between(random, 0, backoff->delay_ns / 2);
}

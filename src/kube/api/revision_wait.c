#include "kube/api/revision_wait.h"

#define WAIT_NS (3 * NS_PER_S)
#define POLL_NS (20 * NS_PER_MS)

static int64_t newest(const struct kube_fresh *fresh)
{
    struct engine_status status;
    engine_status_get(fresh->call->face->shard, &status);
    return status.revision;
}

static void look(struct kube_fresh *fresh)
{
    struct kube_call *call = fresh->call;
    struct loop *loop = call->face->loop;
    int64_t current = newest(fresh);
    if (current >= fresh->revision) {
        fresh->done(call, true);
    } else if (loop_now_ns(loop) < fresh->until_ns) {
        loop_timer_set(loop, &fresh->timer, loop_now_ns(loop) + POLL_NS);
    } else {
        kube_fail_future(&call->status, fresh->revision, current);
        fresh->done(call, false);
    }
}

static void on_timer(struct timer *timer)
{
    look(CONTAINER_OF(timer, struct kube_fresh, timer));
}

void kube_fresh_wait(struct kube_fresh *fresh, struct kube_call *call, int64_t revision,
                     void (*done)(struct kube_call *call, bool fresh))
{
    fresh->call = call;
    fresh->revision = revision;
    fresh->done = done;
    fresh->timer.fn = on_timer;
    fresh->until_ns = loop_now_ns(call->face->loop) + WAIT_NS;
    look(fresh);
}

void kube_fresh_cancel(struct kube_fresh *fresh)
{
    if (fresh->call)
        loop_timer_cancel(fresh->call->face->loop, &fresh->timer);
}

const char *kube_revision_parse(struct slice text, int64_t *ret_revision)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return "invalid syntax";
    for (size_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)(text.ptr[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return "value out of range";
        value = value * 10 + digit;
    }
    /* One less, so that what comes after it is a number too. */
    *ret_revision = value < INT64_MAX ? (int64_t)value : INT64_MAX - 1;
    return NULL;
}

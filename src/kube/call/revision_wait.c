#include "kube/call/revision_wait.h"

#include "kube/call/call.h"

#define WAIT_NS (3 * NS_PER_S)
#define POLL_NS (20 * NS_PER_MS)

static int64_t newest(const struct kube_revision_wait *wait)
{
    struct engine_status status;
    engine_status_get(wait->call->api->shard, &status);
    return status.revision;
}

static void look(struct kube_revision_wait *wait)
{
    struct kube_call *call = wait->call;
    struct loop *loop = call->api->loop;
    int64_t current = newest(wait);
    if (current >= wait->revision) {
        wait->done(call, true);
    } else if (loop_now_ns(loop) < wait->until_ns) {
        loop_timer_set(loop, &wait->timer, loop_now_ns(loop) + POLL_NS);
    } else {
        kube_fail_future(&call->status, wait->revision, current);
        wait->done(call, false);
    }
}

static void on_timer(struct timer *timer)
{
    look(CONTAINER_OF(timer, struct kube_revision_wait, timer));
}

void kube_revision_wait_start(struct kube_revision_wait *wait, struct kube_call *call,
                              int64_t revision, void (*done)(struct kube_call *call, bool fresh))
{
    wait->call = call;
    wait->revision = revision;
    wait->done = done;
    wait->timer.fn = on_timer;
    wait->until_ns = loop_now_ns(call->api->loop) + WAIT_NS;
    look(wait);
}

void kube_revision_wait_cancel(struct kube_revision_wait *wait)
{
    if (wait->call)
        loop_timer_cancel(wait->call->api->loop, &wait->timer);
}

#include "mirror/follow/lag_monitor.h"

#include "base/xalloc.h"
#include "client/call/client.h"
#include "mirror/link/state.h"

#include <vigil/kv.h>

#define LOOK_EVERY_NS NS_PER_S
#define QUESTION_EVERY_NS (5 * NS_PER_S)

/* -- What is known -- */

static bool may_leave(struct lag *lag, int64_t now_ns)
{
    if (lag->left_ns && now_ns - lag->left_ns < LAG_MONITOR_AGAIN_NS)
        return false;
    lag->left_ns = now_ns;
    lag->awaited = lag->has = 0;
    return true;
}

void lag_note_delivery(struct lag *lag, int64_t now_ns, int64_t revision)
{
    lag->has = revision;
    lag->has_ns = now_ns;
}

bool lag_is_too_long(struct lag *lag, int64_t now_ns, int64_t received, int64_t heard)
{
    if (lag->has > received && now_ns - lag->has_ns < LAG_MONITOR_LATE_NS)
        received = lag->has;
    /* What was heard of may turn out to be false. */
    if (!lag->awaited || received >= lag->awaited || lag->awaited > heard) {
        lag->awaited = heard > received ? heard : 0;
        lag->since_ns = now_ns;
        return false;
    }
    return now_ns - lag->since_ns >= LAG_MONITOR_LATE_NS && may_leave(lag, now_ns);
}

bool lag_unanswered(struct lag *lag, int64_t now_ns)
{
    return may_leave(lag, now_ns);
}

/* -- Looking -- */

struct lag_monitor {
    struct lag_monitor_options options;
    struct lag lag;
    vigil_call *call; /* owned; NULL: no question is under way */
    int64_t asked_ns;
    int64_t heard, written, mirrored; /* the cluster's state when the question was sent */
    struct timer look;
};

static struct loop *loop_of(const struct lag_monitor *monitor)
{
    return monitor->options.client->driver.loop;
}

static int64_t now_of(const struct lag_monitor *monitor)
{
    return loop_now_ns(loop_of(monitor));
}

static void on_answer(vigil_call *call, void *user)
{
    struct lag_monitor *monitor = user;
    int code = vigil_call_error(call)->code;
    const vigil_range_response *answer = vigil_range_result(call);
    int64_t revision = answer && answer->header ? answer->header->revision : 0;
    vigil_call_free(TAKE(monitor->call));
    if (possible_revision(revision)) {
        mirror_state_correct(&monitor->options.state->heard, monitor->heard, revision);
        mirror_state_correct(&monitor->options.state->written, monitor->written, revision);
        mirror_state_heard(monitor->options.state, revision);
        if (monitor->mirrored >
            revision) /* events with a revision that the cluster does not have */
            monitor->options.leave(monitor->options.ctx, "the mirror is newer than the cluster");
    }
    if (code == VIGIL_ERROR_TIMEOUT && lag_unanswered(&monitor->lag, now_of(monitor)))
        monitor->options.leave(monitor->options.ctx,
                               "the member is far behind the others; another one is tried");
}

static void ask(struct lag_monitor *monitor)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_bytes_of(monitor->options.key.ptr, monitor->options.key.len);
    request.count_only = 1;
    monitor->asked_ns = now_of(monitor);
    monitor->heard = atomic_load(&monitor->options.state->heard);
    monitor->written = atomic_load(&monitor->options.state->written);
    monitor->mirrored = atomic_load(&monitor->options.state->mirrored);
    monitor->call = xalloc_check(vigil_range(monitor->options.client, &request), 1);
    vigil_call_set_timeout(monitor->call, LAG_MONITOR_LATE_NS / NS_PER_MS);
    int code = vigil_call_start(monitor->call, on_answer, monitor);
    assert(code == VIGIL_OK);
    (void)code;
}

static void on_look(struct timer *timer)
{
    struct lag_monitor *monitor = CONTAINER_OF(timer, struct lag_monitor, look);
    int64_t now_ns = now_of(monitor), received = monitor->options.received(monitor->options.ctx);
    int64_t heard = atomic_load(&monitor->options.state->heard);
    loop_timer_set(loop_of(monitor), timer, now_ns + LOOK_EVERY_NS);
    if (!monitor->call && now_ns - monitor->asked_ns >= QUESTION_EVERY_NS)
        ask(monitor);
    if (lag_is_too_long(&monitor->lag, now_ns, received, heard))
        monitor->options.leave(monitor->options.ctx,
                               "the member is far behind the others; another one is tried");
}

/* -- Life -- */

struct lag_monitor *lag_monitor_new(const struct lag_monitor_options *options)
{
    struct lag_monitor *monitor = xcalloc(1, sizeof(*monitor));
    monitor->options = *options;
    monitor->look.fn = on_look;
    return monitor;
}

void lag_monitor_stop(struct lag_monitor *monitor)
{
    loop_timer_cancel(loop_of(monitor), &monitor->look);
    vigil_call_free(TAKE(monitor->call));
    monitor->lag.awaited = monitor->lag.has = 0;
}

void lag_monitor_note_delivery(struct lag_monitor *monitor, int64_t revision)
{
    lag_note_delivery(&monitor->lag, now_of(monitor), revision);
}

void lag_monitor_free(struct lag_monitor *monitor)
{
    if (!monitor)
        return;
    lag_monitor_stop(monitor);
    free(monitor);
}

void lag_monitor_start(struct lag_monitor *monitor)
{
    lag_monitor_stop(monitor);
    monitor->asked_ns = now_of(monitor);
    loop_timer_set(loop_of(monitor), &monitor->look, now_of(monitor) + LOOK_EVERY_NS);
}

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
    if (lag->left_ns && now_ns - lag->left_ns < LAGGARD_AGAIN_NS)
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
    if (lag->has > received && now_ns - lag->has_ns < LAGGARD_LATE_NS)
        received = lag->has;
    /* What was heard of may turn out to be false. */
    if (!lag->awaited || received >= lag->awaited || lag->awaited > heard) {
        lag->awaited = heard > received ? heard : 0;
        lag->since_ns = now_ns;
        return false;
    }
    return now_ns - lag->since_ns >= LAGGARD_LATE_NS && may_leave(lag, now_ns);
}

bool lag_unanswered(struct lag *lag, int64_t now_ns)
{
    return may_leave(lag, now_ns);
}

/* -- Looking -- */

struct laggard {
    struct laggard_options options;
    struct lag lag;
    vigil_call *call; /* owned; NULL: no question is under way */
    int64_t asked_ns;
    int64_t heard, written, mirrored; /* the cluster's state when the question was sent */
    struct timer look;
};

static struct loop *loop_of(const struct laggard *laggard)
{
    return laggard->options.client->driver.loop;
}

static int64_t now_of(const struct laggard *laggard)
{
    return loop_now_ns(loop_of(laggard));
}

static void on_answer(vigil_call *call, void *user)
{
    struct laggard *laggard = user;
    int code = vigil_call_error(call)->code;
    const vigil_range_response *answer = vigil_range_result(call);
    int64_t revision = answer && answer->header ? answer->header->revision : 0;
    vigil_call_free(TAKE(laggard->call));
    if (possible_revision(revision)) {
        cluster_state_correct(&laggard->options.state->heard, laggard->heard, revision);
        cluster_state_correct(&laggard->options.state->written, laggard->written, revision);
        cluster_state_heard(laggard->options.state, revision);
        if (laggard->mirrored >
            revision) /* events with a revision that the cluster does not have */
            laggard->options.leave(laggard->options.ctx, "the mirror is newer than the cluster");
    }
    if (code == VIGIL_ERROR_TIMEOUT && lag_unanswered(&laggard->lag, now_of(laggard)))
        laggard->options.leave(laggard->options.ctx,
                               "the member is far behind the others; another one is tried");
}

static void ask(struct laggard *laggard)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_bytes_of(laggard->options.key.ptr, laggard->options.key.len);
    request.count_only = 1;
    laggard->asked_ns = now_of(laggard);
    laggard->heard = atomic_load(&laggard->options.state->heard);
    laggard->written = atomic_load(&laggard->options.state->written);
    laggard->mirrored = atomic_load(&laggard->options.state->mirrored);
    laggard->call = xalloc_check(vigil_range(laggard->options.client, &request), 1);
    vigil_call_set_timeout(laggard->call, LAGGARD_LATE_NS / NS_PER_MS);
    int code = vigil_call_start(laggard->call, on_answer, laggard);
    assert(code == VIGIL_OK);
    (void)code;
}

static void on_look(struct timer *timer)
{
    struct laggard *laggard = CONTAINER_OF(timer, struct laggard, look);
    int64_t now_ns = now_of(laggard), received = laggard->options.received(laggard->options.ctx);
    int64_t heard = atomic_load(&laggard->options.state->heard);
    loop_timer_set(loop_of(laggard), timer, now_ns + LOOK_EVERY_NS);
    if (!laggard->call && now_ns - laggard->asked_ns >= QUESTION_EVERY_NS)
        ask(laggard);
    if (lag_is_too_long(&laggard->lag, now_ns, received, heard))
        laggard->options.leave(laggard->options.ctx,
                               "the member is far behind the others; another one is tried");
}

/* -- Life -- */

struct laggard *laggard_new(const struct laggard_options *options)
{
    struct laggard *laggard = xcalloc(1, sizeof(*laggard));
    laggard->options = *options;
    laggard->look.fn = on_look;
    return laggard;
}

void laggard_stop(struct laggard *laggard)
{
    loop_timer_cancel(loop_of(laggard), &laggard->look);
    vigil_call_free(TAKE(laggard->call));
    laggard->lag.awaited = laggard->lag.has = 0;
}

void laggard_note_delivery(struct laggard *laggard, int64_t revision)
{
    lag_note_delivery(&laggard->lag, now_of(laggard), revision);
}

void laggard_free(struct laggard *laggard)
{
    if (!laggard)
        return;
    laggard_stop(laggard);
    free(laggard);
}

void laggard_start(struct laggard *laggard)
{
    laggard_stop(laggard);
    laggard->asked_ns = now_of(laggard);
    loop_timer_set(loop_of(laggard), &laggard->look, now_of(laggard) + LOOK_EVERY_NS);
}

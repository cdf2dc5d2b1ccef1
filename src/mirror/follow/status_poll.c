#include "mirror/follow/status_poll.h"

#include "base/xalloc.h"
#include "client/call/client.h"
#include "engine/engine.h"
#include "mirror/directory/raft_mark.h"
#include "mirror/link/state.h"

#include <vigil/maintenance.h>

#define EVERY_NS (2 * NS_PER_S)

struct status_poll {
    struct status_poll_options options;
    vigil_call *call; /* owned; NULL: no question is under way */
    struct timer next;
};

static struct loop *loop_of(const struct status_poll *poll)
{
    return poll->options.client->driver.loop;
}

unsigned status_poll_alarms_in(struct slice error)
{
    static const struct {
        const char *text;
        unsigned type;
    } alarms[] = {{"alarm:NOSPACE", ENGINE_ALARM_NOSPACE}, {"alarm:CORRUPT", ENGINE_ALARM_CORRUPT}};
    unsigned found = 0;
    for (size_t i = 0; i < COUNT_OF(alarms); i++)
        if (memmem(error.ptr, error.len, alarms[i].text, strlen(alarms[i].text)))
            found |= 1u << alarms[i].type;
    return found;
}

static void take(struct status_poll *poll, const vigil_status_response *status)
{
    unsigned alarms = 0;
    for (size_t i = 0; i < status->error_count; i++)
        alarms |= status_poll_alarms_in(slice_of(status->errors[i].data, status->errors[i].size));
    mirror_state_answered(poll->options.state, loop_now_ns(loop_of(poll)));
    atomic_store(&poll->options.state->raft_term, status->raft_term);
    atomic_store(&poll->options.state->alarms, alarms);
    *poll->options.raft = raft_mark_of(status, loop_of(poll));
}

static void on_status(vigil_call *call, void *user)
{
    struct status_poll *poll = user;
    const vigil_status_response *status = vigil_status_result(call);
    bool is_answered = status != NULL;
    if (is_answered)
        take(poll, status);
    vigil_call_free(TAKE(poll->call));
    loop_timer_set(loop_of(poll), &poll->next, loop_now_ns(loop_of(poll)) + EVERY_NS);
    if (is_answered)
        poll->options.answered(poll->options.ctx);
}

static void on_next(struct timer *timer)
{
    struct status_poll *poll = CONTAINER_OF(timer, struct status_poll, next);
    poll->call = xalloc_check(vigil_status(poll->options.client), 1);
    int code = vigil_call_start(poll->call, on_status, poll);
    assert(code == VIGIL_OK);
    (void)code;
}

struct status_poll *status_poll_new(const struct status_poll_options *options)
{
    struct status_poll *poll = xcalloc(1, sizeof(*poll));
    poll->options = *options;
    poll->next.fn = on_next;
    return poll;
}

void status_poll_stop(struct status_poll *poll)
{
    loop_timer_cancel(loop_of(poll), &poll->next);
    vigil_call_free(TAKE(poll->call));
}

void status_poll_free(struct status_poll *poll)
{
    if (!poll)
        return;
    status_poll_stop(poll);
    free(poll);
}

void status_poll_start(struct status_poll *poll)
{
    status_poll_stop(poll);
    on_next(&poll->next);
}

#include "mirror/follow/status_poll.h"

#include "base/xalloc.h"
#include "client/call/client.h"
#include "engine/operation.h"
#include "mirror/directory/raft_mark.h"
#include "mirror/link/state.h"

#include <vigil/maintenance.h>

#define EVERY_NS (2 * NS_PER_S)

struct pulse {
    vigil_client *client;
    struct cluster_state *state;
    struct raft_mark *raft;
    vigil_call *call; /* owned; NULL: no question is under way */
    struct timer next;
};

static struct loop *loop_of(const struct pulse *pulse)
{
    return pulse->client->driver.loop;
}

unsigned pulse_alarms_in(struct slice error)
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

static void take(struct pulse *pulse, const vigil_status_response *status)
{
    unsigned alarms = 0;
    for (size_t i = 0; i < status->error_count; i++)
        alarms |= pulse_alarms_in(slice_of(status->errors[i].data, status->errors[i].size));
    cluster_state_answered(pulse->state, loop_now_ns(loop_of(pulse)));
    atomic_store(&pulse->state->raft_term, status->raft_term);
    atomic_store(&pulse->state->alarms, alarms);
    *pulse->raft = raft_mark_of(status, loop_of(pulse));
}

static void on_status(vigil_call *call, void *user)
{
    struct pulse *pulse = user;
    const vigil_status_response *status = vigil_status_result(call);
    if (status)
        take(pulse, status);
    vigil_call_free(TAKE(pulse->call));
    loop_timer_set(loop_of(pulse), &pulse->next, loop_now_ns(loop_of(pulse)) + EVERY_NS);
}

static void on_next(struct timer *timer)
{
    struct pulse *pulse = CONTAINER_OF(timer, struct pulse, next);
    pulse->call = xalloc_check(vigil_status(pulse->client), 1);
    int code = vigil_call_start(pulse->call, on_status, pulse);
    assert(code == VIGIL_OK);
    (void)code;
}

struct pulse *pulse_new(vigil_client *client, struct cluster_state *state, struct raft_mark *raft)
{
    struct pulse *pulse = xcalloc(1, sizeof(*pulse));
    pulse->client = client;
    pulse->state = state;
    pulse->raft = raft;
    pulse->next.fn = on_next;
    return pulse;
}

void pulse_stop(struct pulse *pulse)
{
    loop_timer_cancel(loop_of(pulse), &pulse->next);
    vigil_call_free(TAKE(pulse->call));
}

void pulse_free(struct pulse *pulse)
{
    if (!pulse)
        return;
    pulse_stop(pulse);
    free(pulse);
}

void pulse_start(struct pulse *pulse)
{
    pulse_stop(pulse);
    on_next(&pulse->next);
}

#include "mirror/mirror_wait.h"

#include "base/clock.h"
#include "mirror/follow/follower.h"
#include "mirror/link/state.h"

#define LOOK_NS NS_PER_MS
#define NEXT_TURN_NS 1 /* a timer that is due now could still be served in this turn */
/* Longer than a member is waited for that does not deliver (LAG_MONITOR_LATE_NS). In vain, the
 * whole stream of the client ends, with the watches that it has already. */
#define PATIENCE_NS (10 * NS_PER_S)

static void look(struct timer *timer);

void mirror_waits_init(struct mirror_waits *waits, struct loop *loop, struct mirror_state *state,
                       struct follower *follower)
{
    *waits = (struct mirror_waits){.loop = loop, .state = state, .follower = follower};
    list_init(&waits->all);
    waits->look.fn = look;
}

void mirror_waits_fini(struct mirror_waits *waits)
{
    if (!waits->loop)
        return;
    assert(list_empty(&waits->all));
    loop_timer_cancel(waits->loop, &waits->look);
}

/* In the next turn, if the mirror has all by then; otherwise when it may have. */
static void look_again(struct mirror_waits *waits)
{
    const struct mirror_wait *first = LIST_ENTRY(waits->all.next, struct mirror_wait, in_waits);
    bool has_it = first->needed <= atomic_load(&waits->state->mirrored);
    loop_timer_set(waits->loop, &waits->look,
                   loop_now_ns(waits->loop) + (has_it ? NEXT_TURN_NS : LOOK_NS));
}

void mirror_wait_start(struct mirror_waits *waits, struct mirror_wait *wait)
{
    wait->needed = atomic_load(&waits->state->written);
    if (LIKELY(wait->needed <= waits->shown)) {
        wait->done(wait, true);
        return;
    }
    wait->until_ns =
        loop_now_ns(waits->loop) + (wait->patience_ns ? wait->patience_ns : PATIENCE_NS);
    list_push_back(&waits->all, &wait->in_waits);
    if (!waits->look.set)
        look_again(waits);
    if (wait->needed > atomic_load(&waits->state->mirrored))
        follower_request_progress(waits->follower); /* it may be outside the prefixes */
}

/* They are taken out first, because done may start others. */
static void take_out(struct mirror_waits *waits, struct list *over)
{
    int64_t now_ns = loop_now_ns(waits->loop);
    struct mirror_wait *wait, *following;
    list_init(over);
    LIST_FOREACH_SAFE (wait, following, &waits->all, in_waits) {
        if (wait->needed > waits->shown && wait->until_ns > now_ns)
            continue;
        list_remove(&wait->in_waits);
        list_push_back(over, &wait->in_waits);
    }
    if (!list_empty(&waits->all))
        look_again(waits);
}

static void look(struct timer *timer)
{
    struct mirror_waits *waits = CONTAINER_OF(timer, struct mirror_waits, look);
    struct list over, *link;
    waits->shown = waits->looked_at;
    waits->looked_at = atomic_load(&waits->state->mirrored);
    take_out(waits, &over);
    while ((link = list_pop_front(&over))) {
        struct mirror_wait *wait = LIST_ENTRY(link, struct mirror_wait, in_waits);
        wait->done(wait, wait->needed <= waits->shown);
    }
}

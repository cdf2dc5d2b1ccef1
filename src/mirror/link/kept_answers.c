#include "mirror/link/kept_answers.h"

#include "base/clock.h"

/* Between two that must make room: what waits takes it at the end of the turn. */
#define PAUSE_NS (100 * NS_PER_MS)

static void on_due(struct timer *timer);

void upstream_holds_init(struct upstream_holds *holds, struct loop *loop,
                         struct upstream_room *room, void (*released)(struct upstream_holds *holds))
{
    *holds = (struct upstream_holds){.loop = loop, .room = room, .released = released};
    list_init(&holds->all);
    holds->due.fn = on_due;
}

void upstream_holds_fini(struct upstream_holds *holds)
{
    if (!holds->loop)
        return;
    assert(list_empty(&holds->all));
    loop_timer_cancel(holds->loop, &holds->due);
}

/* The oldest; NULL: there is none, or no answer waits for its room. */
static struct upstream_hold *awaited(const struct upstream_holds *holds)
{
    if (list_empty(&holds->all) || !upstream_room_is_awaited(holds->room))
        return NULL;
    return LIST_ENTRY(holds->all.next, struct upstream_hold, in_holds);
}

static void watch_from(struct upstream_holds *holds, int64_t earliest_ns)
{
    const struct upstream_hold *oldest = awaited(holds);
    if (!oldest || holds->due.set)
        return;
    int64_t due_ns = oldest->since_ns + UPSTREAM_HOLD_NS;
    loop_timer_set(holds->loop, &holds->due, due_ns > earliest_ns ? due_ns : earliest_ns);
}

void upstream_holds_watch(struct upstream_holds *holds)
{
    watch_from(holds, 0);
}

/* One at a time: its room may be enough for those that wait. */
static void on_due(struct timer *timer)
{
    struct upstream_holds *holds = CONTAINER_OF(timer, struct upstream_holds, due);
    int64_t now_ns = loop_now_ns(holds->loop);
    struct upstream_hold *oldest = awaited(holds);
    if (oldest && now_ns - oldest->since_ns >= UPSTREAM_HOLD_NS) {
        oldest->since_ns = now_ns;
        list_remove(&oldest->in_holds);
        list_push_back(&holds->all, &oldest->in_holds);
        oldest->overdue(oldest);
    }
    watch_from(holds, now_ns + PAUSE_NS);
}

void upstream_hold_take(struct upstream_holds *holds, struct upstream_hold *hold,
                        struct upstream_claim *claim)
{
    if (claim->kind != UPSTREAM_ROOM_HELD || hold->holds)
        return;
    assert(hold->overdue);
    hold->holds = holds;
    hold->since_ns = loop_now_ns(holds->loop);
    upstream_claim_move(&hold->claim, claim);
    list_init(&hold->in_holds);
    list_push_back(&holds->all, &hold->in_holds);
    upstream_holds_watch(holds);
}

void upstream_hold_release(struct upstream_hold *hold)
{
    struct upstream_holds *holds = hold->holds;
    if (!holds)
        return;
    hold->holds = NULL;
    list_remove(&hold->in_holds);
    upstream_room_release(holds->room, &hold->claim);
    holds->released(holds);
}

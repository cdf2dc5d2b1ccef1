#include "kube/call/anonymous.h"

#include "base/clock.h"
#include "io/loop.h"

#define PERIOD_NS (500 * NS_PER_MS)
#define EARLY_PERIOD_NS (20 * NS_PER_MS) /* before the mirror is complete: no call is made */

enum { ARENA_BYTES_MAX = 64 << 10 };

#define TO(state) (1u << KUBE_ANONYMOUS_##state)

static const unsigned moves[] = {
    [KUBE_ANONYMOUS_UNKNOWN] = TO(ADMITTED) | TO(REFUSED),
    [KUBE_ANONYMOUS_ADMITTED] = TO(REFUSED),
    [KUBE_ANONYMOUS_REFUSED] = TO(ADMITTED),
};

static void move(struct kube_anonymous *a, enum kube_anonymous_state next)
{
    enum kube_anonymous_state before = a->state;
    if (before == next)
        return;
    assert(moves[before] & 1u << next);
    a->state = next;
    if (a->first)
        atomic_store_explicit(a->first, (int)next, memory_order_relaxed);
    if (before == KUBE_ANONYMOUS_ADMITTED && a->on_refused)
        a->on_refused(a->ctx);
}

/* Any other error says nothing about the caller. */
static bool is_refusal(enum status status)
{
    enum grpc_code code = status_code(status);
    return status == ST_USER_EMPTY || status == ST_AUTH_OLD_REVISION ||
           code == GRPC_PERMISSION_DENIED || code == GRPC_UNAUTHENTICATED;
}

static void on_answer(struct engine_op *op)
{
    struct kube_anonymous *a = CONTAINER_OF(op, struct kube_anonymous, admission.op);
    enum status status = op->status;
    --*a->under_way;
    arena_fini(&a->arena);
    if (a->stopped)
        return;
    if (status == ST_OK)
        move(a, KUBE_ANONYMOUS_ADMITTED);
    else if (is_refusal(status))
        move(a, KUBE_ANONYMOUS_REFUSED);
    int64_t period_ns = status == ST_NOT_SYNCED ? EARLY_PERIOD_NS : PERIOD_NS;
    loop_timer_set(a->loop, &a->timer, clock_add(loop_now_ns(a->loop), period_ns));
}

static void ask(struct timer *timer)
{
    struct kube_anonymous *a = CONTAINER_OF(timer, struct kube_anonymous, timer);
    arena_init(&a->arena, NULL, 0, ARENA_BYTES_MAX);
    a->admission = (struct engine_admission){
        .op = {.done = on_answer, .arena = &a->arena},
        .key = SLICE_LITERAL("/registry/"),
        .range_end = SLICE_LITERAL("/registry0"),
    };
    ++*a->under_way;
    engine_watch_admit(a->shard, &a->admission);
}

void kube_anonymous_start(struct kube_anonymous *a, struct engine_shard *shard, struct loop *loop,
                          size_t *under_way)
{
    a->shard = shard;
    a->loop = loop;
    a->under_way = under_way;
    a->timer.fn = ask;
    loop_timer_set(loop, &a->timer, loop_now_ns(loop));
}

enum kube_anonymous_state kube_anonymous_get(const struct kube_anonymous *a)
{
    if (a->state != KUBE_ANONYMOUS_UNKNOWN || !a->first)
        return a->state;
    return (enum kube_anonymous_state)atomic_load_explicit(a->first, memory_order_relaxed);
}

void kube_anonymous_stop(struct kube_anonymous *a)
{
    a->stopped = true;
    if (a->loop)
        loop_timer_cancel(a->loop, &a->timer);
}

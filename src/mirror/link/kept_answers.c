#include "mirror/link/kept_answers.h"

#include "base/clock.h"

/* Between two that must make room: what waits takes it at the end of the turn. */
#define PAUSE_NS (100 * NS_PER_MS)

static void on_due(struct timer *timer);

void kept_answers_init(struct kept_answers *answers, struct loop *loop,
                       struct receive_budget *budget,
                       void (*released)(struct kept_answers *answers))
{
    *answers = (struct kept_answers){.loop = loop, .budget = budget, .released = released};
    list_init(&answers->all);
    answers->due.fn = on_due;
}

void kept_answers_fini(struct kept_answers *answers)
{
    if (!answers->loop)
        return;
    assert(list_empty(&answers->all));
    loop_timer_cancel(answers->loop, &answers->due);
}

/* The oldest; NULL: there is none, or no answer waits for its room. */
static struct kept_answer *awaited(const struct kept_answers *answers)
{
    if (list_empty(&answers->all) || !receive_budget_is_awaited(answers->budget))
        return NULL;
    return LIST_ENTRY(answers->all.next, struct kept_answer, in_answers);
}

static void watch_from(struct kept_answers *answers, int64_t earliest_ns)
{
    const struct kept_answer *oldest = awaited(answers);
    if (!oldest || answers->due.set)
        return;
    int64_t due_ns = oldest->since_ns + KEPT_ANSWER_NS;
    loop_timer_set(answers->loop, &answers->due, due_ns > earliest_ns ? due_ns : earliest_ns);
}

void kept_answers_watch(struct kept_answers *answers)
{
    watch_from(answers, 0);
}

/* One at a time: its room may be enough for those that wait. */
static void on_due(struct timer *timer)
{
    struct kept_answers *answers = CONTAINER_OF(timer, struct kept_answers, due);
    int64_t now_ns = loop_now_ns(answers->loop);
    struct kept_answer *oldest = awaited(answers);
    if (oldest && now_ns - oldest->since_ns >= KEPT_ANSWER_NS) {
        oldest->since_ns = now_ns;
        list_remove(&oldest->in_answers);
        list_push_back(&answers->all, &oldest->in_answers);
        oldest->overdue(oldest);
    }
    watch_from(answers, now_ns + PAUSE_NS);
}

void kept_answer_take(struct kept_answers *answers, struct kept_answer *answer,
                      struct receive_share *share)
{
    if (share->kind != RECEIVE_HELD || answer->answers)
        return;
    assert(answer->overdue);
    answer->answers = answers;
    answer->since_ns = loop_now_ns(answers->loop);
    receive_share_move(&answer->share, share);
    list_init(&answer->in_answers);
    list_push_back(&answers->all, &answer->in_answers);
    kept_answers_watch(answers);
}

void kept_answer_release(struct kept_answer *answer)
{
    struct kept_answers *answers = answer->answers;
    if (!answers)
        return;
    answer->answers = NULL;
    list_remove(&answer->in_answers);
    receive_budget_release(answers->budget, &answer->share);
    answers->released(answers);
}

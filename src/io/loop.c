#include "io/loop.h"

#include <stdlib.h>

enum {
    READY_MAX = 256,
    MESSAGES_PER_TURN = 1024, /* messages taken from one mailbox */
    TIMERS_PER_TURN = 1024,   /* a timer that sets itself again for now does not block the loop */
    LOOKS_AT_CLOCK_EVERY = 8, /* after this many handles */
};
#define TURN_NS_MAX (1 * NS_PER_MS)

struct loop {
    struct poller *poller; /* owned */
    struct waker *waker;   /* waker of the poller; NULL in a simulation */
    struct clock *clock;
    int64_t now_ns;
    int64_t ended_ns; /* when the last turn ended; 0: unknown */
    struct timers timers;
    struct list mailboxes;     /* mailbox.in_loop */
    struct list deferred;      /* deferred.in_loop */
    struct list deferred_mark; /* while deferred calls run: in the list, after those of this turn */
    struct loop_hooks hooks;
    struct turn *turn; /* borrowed; NULL: not measured */
    bool has_more;     /* end_of_turn has more to do */
    bool woken;        /* by the waker, and the mailboxes were not checked since */
    bool mail_left;    /* a mailbox had more messages than a turn delivers */
    bool running;      /* in loop_run: only then ended_ns is used */
    bool announced;    /* between nested turns, so that a post makes the descriptor readable */
    atomic_bool stopping;

    /* A sweep serves all handles that were ready when it began, with one wait or several. */
    int64_t sweep_ns;    /* when it began, before its first wait */
    size_t sweep_served; /* handles so far; 0: the next wait begins a sweep */
    size_t watched;      /* number of handles */
    int64_t served_ns;   /* when the last complete sweep began */

    size_t ready_next, ready_count; /* the part of ready that was not served yet */
    struct io_ready ready[READY_MAX];
};

enum status loop_new_over(struct poller *poller, struct clock *clock, struct loop **ret_loop)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop) {
        poller->ops->free(poller);
        return ST_NOMEM;
    }
    loop->poller = poller;
    loop->waker = poller->ops->waker(poller);
    loop->clock = clock;
    loop->now_ns = loop->served_ns = clock_mono_ns(clock);
    list_init(&loop->mailboxes);
    list_init(&loop->deferred);
    *ret_loop = loop;
    return ST_OK;
}

enum status loop_new(struct clock *clock, struct loop **ret_loop)
{
    struct poller *poller;
    TRY(poller_epoll_new(&poller));
    return loop_new_over(poller, clock, ret_loop);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    assert(!loop->timers.root);
    assert(list_empty(&loop->deferred));
    assert(list_empty(&loop->mailboxes));
    loop->poller->ops->free(loop->poller);
    free(loop);
}

void loop_rest(struct loop *loop)
{
    if (loop->waker)
        (void)waker_retract(loop->waker);
    loop->announced = false;
}

void loop_close(struct loop *loop)
{
    if (loop->poller->ops->close)
        loop->poller->ops->close(loop->poller);
}

void loop_set_hooks(struct loop *loop, struct loop_hooks hooks)
{
    loop->hooks = hooks;
}

void loop_set_turn(struct loop *loop, struct turn *turn)
{
    loop->turn = turn;
}

int64_t loop_now_ns(const struct loop *loop)
{
    return loop->now_ns;
}

int64_t loop_served_ns(const struct loop *loop)
{
    return loop->served_ns;
}

struct clock *loop_clock(struct loop *loop)
{
    return loop->clock;
}

void loop_attach(struct loop *loop, struct mailbox *mailbox,
                 void (*receive)(void *owner, struct mailbox_node *node), void *owner)
{
    mailbox_attach(mailbox, loop->waker, &loop->mailboxes, receive, owner);
}

enum status loop_watch(struct loop *loop, struct io_watch *watch, unsigned events)
{
    assert(watch->fn);
    assert(events && !(events & ~(unsigned)(IO_READ | IO_WRITE)));
    if (watch->events == events)
        return ST_OK;
    TRY(loop->poller->ops->set(loop->poller, watch, events));
    loop->watched += !watch->events;
    watch->events = events;
    return ST_OK;
}

void loop_unwatch(struct loop *loop, struct io_watch *watch)
{
    if (watch->ready_at) {
        assert(loop->ready[watch->ready_at - 1].watch == watch);
        loop->ready[watch->ready_at - 1].watch = NULL;
        watch->ready_at = 0;
    }
    if (!watch->events)
        return;
    enum status status = loop->poller->ops->set(loop->poller, watch, 0);
    assert(status == ST_OK); /* unwatching a watched handle cannot fail */
    loop->watched--;
    watch->events = 0;
}

void loop_timer_set(struct loop *loop, struct timer *timer, int64_t at_ns)
{
    timers_set(&loop->timers, timer, at_ns);
}

void loop_timer_cancel(struct loop *loop, struct timer *timer)
{
    timers_cancel(&loop->timers, timer);
}

void loop_defer(struct loop *loop, struct deferred *deferred)
{
    assert(deferred->fn);
    if (!deferred->in_loop.next)
        list_init(&deferred->in_loop);
    if (list_empty(&deferred->in_loop))
        list_push_back(&loop->deferred, &deferred->in_loop);
}

void loop_defer_cancel(struct deferred *deferred)
{
    if (deferred->in_loop.next)
        list_remove(&deferred->in_loop);
}

/* -- waiting -- */

static bool has_mail(const struct loop *loop)
{
    const struct mailbox *mailbox;
    LIST_FOREACH (mailbox, &loop->mailboxes, in_loop)
        if (!mailbox_empty(mailbox))
            return true;
    return loop->running && atomic_load_explicit(&loop->stopping, memory_order_seq_cst);
}

/* Work that needs neither a wait nor another thread. */
static bool has_work(const struct loop *loop)
{
    return loop->ready_next < loop->ready_count || !list_empty(&loop->deferred) || loop->has_more ||
           loop->mail_left;
}

int64_t loop_next_ns(const struct loop *loop)
{
    if (has_work(loop) || loop->woken || has_mail(loop))
        return loop->now_ns;
    return timers_next_ns(&loop->timers);
}

static int64_t wait_time(struct loop *loop, int64_t wait_max_ns)
{
    int64_t next = timers_next_ns(&loop->timers);
    if (next == CLOCK_NEVER)
        return wait_max_ns;
    /* In loop_run nothing happens between two turns, so the time at the end of the last one is
     * current. */
    bool known = loop->running && loop->ended_ns;
    int64_t until = next - (known ? loop->ended_ns : clock_mono_ns(loop->clock));
    if (until < 0)
        until = 0;
    return until < wait_max_ns ? until : wait_max_ns;
}

static void poll_ready(struct loop *loop, int64_t wait_ns)
{
    if (loop->sweep_served == 0)
        loop->sweep_ns = loop->now_ns; /* the time of the turn before, so it is not later than the
                                          begin of the wait */
    loop->ready_next = 0;
    loop->ready_count =
        loop->poller->ops->wait(loop->poller, wait_ns, loop->ready, COUNT_OF(loop->ready));
    for (size_t i = 0; i < loop->ready_count; i++)
        loop->ready[i].watch->ready_at = (unsigned)i + 1;
}

static void wait_for_work(struct loop *loop, int64_t wait_max_ns)
{
    if (loop->ready_next < loop->ready_count)
        return;
    if (has_work(loop) || (!loop->waker && has_mail(loop)))
        wait_max_ns = 0;
    int64_t wait_ns = wait_max_ns > 0 ? wait_time(loop, wait_max_ns) : 0;
    if (wait_ns <= 0 || !loop->waker) {
        poll_ready(loop, wait_ns);
        return;
    }
    bool sleeps = waker_announce(loop->waker);
    poll_ready(loop, sleeps ? wait_ns : 0);
    loop->woken = !sleeps || waker_retract(loop->waker);
}

/* -- a turn -- */

static void serve_ready(struct loop *loop)
{
    unsigned served = 0;
    if (loop->ready_next < loop->ready_count)
        turn_phase("serving sockets");
    while (loop->ready_next < loop->ready_count) {
        struct io_ready *ready = &loop->ready[loop->ready_next++];
        struct io_watch *watch = ready->watch;
        if (!watch)
            continue;
        watch->ready_at = 0;
        watch->fn(watch, ready->events);
        if (++served % LOOKS_AT_CLOCK_EVERY == 0 &&
            clock_mono_ns(loop->clock) - loop->now_ns > TURN_NS_MAX)
            return;
    }
}

/*
 * Everything that a wait returned was served. If the wait had room for more, nothing else was
 * ready. Otherwise the kernel returns those handles first that it has not returned yet, so that all
 * were served once as many were served as are watched.
 */
static void note_served(struct loop *loop)
{
    if (loop->ready_next < loop->ready_count)
        return;
    loop->sweep_served += loop->ready_count;
    if (loop->ready_count + 1 >= COUNT_OF(loop->ready) && loop->sweep_served < loop->watched)
        return; /* one entry may have been the waker */
    loop->served_ns = loop->sweep_ns;
    loop->sweep_served = 0;
}

/* Every post wakes the loop, so the loop need not check its mailboxes unless it was woken. */
static bool may_have_mail(struct loop *loop)
{
    bool woken = !loop->waker || waker_take(loop->waker) || loop->woken;
    loop->woken = false;
    return woken || loop->mail_left;
}

static void serve_mailboxes(struct loop *loop)
{
    struct mailbox *mailbox, *following;
    if (!may_have_mail(loop))
        return;
    loop->mail_left = false;
    LIST_FOREACH_SAFE (mailbox, following, &loop->mailboxes, in_loop) {
        if (mailbox_empty(mailbox))
            continue;
        turn_phase("receiving messages");
        loop->mail_left |= mailbox_deliver(mailbox, MESSAGES_PER_TURN);
    }
}

static void serve_timers(struct loop *loop)
{
    struct timer *timer;
    if (timers_next_ns(&loop->timers) > loop->now_ns)
        return;
    turn_phase("serving timers");
    for (int i = 0; i < TIMERS_PER_TURN; i++) {
        if (!(timer = timers_pop_due(&loop->timers, loop->now_ns)))
            return;
        timer->fn(timer);
    }
}

static void serve_deferred(struct loop *loop)
{
    if (list_empty(&loop->deferred))
        return;
    turn_phase("running deferred calls");
    /* Only those that are in the list now; what they defer is added after the mark. */
    list_push_back(&loop->deferred, &loop->deferred_mark);
    for (struct list *link; (link = list_pop_front(&loop->deferred)) != &loop->deferred_mark;) {
        struct deferred *deferred = LIST_ENTRY(link, struct deferred, in_loop);
        deferred->fn(deferred);
    }
}

void loop_turn(struct loop *loop, int64_t wait_max_ns)
{
    wait_for_work(loop, wait_max_ns);
    loop->now_ns = clock_mono_ns(loop->clock);
    turn_begin(loop->turn, loop->now_ns);
    serve_ready(loop);
    note_served(loop);
    serve_mailboxes(loop);
    serve_timers(loop);
    if (loop->hooks.after_input)
        loop->hooks.after_input(loop->hooks.ctx);
    serve_deferred(loop);
    loop->has_more = loop->hooks.end_of_turn && loop->hooks.end_of_turn(loop->hooks.ctx);
    if (!loop->turn)
        return;
    loop->ended_ns = clock_mono_ns(loop->clock);
    turn_end(loop->turn, loop->ended_ns);
}

int loop_fd(const struct loop *loop)
{
    return loop->poller->ops->fd(loop->poller);
}

void loop_turn_nested(struct loop *loop)
{
    if (loop->announced)
        loop->woken |= waker_retract(loop->waker);
    loop_turn(loop, 0);
    if (!loop->waker)
        return;
    /* If a wake-up is pending, loop_next_ns must not be later than now: has_mail sees what was
     * posted, and posts are not announced until the next turn. */
    loop->announced = waker_announce(loop->waker);
    loop->woken |= !loop->announced;
}

void loop_run(struct loop *loop)
{
    loop->running = true;
    while (!atomic_load_explicit(&loop->stopping, memory_order_seq_cst))
        loop_turn(loop, CLOCK_NEVER);
    loop->running = false;
}

void loop_stop(struct loop *loop)
{
    atomic_store_explicit(&loop->stopping, true, memory_order_seq_cst);
    if (loop->waker)
        waker_wake(loop->waker);
}

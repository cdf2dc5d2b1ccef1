#include "actors.h"

#include "base/container/list.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "base/yield_point.h"
#include "fiber.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

struct actor {
    const char *name;
    struct fiber *fiber;
    void (*fn)(void *arg);
    void *arg;
    struct list in_all;
    const void *waits_on; /* NULL: it can run, or waits only for a time */
    int64_t until_ns;     /* it can run from this time on; 0: now */
    int64_t paused_until_ns;
    bool woken, ended, detached;
    /* What a thread has of its own. */
    struct turn *turn;
    struct yield_point *yield_point;
};

static struct {
    bool active;
    struct sim *sim;
    struct random random;
    struct list all; /* actor.in_all */
    struct actor *running;
    int locks; /* held by the one that runs */
    uint64_t steps;
} actors;

/* An actor yields in the middle of its work this often. */
enum { YIELD_ONE_IN = 3, STEPS_MAX = 3000000 };

void actors_begin(struct sim *sim, uint64_t seed)
{
    assert(!actors.active);
    actors.active = true;
    actors.sim = sim;
    actors.locks = 0;
    actors.steps = 0;
    random_init(&actors.random, seed);
    list_init(&actors.all);
}

void actors_end(void)
{
    assert(list_empty(&actors.all));
    actors.active = false;
}

bool actors_active(void)
{
    return actors.active;
}

int64_t actors_now(void)
{
    return clock_mono_ns(sim_clock(actors.sim));
}

struct random *actors_random(void)
{
    return &actors.random;
}

uint64_t actors_steps(void)
{
    return actors.steps;
}

struct actor *actor_running(void)
{
    return actors.running;
}

const char *actor_name(const struct actor *actor)
{
    return actor ? actor->name : "loop";
}

void actor_rename(struct actor *actor, const char *name)
{
    actor->name = name;
}

static void run(void *arg)
{
    struct actor *actor = arg;
    actor->fn(actor->arg);
    actor->ended = true;
}

struct actor *actor_start(const char *name, void (*fn)(void *arg), void *arg)
{
    struct actor *actor = xcalloc(1, sizeof(*actor));
    *actor = (struct actor){.name = name, .fn = fn, .arg = arg};
    actor->fiber = fiber_new(run, actor);
    list_push_back(&actors.all, &actor->in_all);
    return actor;
}

static void actor_free(struct actor *actor)
{
    list_remove(&actor->in_all);
    fiber_free(actor->fiber);
    free(actor);
}

/* When it can run: now, later or never. */
static int64_t ready_ns(const struct actor *actor)
{
    int64_t at = actor->woken ? 0 : actor->until_ns;
    if (actor->ended)
        return CLOCK_NEVER;
    return at > actor->paused_until_ns ? at : actor->paused_until_ns;
}

static struct actor *choose(int64_t now, uint64_t *ret_ready, int64_t *ret_next_ns)
{
    struct actor *actor, *chosen = NULL;
    LIST_FOREACH (actor, &actors.all, in_all) {
        int64_t at = ready_ns(actor);
        if (at > now)
            *ret_next_ns = at < *ret_next_ns ? at : *ret_next_ns;
        else if (random_below(&actors.random, ++*ret_ready) == 0)
            chosen = actor;
    }
    return chosen;
}

static void step_actor(struct actor *actor)
{
    assert(actors.locks == 0);
    trace_step(actor->name);
    turn_here = actor->turn;
    yield_point_here = actor->yield_point;
    actors.running = actor;
    fiber_continue(actor->fiber);
    actors.running = NULL;
    actor->turn = turn_here;
    actor->yield_point = yield_point_here;
    turn_here = NULL;
    yield_point_here = NULL;
    if (actor->ended) {
        actors_wake(actor);
        if (actor->detached)
            actor_free(actor);
    }
}

/* False: nothing will ever happen again. */
static bool step(void)
{
    uint64_t ready = 0;
    int64_t now = actors_now(), next = CLOCK_NEVER;
    struct actor *actor = choose(now, &ready, &next);
    int64_t network = sim_next_ns(actors.sim);
    bool loops = network <= now;
    actors.steps++;
    assert(actors.steps < STEPS_MAX); /* or something does not end */
    if (actor && (!loops || random_below(&actors.random, ready + 2) < ready)) {
        step_actor(actor);
        return true;
    }
    if (loops) {
        trace_step("loop");
        (void)sim_step(actors.sim);
        return true;
    }
    next = network < next ? network : next;
    if (next == CLOCK_NEVER)
        return false;
    sim_run_until(actors.sim, next);
    return true;
}

bool actors_run(struct actor *until)
{
    while (!until->ended)
        if (!step())
            return false;
    actor_free(until);
    return true;
}

/* -- Inside an actor -- */

void actor_yield(void)
{
    assert(actors.running && actors.locks == 0);
    fiber_yield();
}

void actor_may_yield(void)
{
    if (actors.running && actors.locks == 0 && random_below(&actors.random, YIELD_ONE_IN) == 0)
        actor_yield();
}

void actors_lock_taken(int by)
{
    actors.locks += by;
}

bool actor_wait(const void *on, int64_t until_ns)
{
    struct actor *self = actors.running;
    assert(self && actors.locks == 0);
    self->waits_on = on;
    self->until_ns = until_ns;
    self->woken = false;
    fiber_yield();
    self->waits_on = NULL;
    self->until_ns = 0;
    return self->woken;
}

void actor_sleep(int64_t ns)
{
    (void)actor_wait(NULL, clock_add(actors_now(), ns));
}

void actors_wake(const void *on)
{
    struct actor *actor;
    LIST_FOREACH (actor, &actors.all, in_all)
        if (actor->waits_on == on && on)
            actor->woken = true;
}

void actor_join(struct actor *actor)
{
    while (!actor->ended)
        (void)actor_wait(actor, CLOCK_NEVER);
    actor_free(actor);
}

void actor_detach(struct actor *actor)
{
    if (actor->ended)
        actor_free(actor);
    else
        actor->detached = true;
}

/* One of those whose names begin so; NULL: there is none. */
static struct actor *choose_named(const char *prefix)
{
    struct actor *actor, *chosen = NULL;
    uint64_t count = 0;
    LIST_FOREACH (actor, &actors.all, in_all)
        if (actor != actors.running && strncmp(actor->name, prefix, strlen(prefix)) == 0 &&
            random_below(&actors.random, ++count) == 0)
            chosen = actor;
    return chosen;
}

/* Mostly a thread of the server. */
void actors_pause_one(int64_t until_ns)
{
    bool of_server = random_below(&actors.random, 4) != 0;
    struct actor *chosen = choose_named(of_server ? "vigil-" : "");
    if (chosen)
        chosen->paused_until_ns = until_ns;
}

#include "wraps.h"

#include "actors.h"
#include "base/clock.h"
#include "base/lock.h"
#include "io/loop.h"
#include "io/waker.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STOPPED_MAX = 64 };

static struct {
    struct sim *sim;
    struct random random;
    struct loop *stopped[STOPPED_MAX]; /* whose loop_run has not returned yet; NULL: a free place */
} wraps;

void wraps_begin(struct sim *sim, uint64_t seed)
{
    wraps.sim = sim;
    random_init(&wraps.random, seed);
}

void wraps_end(void)
{
    wraps.sim = NULL;
}

/* -- Time, randomness, the network -- */

struct clock *__real_clock_system(void);
struct clock *__wrap_clock_system(void);
struct clock *__wrap_clock_system(void)
{
    return wraps.sim ? sim_clock(wraps.sim) : __real_clock_system();
}

uint64_t __wrap_random_seed_system(void);
uint64_t __wrap_random_seed_system(void)
{
    return random_u64(&wraps.random);
}

void __wrap_random_secret(void *to, size_t len);
void __wrap_random_secret(void *to, size_t len)
{
    random_fill(&wraps.random, to, len);
}

struct network *__wrap_network_posix(void);
struct network *__wrap_network_posix(void)
{
    return sim_network(wraps.sim);
}

/* -- Threads -- */

struct thread_start {
    void *(*run)(void *arg);
    void *arg;
};

static void thread_main(void *arg)
{
    struct thread_start start = *(struct thread_start *)arg;
    free(arg);
    (void)start.run(start.arg);
}

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *arg), void *arg)
{
    struct thread_start *start = malloc(sizeof(*start));
    int detached = PTHREAD_CREATE_JOINABLE;
    if (!start)
        abort();
    *start = (struct thread_start){.run = run, .arg = arg};
    struct actor *actor = actor_start("thread", thread_main, start);
    if (attributes)
        pthread_attr_getdetachstate(attributes, &detached);
    if (detached == PTHREAD_CREATE_DETACHED)
        actor_detach(actor);
    *ret_thread = (pthread_t)(uintptr_t)actor;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret_result);
int __wrap_pthread_join(pthread_t thread, void **ret_result)
{
    (void)ret_result;
    actor_join((struct actor *)(uintptr_t)thread);
    return 0;
}

int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_detach(pthread_t thread)
{
    actor_detach((struct actor *)(uintptr_t)thread);
    return 0;
}

pthread_t __real_pthread_self(void);
pthread_t __wrap_pthread_self(void);
pthread_t __wrap_pthread_self(void)
{
    struct actor *running = actor_running();
    return running ? (pthread_t)(uintptr_t)running : __real_pthread_self();
}

/* The names that a thread gives to another one are literals. */
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    if (actor_running() && !pthread_equal(thread, __wrap_pthread_self()))
        actor_rename((struct actor *)(uintptr_t)thread, name);
    return 0;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    if (actor_running())
        actor_yield();
    return 0;
}

/* -- Waiting -- */

void __wrap_waker_wake(struct waker *waker);
void __wrap_waker_wake(struct waker *waker)
{
    if (atomic_exchange(&waker->state, WAKER_NOTIFIED) == WAKER_ANNOUNCED)
        actors_wake(waker);
}

void __wrap_waker_sleep(struct waker *waker, int64_t timeout_ns);
void __wrap_waker_sleep(struct waker *waker, int64_t timeout_ns)
{
    if (timeout_ns > 0)
        (void)actor_wait(waker, clock_add(actors_now(), timeout_ns));
}

bool __wrap_waker_look(struct waker *waker, bool (*ready)(void *ctx), void *ctx);
bool __wrap_waker_look(struct waker *waker, bool (*ready)(void *ctx), void *ctx)
{
    (void)waker;
    return ready(ctx);
}

void __real_lock_take(struct lock *lock);
void __wrap_lock_take(struct lock *lock);
void __wrap_lock_take(struct lock *lock)
{
    __real_lock_take(lock);
    actors_lock_taken(1);
}

void __real_lock_release(struct lock *lock);
void __wrap_lock_release(struct lock *lock);
void __wrap_lock_release(struct lock *lock)
{
    __real_lock_release(lock);
    actors_lock_taken(-1);
}

void __wrap_lock_wait_until(struct lock *lock, pthread_cond_t *condition, int64_t mono_ns);
void __wrap_lock_wait_until(struct lock *lock, pthread_cond_t *condition, int64_t mono_ns)
{
    __wrap_lock_release(lock);
    (void)actor_wait(condition, mono_ns);
    __wrap_lock_take(lock);
}

void __wrap_lock_wait(struct lock *lock, pthread_cond_t *condition);
void __wrap_lock_wait(struct lock *lock, pthread_cond_t *condition)
{
    __wrap_lock_wait_until(lock, condition, CLOCK_NEVER);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    actors_wake(condition);
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    actors_wake(condition);
    return 0;
}

int __wrap_sem_wait(sem_t *semaphore);
int __wrap_sem_wait(sem_t *semaphore)
{
    while (sem_trywait(semaphore) != 0)
        (void)actor_wait(semaphore, CLOCK_NEVER);
    return 0;
}

int __real_sem_post(sem_t *semaphore);
int __wrap_sem_post(sem_t *semaphore);
int __wrap_sem_post(sem_t *semaphore)
{
    int result = __real_sem_post(semaphore);
    actors_wake(semaphore);
    return result;
}

/* -- Loops: the network steps them -- */

void __real_loop_run(struct loop *loop);
void __wrap_loop_run(struct loop *loop);
void __wrap_loop_run(struct loop *loop)
{
    size_t at = 0;
    for (;;) {
        for (at = 0; at < STOPPED_MAX && wraps.stopped[at] != loop;)
            at++;
        if (at < STOPPED_MAX)
            break;
        (void)actor_wait(loop, CLOCK_NEVER);
    }
    wraps.stopped[at] = NULL;
    __real_loop_run(loop);
}

void __real_loop_stop(struct loop *loop);
void __wrap_loop_stop(struct loop *loop);
void __wrap_loop_stop(struct loop *loop)
{
    size_t at = 0;
    while (at < STOPPED_MAX && wraps.stopped[at])
        at++;
    assert(at < STOPPED_MAX);
    wraps.stopped[at] = loop;
    __real_loop_stop(loop);
    actors_wake(loop);
}

/* Short, and longer for an actor that has waited in the same loop for a while. */
static int64_t pause_between_turns(const struct loop *loop)
{
    enum { SHORT_ONES = 64, US_MAX = 1000 };
    static struct {
        const struct loop *loop;
        int64_t last_ns, us;
        unsigned turns;
    } waiting;
    int64_t now = actors_now();
    if (waiting.loop != loop || now > waiting.last_ns + 2 * US_MAX * NS_PER_US)
        waiting.turns = 0;
    waiting.loop = loop;
    waiting.last_ns = now;
    if (waiting.turns++ < SHORT_ONES)
        waiting.us = 10;
    else if (waiting.us < US_MAX)
        waiting.us += waiting.us / 2;
    return waiting.us * NS_PER_US;
}

void __real_loop_turn(struct loop *loop, int64_t wait_max_ns);
void __wrap_loop_turn(struct loop *loop, int64_t wait_max_ns);
void __wrap_loop_turn(struct loop *loop, int64_t wait_max_ns)
{
    __real_loop_turn(loop, 0);
    if (wait_max_ns > 0 && actor_running())
        actor_sleep(pause_between_turns(loop));
}

/*
 * What runs in a simulation instead of threads: actors, which take turns on one thread in an order
 * that comes from the seed. The functions that start threads and wait (wraps.c) are replaced when
 * the program is linked, so that the server and the client library run unchanged: a thread becomes
 * an actor, and time passes only when none can run.
 *
 *     actors_run: an actor that can run, or a turn of a loop of the simulated network, by chance;
 *                 if there is none, the clock advances to the next event
 *
 * An actor runs until it waits, or until actor_may_yield lets others run in between.
 */
#ifndef VIGIL_TESTS_SIM_ACTORS_H
#define VIGIL_TESTS_SIM_ACTORS_H

#include "base/random.h"
#include "simulated/sim.h"

struct actor;

/* One simulation at a time. The network is borrowed. */
void actors_begin(struct sim *sim, uint64_t seed);
void actors_end(void); /* all actors have ended */
bool actors_active(void);

/* name is borrowed. */
struct actor *actor_start(const char *name, void (*fn)(void *arg), void *arg);
void actor_rename(struct actor *actor, const char *name);
/* NULL on the root: a turn of a loop. */
struct actor *actor_running(void);
const char *actor_name(const struct actor *actor);

/* Runs everything until the actor has ended, and frees it. False: nothing can run any more. */
bool actors_run(struct actor *until);
/* Inside an actor: the same for another one. */
void actor_join(struct actor *actor);
/* It is freed when it ends. */
void actor_detach(struct actor *actor);

/* -- Inside an actor -- */

void actor_sleep(int64_t ns);
/* Waits for actors_wake(on), at most until that time. False: the time has come. */
bool actor_wait(const void *on, int64_t until_ns);
void actors_wake(const void *on);
/* Lets others run. */
void actor_yield(void);
/* The same by chance, unless a lock is held or this is the root. */
void actor_may_yield(void);
void actors_lock_taken(int by);

/* A fault: a random actor does not run until that time. */
void actors_pause_one(int64_t until_ns);

int64_t actors_now(void);
struct random *actors_random(void);
uint64_t actors_steps(void);

#endif

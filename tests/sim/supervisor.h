/*
 * Keeps the server of a machine running: an actor that starts it again whenever it has died. And
 * what can happen to that machine.
 */
#ifndef VIGIL_TESTS_SIM_SUPERVISOR_H
#define VIGIL_TESTS_SIM_SUPERVISOR_H

#include "base/random.h"
#include "machine.h"
#include "plan.h"

struct supervisor {
    struct machine *machine; /* borrowed */
    const struct plan *plan;
    struct random random;
    struct actor *actor;
    bool making;     /* faults are caused: a start may be interrupted */
    bool ending;     /* it is not started again */
    bool rotted;     /* a bit has changed */
    bool heals;      /* what is damaged can be thrown away: the server always starts */
    bool damaged;    /* the server has noticed that, and does not start */
    bool disk_fails; /* an error was planned, or the disk is full */
};

/* Starts the server. Inside an actor, as all of them; returns when it runs. */
void supervisor_begin(struct supervisor *supervisor, struct machine *machine,
                      const struct plan *plan, uint64_t seed);
/* The machine is repaired; returns when the server runs. */
void supervisor_repair(struct supervisor *supervisor);
/* The server is stopped, and starts again without data; returns when it runs. */
void supervisor_empty(struct supervisor *supervisor);
/* The server is stopped, and not started again. */
void supervisor_end(struct supervisor *supervisor);

/* False: this is not a fault of a machine. */
bool supervisor_cause(struct supervisor *supervisor, enum plan_switch which);

#endif

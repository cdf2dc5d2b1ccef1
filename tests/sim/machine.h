/*
 * The machine with the server: the whole of src/server on the simulated disk and network. One at a
 * time. Started and stopped by actors; everything that the dead process still does has no effect.
 */
#ifndef VIGIL_TESTS_SIM_MACHINE_H
#define VIGIL_TESTS_SIM_MACHINE_H

#include "base/error.h"
#include "io/sim.h"

struct machine_options {
    struct sim *sim;
    uint64_t seed;
    unsigned shards;
    bool slow_disk, misdirects;
    bool kube;
};

#define MACHINE_ENDPOINT "http://127.0.0.1:2379"
#define MACHINE_KUBE_ENDPOINT "http://127.0.0.1:8080"

void machine_begin(const struct machine_options *options);
void machine_end(void); /* stopped */

/* The server does not run: it was never started, has been stopped, or has died. */
bool machine_is_down(void);
/* Inside an actor; the machine is down. *ret_died: it failed because power failed meanwhile. */
enum status machine_start(bool *ret_died, struct error *ret_error);
/* Inside an actor: ends the server as a signal does, and waits for it. False: it died meanwhile. */
bool machine_stop(void);

enum machine_end_kind {
    MACHINE_KILLED, /* the process ends; the system keeps what it wrote */
    MACHINE_CUT,    /* power fails */
};
/* From anywhere; machine_bury must follow. */
void machine_die(enum machine_end_kind kind);
bool machine_has_died(void);
/* Inside an actor: frees the dead process. */
void machine_bury(void);

#endif

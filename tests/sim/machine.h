/*
 * A machine with a server: the whole of src/server on a simulated disk and the simulated network.
 * Started and stopped by actors; everything that the dead process still does has no effect.
 *
 * There are at most three. The second one is in front of the first: as a server in front of an etcd
 * cluster (front.h), or as the watch tier in front of a kube-apiserver (tier.h). Behind a tier
 * there may be a third one, in front of the first: a replica of its Kubernetes API, which may be
 * older.
 */
#ifndef VIGIL_TESTS_SIM_MACHINE_H
#define VIGIL_TESTS_SIM_MACHINE_H

#include "base/error.h"
#include "simulated/sim.h"

struct disk;
struct machine;

enum machine_role { MACHINE_FIRST, MACHINE_FRONT, MACHINE_TIER };

struct machine_options {
    struct sim *sim;
    enum machine_role role;
    uint64_t seed;
    unsigned shards;
    bool slow_disk, misdirects;
    bool kube;
    bool has_tier;    /* its Kubernetes API has users, and the watch tier as client */
    const char *user; /* user of a front; NULL: the server behind has no authentication */
};

#define MACHINE_DIR "/data"
#define MACHINE_ENDPOINT "http://127.0.0.1:2379"
#define MACHINE_KUBE_ENDPOINT "http://127.0.0.1:8080"

struct machine *machine_new(const struct machine_options *options);
void machine_free(struct machine *machine); /* stopped; accepts NULL */
struct disk *machine_disk(struct machine *machine);
/* The way from a server in front to the first one exists, or all connections on it break, and there
 * are no new ones. */
void machine_set_link(struct machine *machine, bool exists);

/* The server does not run: it was never started, has been stopped, or has died. */
bool machine_is_down(const struct machine *machine);
/* Inside an actor; the machine is down. *ret_died: it failed because power failed meanwhile. */
enum status machine_start(struct machine *machine, bool *ret_died, struct error *ret_error);
/* Inside an actor: ends the server as a signal does, and waits for it. False: it died meanwhile. */
bool machine_stop(struct machine *machine);

/* The disk had a changed bit when the server was started. The file may have been removed since. */
bool machine_was_rotten(const struct machine *machine);
/* From anywhere: the mirror of a front cannot be used any more. */
void machine_void_mirror(struct machine *machine);
bool machine_has_void_mirror(const struct machine *machine);
/* Inside an actor, as vigil serve does it: all watches end, the server is stopped, and its mirror
 * is thrown away. The machine is down then, unless it died meanwhile. */
void machine_discard_mirror(struct machine *machine);

enum machine_end_kind {
    MACHINE_KILLED, /* the process ends; the system keeps what it wrote */
    MACHINE_CUT,    /* power fails */
};
/* From anywhere; machine_bury must follow. */
void machine_die(struct machine *machine, enum machine_end_kind kind);
bool machine_has_died(const struct machine *machine);
/* Inside an actor: frees the dead process. */
void machine_bury(struct machine *machine);

#endif

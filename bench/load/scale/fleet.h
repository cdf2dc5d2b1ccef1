/*
 * The nodes of one thread, with the connections that they use: a loop with a thread of its own.
 *
 * Every hundredth of a second it starts the nodes that are due, restarts a part of them if the main
 * thread has ordered it, and lets pods and services do what is due.
 */
#ifndef VIGIL_LOAD_SCALE_FLEET_H
#define VIGIL_LOAD_SCALE_FLEET_H

#include "base/error.h"
#include "load/scale/world.h"

#include <vigil/kube/client.h>

struct scale_fleet;

struct scale_fleet_config {
    struct scale_world *world;
    const vigil_kube_options *options; /* for all clients, except for their server: */
    const char *const *servers;
    uint32_t server_count;
    uint32_t index, first, count; /* the thread, and the numbers of its nodes */
    uint32_t pods;                /* on these nodes */
    bool changes_services;
};

/* The config is copied, except for what it points to. The thread runs when this returns. */
MUST_CHECK
enum status scale_fleet_new(const struct scale_fleet_config *config, struct scale_fleet **ret_fleet,
                            struct error *error);
/* Any thread: ends the thread, which closes all connections. */
void scale_fleet_stop(struct scale_fleet *fleet);
/* Waits for its end. Accepts NULL. */
void scale_fleet_free(struct scale_fleet *fleet);

struct scale_measures *scale_fleet_measures(struct scale_fleet *fleet);

#endif

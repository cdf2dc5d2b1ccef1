/*
 * Clients of the watch tier besides those of kube.h: users with and without the right to read
 * ConfigMaps, who list them in all ways, read them one by one, and watch them.
 */
#ifndef VIGIL_TESTS_SIM_TIER_CLIENTS_H
#define VIGIL_TESTS_SIM_TIER_CLIENTS_H

#include "plan.h"

/* Inside an actor, as the others; while nothing is wrong yet. */
void tier_clients_begin(const struct plan *plan);
void tier_clients_start(void);
/* Waits until the actors have made all their requests. */
void tier_clients_join(void);
/* Nothing is wrong any more: all watches have everything, and a user who loses the right loses its
 * watches. */
void tier_clients_settle(void);
/* The server behind the tier has begun another history: everything is of the new one. */
void tier_clients_lose(void);
void tier_clients_end(void);

#endif

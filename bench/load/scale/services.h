/*
 * The services and endpoint slices of a run, which change one after the other, each once in
 * --service-interval. One thread changes them, and all nodes watch them.
 */
#ifndef VIGIL_LOAD_SCALE_SERVICES_H
#define VIGIL_LOAD_SCALE_SERVICES_H

#include "load/scale/world.h"

#include <vigil/kube/client.h>

struct scale_services;

struct scale_services *scale_services_new(struct scale_thread *thread);
void scale_services_free(struct scale_services *services);
/* The client is borrowed. */
void scale_services_start(struct scale_services *services, vigil_kube *kube);
/* From now on calls have no effect. Accepts NULL. */
void scale_services_stop(struct scale_services *services);
/* Makes the changes that are due. */
void scale_services_tick(struct scale_services *services, int64_t now_ns);

#endif

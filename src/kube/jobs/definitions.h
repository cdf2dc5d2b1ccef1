/*
 * The job for definitions that are not as they should be: those that are marked for deletion are
 * purged, those whose names were in use, or have not been decided about, get another chance, and
 * the status of those whose conversion webhook fails, or works again, says so. It runs at the start
 * of the server, whenever a definition has been removed, and within a few seconds after a webhook
 * has begun to fail or to work (kube/call/converter_states.h).
 */
#ifndef VIGIL_KUBE_JOBS_DEFINITIONS_H
#define VIGIL_KUBE_JOBS_DEFINITIONS_H

#include "base/slice.h"

struct kube_api;

/* The first run; further ones when conversion webhooks begin to fail or to work. */
void kube_definitions_start(struct kube_api *api);

/* Starts the job, or lets it run once more. Does nothing when the API has stopped. */
void kube_definitions_check(struct kube_api *api);

/* Purges the objects of a definition that is marked for deletion, such as "widgets.example.com",
 * then the definition, and then checks the others, which may want its names. */
void kube_definitions_purge(struct kube_api *api, struct slice name);

#endif

/*
 * The steps of a create (kube/handlers/write/write.c has their order). The namespace is read first,
 * and the write has its revision as a condition, so that nothing appears in a namespace that is
 * being emptied. The object is prepared once; what depends on the store is decided for each
 * attempt.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CREATE_H
#define VIGIL_KUBE_HANDLERS_WRITE_CREATE_H

#include "kube/handlers/write/change.h"

/* The object of a POST. */
kube_step_fn kube_create_decode;
/* Checks the metadata of the object and sets its defaults, as a decoder does: it is complete when
 * it is admitted. */
kube_step_fn kube_create_complete, kube_create_default;
/* The owners of fields, before anything but the client changes the object. */
kube_step_fn kube_create_own;
/* Reads the namespace, which must exist and not be in deletion. */
kube_step_fn kube_create_read_namespace;
/* What the server sets: name, uid, times, the initial status. */
kube_step_fn kube_create_prepare;
/* The object as it is stored. */
kube_step_fn kube_create_encode;
/* Whether the name is free, for a dry run; it is answered then. */
kube_step_fn kube_create_look;
/* Writes the object if its name is free and its namespace has not changed. */
kube_step_fn kube_create_store;
kube_step_fn kube_create_answer;

#endif

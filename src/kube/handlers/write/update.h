/*
 * The steps of a PUT or PATCH of an object, of its status, of its scale, and of the finalizers of a
 * namespace (kube/handlers/write/write.c has their order). A PUT sends the wanted object, a PATCH
 * makes it from the stored one; the rest is the same for both.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_UPDATE_H
#define VIGIL_KUBE_HANDLERS_WRITE_UPDATE_H

#include "kube/handlers/write/change.h"

/* The object of a PUT, or the patch. */
kube_step_fn kube_update_decode;
/* change->wanted is what the client wants, change->object the stored object with the part of it
 * that this request may change. */
kube_step_fn kube_update_make;
kube_step_fn kube_update_default;
/* The owners of fields, before anything but the client changes the object. */
kube_step_fn kube_update_own;
/* What the server sets and what it does not let a client change: metadata, generation. */
kube_step_fn kube_update_prepare;
/* Whether the object is written, kept or removed. */
kube_step_fn kube_update_conclude;
/* A mutated object, or Scale, without what this request may not change; before: the object before
 * it was mutated. */
bool kube_update_take(struct kube_change *change, const struct json_node *before);
kube_step_fn kube_update_answer;

#endif

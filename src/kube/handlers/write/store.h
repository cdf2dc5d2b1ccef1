/*
 * The steps of a write that use the store (kube/handlers/write/write.c has their order): the object
 * is read, and written on the condition that it has not changed. If another write was faster,
 * another attempt begins.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_STORE_H
#define VIGIL_KUBE_HANDLERS_WRITE_STORE_H

#include "kube/handlers/write/change.h"

/* Waits until other changes of this object, which came first, are made. */
kube_step_fn kube_store_enter_queue;
/* Reads the stored object. */
kube_step_fn kube_store_read;
/* Begins an attempt: change->old is the tree of the stored object. */
kube_step_fn kube_store_parse;
/* change->value is the object as bytes. */
kube_step_fn kube_store_encode;
kube_step_fn kube_store_write;
/* The next change of this object need not wait until the answer is sent. */
kube_step_fn kube_store_leave_queues;

#endif

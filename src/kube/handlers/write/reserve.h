/*
 * Addresses and node ports in writes of services (kube/policy/reservations.h). Everything is in the
 * arena of the attempt. Other kinds have no reservations.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_RESERVE_H
#define VIGIL_KUBE_HANDLERS_WRITE_RESERVE_H

#include "kube/handlers/write/change.h"
#include "kube/policy/reservations.h"

/* A step: sets what the object needs. change->reservations NULL: nothing is to be reserved or given
 * up. */
kube_step_fn kube_reserve;
/* Adds what is reserved and given up to call->write. */
MUST_CHECK
bool kube_reserve_write(struct kube_call *call, struct kube_reservations *reservations,
                        struct slice namespace, struct slice name);
/* Adds what the stored object of a deletion, change->old, has to call->write. */
MUST_CHECK
bool kube_reserve_delete(struct kube_change *change);
/* Another number for a reservation that is in use. False: call->status says why not. */
MUST_CHECK
bool kube_reserve_next(struct kube_call *call, struct kube_reservations *reservations,
                       struct kube_reservation *reservation, struct slice name);

#endif

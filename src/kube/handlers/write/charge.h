/*
 * Quotas in writes (kube/policy/admission/amounts/quota.h): what a write adds to quotas becomes
 * part of its transaction. Each such write changes the quota, and makes the concurrent attempts of
 * the others fail; so those of one namespace are made one after the other on an I/O thread
 * (kube/call/write_queue.h), and only as many as there are threads compete.
 *
 *     decided, quotas change ─► enter ─┬─► write ─┬─► leave
 *                                ▲     │          └─► the quota has changed: decide again
 *                                │     └─► waits ─► its turn: decide again
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CHARGE_H
#define VIGIL_KUBE_HANDLERS_WRITE_CHARGE_H

#include "kube/call/call.h"

/* What plugins add to the transaction of an object; zeroed: nothing. */
struct kube_charges {
    const struct kube_companion *items;
    size_t count;
};

/* On the thread of the API. True: the call may write. False: `again` is called when it is its turn
 * and must decide again, or the call has failed. */
MUST_CHECK
bool kube_charge_enter(struct kube_call *call, const struct kube_charges *charges,
                       void (*again)(struct kube_call *call));
/* After the write; also done by the answer. */
void kube_charge_leave(struct kube_call *call);

/* Adds the charges to call->write, behind the reservations that it has
 * (kube/handlers/write/reserve.h). */
MUST_CHECK
bool kube_charge_write(struct kube_call *call, struct arena *arena,
                       const struct kube_charges *charges);

#endif

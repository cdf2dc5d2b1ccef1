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

#include "kube/handlers/write/change.h"

/* A step: waits for other writes that change the quotas of its namespace. */
kube_step_fn kube_charge;

/* Adds the charges to call->write, behind the reservations that it has
 * (kube/handlers/write/reserve.h). */
MUST_CHECK
bool kube_charge_write(struct kube_call *call, struct arena *arena,
                       const struct kube_charges *charges);

#endif

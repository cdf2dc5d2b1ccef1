/*
 * Lease.LeaseKeepAlive: a stream of lease ids, each answered with the lease's whole time, or with 0
 * when it is gone. Answers come in the order of the questions.
 *
 *     messages ──► waiting ──► one operation of the engine at a time ──► answers
 *
 * What comes while the engine is busy goes with the next operation. A client that asks faster than
 * that gets no more window until the next one begins.
 */
#ifndef VIGIL_ETCD_SERVICE_LEASE_KEEP_ALIVE_H
#define VIGIL_ETCD_SERVICE_LEASE_KEEP_ALIVE_H

#include "wire/grpc/call.h"

/* The row's functions; the service is the face. */
void lease_keep_alive_on_message(struct grpc_call *call, void *face, struct slice message);
void lease_keep_alive_on_half_close(struct grpc_call *call, void *face);
void lease_keep_alive_on_end(struct grpc_call *call, void *face);

#endif

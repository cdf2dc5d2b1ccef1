/*
 * Lease.LeaseKeepAlive: a stream of lease ids, each answered with the granted time to live, or with
 * 0 if the lease does not exist. Responses have the order of the requests.
 *
 *     messages ──► waiting ──► one operation of the engine at a time ──► responses
 *
 * Requests that arrive while the engine is busy are part of the next operation. A client that sends
 * faster than that gets no more flow-control window until the next operation starts.
 */
#ifndef VIGIL_ETCD_SERVICE_LEASE_KEEP_ALIVE_H
#define VIGIL_ETCD_SERVICE_LEASE_KEEP_ALIVE_H

#include "wire/grpc/call.h"

/* The handlers of the method. */
void lease_keep_alive_on_message(struct grpc_call *call, void *api, struct slice message);
void lease_keep_alive_on_half_close(struct grpc_call *call, void *api);
void lease_keep_alive_on_end(struct grpc_call *call, void *api);

#endif

/*
 * Keeps leases alive for a client, over one stream for all of them.
 *
 * Each lease is renewed after a third of its time to live. It is lost when the server does not know
 * it any more, and when its time has passed since the last answer. Several vigil_lease objects may
 * keep the same lease. Owned by a client; the loop's thread. Mirrors lessor of etcd's clientv3.
 */
#ifndef VIGIL_CLIENT_API_LEASE_KEEPER_H
#define VIGIL_CLIENT_API_LEASE_KEEPER_H

#include "base/status.h"

struct lease_keeper;
struct vigil_client;

/* It becomes a part of the client, which frees it. ST_NOMEM. */
MUST_CHECK
enum status lease_keeper_new(struct vigil_client *client, struct lease_keeper **ret_keeper);

/* Asserts every invariant; for tests. */
void lease_keeper_check(const struct lease_keeper *keeper);

#endif

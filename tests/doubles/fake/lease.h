/* The leases of the fake engine. They never expire; otherwise they are as in etcd. One thread. */
#ifndef VIGIL_FAKE_LEASE_H
#define VIGIL_FAKE_LEASE_H

#include "engine/leases.h"
#include "engine/permission.h"
#include "fake/model.h"

struct fake_lease;

/* Borrows the model, and answers its questions whether a lease exists. */
struct fake_lease *fake_lease_new(struct fake_model *model, uint64_t seed);
void fake_lease_free(struct fake_lease *lease);

/* Enumerates attached keys, for permission checks. */
struct auth_leases fake_lease_keys(struct fake_lease *lease);
MUST_CHECK
enum status fake_lease_run(struct fake_lease *lease, struct engine_op *op,
                           const struct auth_rights *rights, int64_t now_ns);

#endif

/*
 * Whether a user has the rights that a request needs: for the keys it reads and writes, in every
 * branch of a transaction at any depth, for previous values, and for the keys attached to the
 * leases it uses. The API has validated the request; texts and order of errors are etcd's.
 *
 * Pure functions, on any thread that holds the rights. The owner of the leases provides a callback
 * that enumerates their keys.
 */
#ifndef VIGIL_AUTH_CHECK_H
#define VIGIL_AUTH_CHECK_H

#include "auth/rights.h"
#include "codec/pb/rpc.pb.h"

/*
 * Calls visit for each key of the lease, or with AUTH_ALL_LEASES of all leases, until it fails, and
 * returns its status. A lease that does not exist has no keys. `whose` is auth_rights_number of the
 * user (0: no user): keys that were allowed for this number stay allowed, so of those it is enough
 * to visit one.
 */
enum { AUTH_ALL_LEASES = 0 };
typedef enum status (*auth_key_fn)(void *ctx, struct slice key);
struct auth_leases {
    void *ctx;
    enum status (*each_key)(void *ctx, int64_t lease, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx);
};

/* The context of a check. All borrowed. */
struct auth_asker {
    const struct auth_rights *rights;
    struct auth_principal principal;
    struct auth_leases leases;
};

MUST_CHECK
enum status auth_check_range(const struct auth_asker *asker,
                             const struct pb_range_request *request);
MUST_CHECK
enum status auth_check_put(const struct auth_asker *asker, const struct pb_put_request *request);
MUST_CHECK
enum status auth_check_delete_range(const struct auth_asker *asker,
                                    const struct pb_delete_range_request *request);
/* All compares and both branches. */
MUST_CHECK
enum status auth_check_txn(const struct auth_asker *asker, const struct pb_txn_request *request);
/*
 * A watch as the client sent it: an empty key is the first key, the end "\0" means no end. Previous
 * values of events are covered by the range too.
 */
MUST_CHECK
enum status auth_check_watch(const struct auth_asker *asker,
                             const struct pb_watch_create_request *request);

/* Revoking and renewing need the right to write all attached keys. */
MUST_CHECK
enum status auth_check_lease_write(const struct auth_asker *asker, int64_t lease);
/* Reading the keys of a lease, or the list of leases, needs the right to read all attached keys. */
MUST_CHECK
enum status auth_check_lease_read(const struct auth_asker *asker, int64_t lease);
MUST_CHECK
enum status auth_check_leases_read(const struct auth_asker *asker);

#endif

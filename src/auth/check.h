/*
 * What a request needs of its user's rights: the keys it reads and writes, in every branch of a
 * transaction however deep, the versions it asks to see again, and the keys that hang on the leases
 * it uses. Requests have been checked by the face; texts and order of errors are etcd's.
 *
 * Pure: any thread that holds the rights. The keys of a lease come by callback from who owns them.
 */
#ifndef VIGIL_AUTH_CHECK_H
#define VIGIL_AUTH_CHECK_H

#include "auth/rights.h"
#include "codec/pb/rpc.pb.h"

/*
 * Calls visit with each key of the lease, or with AUTH_ALL_LEASES of all there are, until it fails,
 * and returns what it said. A lease that is not there has no keys. `whose` is the number of a set
 * of rights that never changes (0: of none): keys that were in order for it once are still, so
 * that of all those one is enough.
 */
enum { AUTH_ALL_LEASES = 0 };
typedef enum status (*auth_key_fn)(void *ctx, struct slice key);
struct auth_leases {
    void *ctx;
    enum status (*each_key)(void *ctx, int64_t lease, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx);
};

/* One request's question. All borrowed. */
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
/* All compares and both branches, whichever would be taken. */
MUST_CHECK
enum status auth_check_txn(const struct auth_asker *asker, const struct pb_txn_request *request);
/*
 * A watch as the client sent it: without key from the first on, with the end "\0" without end. An
 * event may show the version before it: that is in the range too.
 */
MUST_CHECK
enum status auth_check_watch(const struct auth_asker *asker,
                             const struct pb_watch_create_request *request);

/* Revoking and renewing: the right to write all keys that hang on it. */
MUST_CHECK
enum status auth_check_lease_write(const struct auth_asker *asker, int64_t lease);
/* Seeing the keys of a lease, or which leases there are: the right to read them. */
MUST_CHECK
enum status auth_check_lease_read(const struct auth_asker *asker, int64_t lease);
MUST_CHECK
enum status auth_check_leases_read(const struct auth_asker *asker);

#endif

/*
 * Leases: keys that are put with a lease are deleted when it expires.
 *
 * A lease that the program keeps (vigil_lease_keep) is renewed after a third of its time to live,
 * over one stream for all leases, also after a break. It is lost when the server does not know it
 * any more, or when its time has passed without an answer.
 */
#ifndef VIGIL_LEASE_H
#define VIGIL_LEASE_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_lease_grant_response {
    const vigil_header *header;
    int64_t id;
    int64_t ttl; /* in seconds, as the server chose it */
    vigil_bytes error;
} vigil_lease_grant_response;

typedef struct vigil_lease_ttl_response {
    const vigil_header *header;
    int64_t id;
    int64_t ttl; /* seconds left; -1: there is no such lease */
    int64_t granted_ttl;
    const vigil_bytes *keys; /* only if requested */
    size_t key_count;
} vigil_lease_ttl_response;

typedef struct vigil_lease_status {
    int64_t id;
} vigil_lease_status;

typedef struct vigil_lease_list_response {
    const vigil_header *header;
    const vigil_lease_status *leases;
    size_t lease_count;
} vigil_lease_list_response;

/* ttl is in seconds; id 0: the server chooses one. */
VIGIL_API vigil_call *vigil_lease_grant(vigil_client *client, int64_t ttl, int64_t id);
VIGIL_API const vigil_lease_grant_response *vigil_lease_grant_result(const vigil_call *call);

VIGIL_API vigil_call *vigil_lease_revoke(vigil_client *client, int64_t id);

VIGIL_API vigil_call *vigil_lease_ttl(vigil_client *client, int64_t id, int with_keys);
VIGIL_API const vigil_lease_ttl_response *vigil_lease_ttl_result(const vigil_call *call);

VIGIL_API vigil_call *vigil_lease_list(vigil_client *client);
VIGIL_API const vigil_lease_list_response *vigil_lease_list_result(const vigil_call *call);

/* -- Keeping a lease -- */

typedef struct vigil_lease vigil_lease;

/* The lease is lost: nothing follows. */
typedef void (*vigil_lease_lost)(vigil_lease *lease, const vigil_error *error, void *user);

/* Begins at once. ttl is that of the grant; the answers may change it. lost may be NULL. Returns a
 * vigil_code. */
VIGIL_API int vigil_lease_keep(vigil_client *client, int64_t id, int64_t ttl, vigil_lease_lost lost,
                               void *user, vigil_lease **ret_lease);
/* Ends the renewals; the lease then expires unless it is revoked. lost is not called any more; if
 * it is running on another thread just now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_lease_free(vigil_lease *lease);

VIGIL_API int64_t vigil_lease_id(const vigil_lease *lease);
VIGIL_API void *vigil_lease_user(const vigil_lease *lease);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Leases: keys that are put with a lease are deleted when it expires.
 *
 * A lease that the program keeps (vigil_lease_keep) is renewed after a third of its time to live,
 * over one stream for all leases, also after a break. It is lost when the server does not know it
 * any more, or when its time has passed without an answer.
 *
 *     vigil_call *grant = vigil_lease_grant(client, 10, 0);
 *     if (vigil_call_run(grant) == VIGIL_OK) {
 *         int64_t id = vigil_lease_grant_result(grant)->id;
 *         vigil_lease_keep(client, id, 10, on_lost, NULL, &lease);
 *         finish(vigil_put(client, key, value, id));
 *     }
 *     vigil_call_free(grant);
 *
 * Errors: VIGIL_ERROR_LEASE_NOT_FOUND for a lease that has expired or never existed,
 * VIGIL_ERROR_LEASE_EXISTS for a grant with an id that is in use, and those of every call.
 *
 * Example: examples/registry.c
 */
#ifndef VIGIL_LEASE_H
#define VIGIL_LEASE_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lease that was granted. */
typedef struct vigil_lease_grant_response {
    const vigil_header *header;
    int64_t id;
    int64_t ttl;       /* in seconds, as the server chose it */
    vigil_bytes error; /* error of etcd's API; empty */
} vigil_lease_grant_response;

/* How long a lease lasts, and what depends on it. */
typedef struct vigil_lease_ttl_response {
    const vigil_header *header;
    int64_t id;
    int64_t ttl;             /* seconds left; -1: there is no such lease */
    int64_t granted_ttl;     /* in seconds */
    const vigil_bytes *keys; /* only if requested */
    size_t key_count;
} vigil_lease_ttl_response;

/* One lease of a list. */
typedef struct vigil_lease_status {
    int64_t id;
} vigil_lease_status;

/* All leases of the server. */
typedef struct vigil_lease_list_response {
    const vigil_header *header;
    const vigil_lease_status *leases;
    size_t lease_count;
} vigil_lease_list_response;

/* Creates a lease. ttl is in seconds. If id is 0, the server chooses one. */
VIGIL_API vigil_call *vigil_lease_grant(vigil_client *client, int64_t ttl, int64_t id);
/* The answer to vigil_lease_grant. */
VIGIL_API const vigil_lease_grant_response *vigil_lease_grant_result(const vigil_call *call);

/* Ends a lease and deletes its keys. */
VIGIL_API vigil_call *vigil_lease_revoke(vigil_client *client, int64_t id);

/* Reads the time that a lease has left, and its keys if with_keys is not 0. A lease that does not
 * exist is not an error: its ttl is -1. */
VIGIL_API vigil_call *vigil_lease_ttl(vigil_client *client, int64_t id, int with_keys);
/* The answer to vigil_lease_ttl. */
VIGIL_API const vigil_lease_ttl_response *vigil_lease_ttl_result(const vigil_call *call);

/* Lists all leases of the server. */
VIGIL_API vigil_call *vigil_lease_list(vigil_client *client);
/* The answer to vigil_lease_list. */
VIGIL_API const vigil_lease_list_response *vigil_lease_list_result(const vigil_call *call);

/* -- Keeping a lease -- */

typedef struct vigil_lease vigil_lease;

/* Called once when the lease is lost. error says why; it is valid during the callback. */
typedef void (*vigil_lease_lost)(vigil_lease *lease, const vigil_error *error, void *user);

/* Renews a lease from now on, until it is lost or freed. ttl is that of the grant, in seconds; the
 * server's answers may change it. lost may be NULL. Returns a vigil_code: VIGIL_ERROR_ARGUMENT for
 * an id of 0 or a ttl that is not positive, or VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_lease_keep(vigil_client *client, int64_t id, int64_t ttl, vigil_lease_lost lost,
                               void *user, vigil_lease **ret_lease);
/* Ends the renewals; the lease then expires unless it is revoked. lost is not called any more; if
 * it is running on another thread just now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_lease_free(vigil_lease *lease);

/* The id of vigil_lease_keep. */
VIGIL_API int64_t vigil_lease_id(const vigil_lease *lease);
/* The user pointer of vigil_lease_keep. */
VIGIL_API void *vigil_lease_user(const vigil_lease *lease);

#ifdef __cplusplus
}
#endif

#endif

/*
 * The model of leases: until when each must exist at least. A lease lives for its time from the
 * grant and from every renewal that has reached the server before its end. A restart of the server
 * and time during which it was stalled only make that longer.
 */
#ifndef VIGIL_TESTS_SIM_LEASES_H
#define VIGIL_TESTS_SIM_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include <vigil/vigil.h>

/* Which renewals count. */
enum renewals {
    RENEWALS_NONE,    /* only the grant: with users, a renewal may be refused */
    RENEWALS_DECODED, /* from the moment at which the server has decoded them */
    RENEWALS_BEHIND,  /* once they have reached the engine that has the leases, behind another */
};
void leases_begin(enum renewals renewals);

/* The grant begins. */
void leases_grant(int64_t id, int64_t ttl_s);
void leases_granted(int64_t id); /* it exists: it can be used, kept and revoked */
/* A revocation begins: from now on it may end at any time. */
void leases_revoke(int64_t id);

/* One that was granted, by number; 0 if the number is too large. */
int64_t leases_at(unsigned number);
unsigned leases_count(void);
bool leases_is_over(int64_t id); /* its time may be over */

/* The client renews the lease from now on, if no client does so yet. */
void leases_keep(vigil_client *client, int64_t id);
/* No client renews any more. Inside an actor, before the clients are freed. */
void leases_release(void);

#endif

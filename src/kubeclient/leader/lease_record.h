/*
 * What a Lease (coordination.k8s.io/v1) says about an election: its spec, in JSON. The format is
 * that of client-go's resource lock, so that candidates in C and in Go understand each other.
 */
#ifndef VIGIL_KUBECLIENT_LEADER_LEASE_RECORD_H
#define VIGIL_KUBECLIENT_LEADER_LEASE_RECORD_H

#include "base/buf.h"

enum { LEASE_IDENTITY_BYTES = 256, LEASE_TIME_BYTES = 40 };

/* A value. Texts that do not fit are cut, so that they equal no identity of ours. */
struct lease_record {
    char holder[LEASE_IDENTITY_BYTES]; /* "": released */
    int64_t duration_s;                /* at most INT32_MAX, as transitions */
    char acquire_time[LEASE_TIME_BYTES], renew_time[LEASE_TIME_BYTES]; /* as written */
    int64_t transitions;
};

bool lease_record_equal(const struct lease_record *a, const struct lease_record *b);

/* A Lease without a spec, or with fields of other types, has a zeroed record. */
void lease_record_read(struct slice lease, struct lease_record *ret_record);

/* A time of the record, "2006-01-02T15:04:05.000000Z", from the wall clock. */
void lease_time(int64_t wall_ns, char to[LEASE_TIME_BYTES]);

/* Appends a new Lease with this record. ST_NOMEM. */
MUST_CHECK
enum status lease_write_new(struct buf *to, const char *name_space, const char *name,
                            const struct lease_record *record);
/* Appends a copy of a Lease with its spec replaced; everything else of it is kept. ST_MALFORMED: it
 * is not an object. ST_NOMEM. */
MUST_CHECK
enum status lease_write_update(struct buf *to, struct slice lease,
                               const struct lease_record *record);

#endif

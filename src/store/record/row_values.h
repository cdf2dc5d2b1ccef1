/*
 * The values of rows of some tables, for all code that writes or reads them: leases and alarms.
 * Users, roles and the auth settings are as in etcd's own file (auth/store.h).
 */
#ifndef VIGIL_STORE_RECORD_ROW_VALUES_H
#define VIGIL_STORE_RECORD_ROW_VALUES_H

#include "store/record/row.h"

#include <endian.h>

/*
 * ROW_LEASE: id → time to live, the remaining time if that is less, and the end if that is fixed;
 * in the machine's byte order.
 */
struct lease_row {
    int64_t id;
    int64_t ttl_s;
    int64_t remaining_s; /* at the next start, once; 0: all of it */
    int64_t until_ns;    /* on the real-time clock, independent of restarts; 0: no fixed end */
};

/* Slices refer to *lease. */
static inline struct row lease_row_make(const struct lease_row *lease, bool deleted)
{
    struct row row = {
        .table = ROW_LEASE, .deleted = deleted, .key = slice_of(&lease->id, sizeof(lease->id))};
    size_t numbers = lease->until_ns ? 3 : lease->remaining_s ? 2 : 1;
    if (!deleted)
        row.value = slice_of(&lease->ttl_s, numbers * sizeof(lease->ttl_s));
    return row;
}
_Static_assert(offsetof(struct lease_row, remaining_s) ==
                   offsetof(struct lease_row, ttl_s) + sizeof(int64_t),
               "both numbers are one value");
_Static_assert(offsetof(struct lease_row, until_ns) ==
                   offsetof(struct lease_row, remaining_s) + sizeof(int64_t),
               "and so is the third");

/* A deleted one has ttl 0. ST_DAMAGED. */
MUST_CHECK
static inline enum status lease_row_read(const struct row *row, struct lease_row *ret_lease)
{
    struct lease_row lease = {0};
    size_t one = sizeof(lease.ttl_s);
    bool has_value =
        row->value.len == one || row->value.len == 2 * one || row->value.len == 3 * one;
    if (row->key.len != sizeof(lease.id) || (!row->deleted && !has_value))
        return ST_DAMAGED;
    memcpy(&lease.id, row->key.ptr, sizeof(lease.id));
    if (!row->deleted)
        memcpy(&lease.ttl_s, row->value.ptr, row->value.len);
    *ret_lease = lease;
    return ST_OK;
}

/* ROW_ALARM: this → nothing. */
struct alarm_row_key {
    uint32_t type_be;
    uint32_t zero;
    uint64_t member_id_be;
};
_Static_assert(sizeof(struct alarm_row_key) == 16, "written to disk as it is");

static inline struct alarm_row_key alarm_row_key_make(int32_t type, uint64_t member_id)
{
    return (struct alarm_row_key){
        .type_be = htobe32((uint32_t)type),
        .member_id_be = htobe64(member_id),
    };
}

static inline struct row alarm_row_make(const struct alarm_row_key *key, bool deleted)
{
    return (struct row){.table = ROW_ALARM, .deleted = deleted, .key = slice_of(key, sizeof(*key))};
}

/* ST_DAMAGED. */
MUST_CHECK
static inline enum status alarm_row_read(const struct row *row, int32_t *ret_type,
                                         uint64_t *ret_member_id)
{
    struct alarm_row_key key;
    if (row->key.len != sizeof(key))
        return ST_DAMAGED;
    memcpy(&key, row->key.ptr, sizeof(key));
    *ret_type = (int32_t)be32toh(key.type_be);
    *ret_member_id = be64toh(key.member_id_be);
    return ST_OK;
}

#endif

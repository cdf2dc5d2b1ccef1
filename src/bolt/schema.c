#include "bolt/schema.h"

enum { SEPARATOR = '_', TOMBSTONE = 't' };

struct slice bolt_bucket_name(enum bolt_etcd_bucket bucket)
{
    static const char *const names[BOLT_BUCKETS] = {
        [BOLT_BUCKET_ALARM] = "alarm",
        [BOLT_BUCKET_AUTH] = "auth",
        [BOLT_BUCKET_ROLES] = "authRoles",
        [BOLT_BUCKET_USERS] = "authUsers",
        [BOLT_BUCKET_CLUSTER] = "cluster",
        [BOLT_BUCKET_KEY] = "key",
        [BOLT_BUCKET_LEASE] = "lease",
        [BOLT_BUCKET_MEMBERS] = "members",
        [BOLT_BUCKET_REMOVED] = "members_removed",
        [BOLT_BUCKET_META] = "meta",
    };
    assert(bucket < BOLT_BUCKETS);
    return slice_from_text(names[bucket]);
}

void bolt_number_write(uint64_t number, uint8_t ret_bytes[BOLT_NUMBER_BYTES])
{
    for (int i = 0; i < BOLT_NUMBER_BYTES; i++)
        ret_bytes[i] = (uint8_t)(number >> (56 - 8 * i));
}

uint64_t bolt_number_read(const uint8_t bytes[BOLT_NUMBER_BYTES])
{
    uint64_t number = 0;
    for (int i = 0; i < BOLT_NUMBER_BYTES; i++)
        number = number << 8 | bytes[i];
    return number;
}

size_t bolt_revision_write(struct bolt_revision revision, uint8_t ret_bytes[BOLT_TOMBSTONE_BYTES])
{
    assert(revision.main >= 0);
    assert(revision.sub >= 0);
    bolt_number_write((uint64_t)revision.main, ret_bytes);
    ret_bytes[BOLT_NUMBER_BYTES] = SEPARATOR;
    bolt_number_write((uint64_t)revision.sub, ret_bytes + BOLT_NUMBER_BYTES + 1);
    if (!revision.is_tombstone)
        return BOLT_REVISION_BYTES;
    ret_bytes[BOLT_REVISION_BYTES] = TOMBSTONE;
    return BOLT_TOMBSTONE_BYTES;
}

bool bolt_revision_read(struct slice bytes, struct bolt_revision *ret_revision)
{
    bool is_tombstone = bytes.len == BOLT_TOMBSTONE_BYTES;
    if (bytes.len != BOLT_REVISION_BYTES && !is_tombstone)
        return false;
    if (bytes.ptr[BOLT_NUMBER_BYTES] != SEPARATOR)
        return false;
    if (is_tombstone && bytes.ptr[BOLT_REVISION_BYTES] != TOMBSTONE)
        return false;
    int64_t main = (int64_t)bolt_number_read(bytes.ptr);
    int64_t sub = (int64_t)bolt_number_read(bytes.ptr + BOLT_NUMBER_BYTES + 1);
    if (main < 0 || sub < 0)
        return false;
    *ret_revision = (struct bolt_revision){main, sub, is_tombstone};
    return true;
}

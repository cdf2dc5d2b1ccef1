#include "mirror/answer/possible.h"

#include "codec/pb/kv.pb.h"

bool possible_key(struct slice key, struct slice from, struct slice end)
{
    if (end.len == 0)
        return key.len > 0 && slice_equal(key, from);
    bool is_open = end.len == 1 && end.ptr[0] == 0;
    return key.len > 0 && slice_compare(from, key) <= 0 && (is_open || slice_compare(key, end) < 0);
}

bool possible_numbers(int64_t create_revision, int64_t mod_revision, int64_t version,
                      int64_t revision)
{
    return create_revision >= 0 && create_revision <= mod_revision && mod_revision <= revision &&
           version >= 0 && version <= POSSIBLE_REVISION_MAX && possible_revision(revision);
}

bool possible_kvs(const struct pb_key_value *kvs, size_t count, struct slice from, struct slice end)
{
    for (size_t i = 0; i < count; i++)
        if (!possible_key(kvs[i].key, from, end) ||
            !possible_numbers(kvs[i].create_revision, kvs[i].mod_revision, kvs[i].version,
                              POSSIBLE_REVISION_MAX))
            return false;
    return true;
}

#include "store/mvcc/prefetch.h"

#include "codec/pb/rpc.pb.h"

void prefetch_puts(const struct applier *applier, const struct pb_put_request *const *requests,
                   size_t count)
{
    struct index_root root = index_working_root(applier->index);
    struct slice keys[PREFETCH_PUTS_MAX];
    assert(count <= PREFETCH_PUTS_MAX);
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(requests[i]);
    for (size_t i = 0; i < count; i++) {
        keys[i] = requests[i]->key;
        __builtin_prefetch(keys[i].ptr);
    }
    index_root_prefetch(&root, keys, count);
}

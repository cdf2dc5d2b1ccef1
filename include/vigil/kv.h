/*
 * Keys and values: range, put, delete, compaction, transactions.
 *
 * Requests and responses have the fields of etcd's API under the same names. A request starts as
 * zeros, which are etcd's defaults, with its size set: vigil_range_request_init and the like.
 */
#ifndef VIGIL_KV_H
#define VIGIL_KV_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The range end that selects all keys with this prefix. buffer has prefix.size bytes; the result
 * points into it, or to a constant if every key has the prefix. */
VIGIL_API vigil_bytes vigil_prefix_end(vigil_bytes prefix, void *buffer);

/* -- Range -- */

enum vigil_sort_order { VIGIL_SORT_NONE, VIGIL_SORT_ASCEND, VIGIL_SORT_DESCEND };
enum vigil_sort_target {
    VIGIL_SORT_KEY,
    VIGIL_SORT_VERSION,
    VIGIL_SORT_CREATE,
    VIGIL_SORT_MOD,
    VIGIL_SORT_VALUE
};

typedef struct vigil_range_request {
    size_t size;
    vigil_bytes key;
    vigil_bytes
        range_end;    /* none: one key; "\0": all from key on; otherwise up to and without it */
    int64_t limit;    /* 0: none */
    int64_t revision; /* 0: the newest */
    int32_t sort_order, sort_target;
    uint8_t serializable; /* may be answered by a member that is behind */
    uint8_t keys_only, count_only;
    int64_t min_mod_revision, max_mod_revision;
    int64_t min_create_revision, max_create_revision;
} vigil_range_request;

typedef struct vigil_range_response {
    const vigil_header *header;
    const vigil_kv *kvs;
    size_t kv_count;
    uint8_t more;  /* the limit cut the result off */
    int64_t count; /* of all keys in the range, whatever the limit */
} vigil_range_response;

VIGIL_API void vigil_range_request_init(vigil_range_request *request);
VIGIL_API vigil_call *vigil_range(vigil_client *client, const vigil_range_request *request);
/* One key. */
VIGIL_API vigil_call *vigil_get(vigil_client *client, vigil_bytes key);
/* All keys with the prefix. */
VIGIL_API vigil_call *vigil_get_prefix(vigil_client *client, vigil_bytes prefix);
/* NULL unless the call was one of these and has succeeded. The same holds for the functions below.
 */
VIGIL_API const vigil_range_response *vigil_range_result(const vigil_call *call);

/* -- Put -- */

typedef struct vigil_put_request {
    size_t size;
    vigil_bytes key, value;
    int64_t lease;
    uint8_t prev_kv;
    uint8_t ignore_value, ignore_lease; /* keep the key's own */
} vigil_put_request;

typedef struct vigil_put_response {
    const vigil_header *header;
    const vigil_kv *prev_kv; /* NULL unless requested */
} vigil_put_response;

VIGIL_API void vigil_put_request_init(vigil_put_request *request);
VIGIL_API vigil_call *vigil_put_with(vigil_client *client, const vigil_put_request *request);
VIGIL_API vigil_call *vigil_put(vigil_client *client, vigil_bytes key, vigil_bytes value,
                                int64_t lease);
VIGIL_API const vigil_put_response *vigil_put_result(const vigil_call *call);

/* -- Delete -- */

typedef struct vigil_delete_request {
    size_t size;
    vigil_bytes key, range_end;
    uint8_t prev_kv;
} vigil_delete_request;

typedef struct vigil_delete_response {
    const vigil_header *header;
    int64_t deleted;
    const vigil_kv *prev_kvs; /* only if requested */
    size_t prev_kv_count;
} vigil_delete_response;

VIGIL_API void vigil_delete_request_init(vigil_delete_request *request);
VIGIL_API vigil_call *vigil_delete_with(vigil_client *client, const vigil_delete_request *request);
VIGIL_API vigil_call *vigil_delete(vigil_client *client, vigil_bytes key);
VIGIL_API vigil_call *vigil_delete_prefix(vigil_client *client, vigil_bytes prefix);
VIGIL_API const vigil_delete_response *vigil_delete_result(const vigil_call *call);

/* -- Compaction -- */

/* physical: the answer waits until the space is free. */
VIGIL_API vigil_call *vigil_compact(vigil_client *client, int64_t revision, int physical);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Keys and values: range, put, delete and compaction.
 *
 * The functions create calls, which vigil_call_run or vigil_call_start then sends:
 *
 *     vigil_call *call = vigil_get(client, vigil_text("config/color"));
 *     if (vigil_call_run(call) == VIGIL_OK) {
 *         const vigil_range_response *range = vigil_range_result(call);
 *         for (size_t i = 0; i < range->kv_count; i++)
 *             print(range->kvs[i].value);
 *     }
 *     vigil_call_free(call);
 *
 * A key that does not exist is not an error: kv_count is 0 then. A key with its value is a struct
 * vigil_kv, which is in vigil/types.h.
 *
 * Requests and responses have the fields of etcd's API under the same names. A request starts as
 * zeros, which are etcd's defaults, with its size set: vigil_range_request_init and the like.
 *
 * Errors: VIGIL_ERROR_COMPACTED and VIGIL_ERROR_FUTURE_REVISION for a revision that is too old or
 * too new, VIGIL_ERROR_LEASE_NOT_FOUND for a put with an unknown lease, VIGIL_ERROR_NO_SPACE for a
 * put into a full store, VIGIL_ERROR_PERMISSION_DENIED, and those of every call.
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

/* The order of the keys in a response. NONE is the order of the keys, which costs nothing. */
enum vigil_sort_order { VIGIL_SORT_NONE, VIGIL_SORT_ASCEND, VIGIL_SORT_DESCEND };
/* The field by which the keys are ordered. */
enum vigil_sort_target {
    VIGIL_SORT_KEY,
    VIGIL_SORT_VERSION,
    VIGIL_SORT_CREATE,
    VIGIL_SORT_MOD,
    VIGIL_SORT_VALUE
};

/* Which keys to read, and how. Set all fields with vigil_range_request_init. */
typedef struct vigil_range_request {
    size_t size;
    vigil_bytes key;
    vigil_bytes
        range_end;    /* none: one key; "\0": all from key on; otherwise up to and without it */
    int64_t limit;    /* 0: none */
    int64_t revision; /* 0: the newest */
    int32_t sort_order, sort_target; /* enum vigil_sort_order, enum vigil_sort_target */
    uint8_t serializable;            /* may be answered by a member that is behind */
    uint8_t keys_only, count_only;   /* without values, or without any keys */
    /* Leave out keys whose revisions are below or above; 0: no limit. */
    int64_t min_mod_revision, max_mod_revision;
    int64_t min_create_revision, max_create_revision;
} vigil_range_request;

/* The keys that were read. */
typedef struct vigil_range_response {
    const vigil_header *header;
    const vigil_kv *kvs;
    size_t kv_count;
    uint8_t more;  /* the limit cut the result off */
    int64_t count; /* number of all keys in the range, whatever the limit */
} vigil_range_response;

/* Sets the size and the defaults. */
VIGIL_API void vigil_range_request_init(vigil_range_request *request);
/* Reads a range of keys. */
VIGIL_API vigil_call *vigil_range(vigil_client *client, const vigil_range_request *request);
/* Reads one key. */
VIGIL_API vigil_call *vigil_get(vigil_client *client, vigil_bytes key);
/* Reads all keys with the prefix. */
VIGIL_API vigil_call *vigil_get_prefix(vigil_client *client, vigil_bytes prefix);
/* The answer to vigil_range, vigil_get and vigil_get_prefix. NULL unless the call is one of these
 * and has succeeded. The same holds for the other functions that return an answer. */
VIGIL_API const vigil_range_response *vigil_range_result(const vigil_call *call);

/* -- Ranges in parts -- */

/* Receives a part of a range; returns enum vigil_part_answer. */
typedef int (*vigil_range_fn)(vigil_call *call, const vigil_range_response *part, void *user);

/*
 * Reads a range in one call whose result comes in parts, in the order of the keys and at one
 * revision: see "Streamed calls" in vigil/call.h. header, more and count are in the last part only;
 * before it, header is NULL. The server chooses the size of the parts; one that exceeds
 * receive_bytes_max ends the call with VIGIL_ERROR_TOO_LARGE.
 *
 * Vigil and etcd 3.7 have this call. Other servers answer VIGIL_ERROR_UNIMPLEMENTED, as all do to a
 * sort order other than by key and to revision filters.
 */
VIGIL_API vigil_call *vigil_range_stream(vigil_client *client, const vigil_range_request *request,
                                         vigil_range_fn fn, void *user);

/*
 * Reads a range in pages of at most request->limit keys (0: 1000), with any server: see "Streamed
 * calls" in vigil/call.h. All pages are read at the revision of the first one, in the order of the
 * keys, and each is a part; its count is that of the keys from its first one on.
 *
 * A page is requested when the one before it was delivered, so at most one page is in memory. A
 * page that would exceed receive_bytes_max is requested again with half as many keys. A page is
 * repeated like any read until its timeout, so a broken connection or a restart of the server does
 * not end the call.
 *
 * VIGIL_ERROR_COMPACTED: the revision was compacted meanwhile; some pages may have been delivered.
 * VIGIL_ERROR_ARGUMENT: the request wants another order than that of ascending keys.
 */
VIGIL_API vigil_call *vigil_range_pages(vigil_client *client, const vigil_range_request *request,
                                        vigil_range_fn fn, void *user);

/* -- Put -- */

/* What to write. Set all fields with vigil_put_request_init. */
typedef struct vigil_put_request {
    size_t size;
    vigil_bytes key, value;
    int64_t lease;                      /* 0: none */
    uint8_t prev_kv;                    /* return the key as it was before */
    uint8_t ignore_value, ignore_lease; /* keep the key's own */
} vigil_put_request;

/* The answer to a put. */
typedef struct vigil_put_response {
    const vigil_header *header;
    const vigil_kv *prev_kv; /* NULL unless requested, and if the key did not exist */
} vigil_put_response;

/* Sets the size and the defaults. */
VIGIL_API void vigil_put_request_init(vigil_put_request *request);
/* Writes a key, with all options. */
VIGIL_API vigil_call *vigil_put_with(vigil_client *client, const vigil_put_request *request);
/* Writes a key. lease is the lease with which it expires, or 0. */
VIGIL_API vigil_call *vigil_put(vigil_client *client, vigil_bytes key, vigil_bytes value,
                                int64_t lease);
/* The answer to vigil_put and vigil_put_with. */
VIGIL_API const vigil_put_response *vigil_put_result(const vigil_call *call);

/* -- Delete -- */

/* What to delete. Set all fields with vigil_delete_request_init. */
typedef struct vigil_delete_request {
    size_t size;
    vigil_bytes key, range_end; /* as in vigil_range_request */
    uint8_t prev_kv;            /* return the keys as they were before */
} vigil_delete_request;

/* The answer to a delete. */
typedef struct vigil_delete_response {
    const vigil_header *header;
    int64_t deleted;          /* the number of keys; 0 if there was none */
    const vigil_kv *prev_kvs; /* only if requested */
    size_t prev_kv_count;
} vigil_delete_response;

/* Sets the size and the defaults. */
VIGIL_API void vigil_delete_request_init(vigil_delete_request *request);
/* Deletes a range of keys, with all options. */
VIGIL_API vigil_call *vigil_delete_with(vigil_client *client, const vigil_delete_request *request);
/* Deletes one key. */
VIGIL_API vigil_call *vigil_delete(vigil_client *client, vigil_bytes key);
/* Deletes all keys with the prefix. */
VIGIL_API vigil_call *vigil_delete_prefix(vigil_client *client, vigil_bytes prefix);
/* The answer to vigil_delete, vigil_delete_prefix and vigil_delete_with. */
VIGIL_API const vigil_delete_response *vigil_delete_result(const vigil_call *call);

/* -- Compaction -- */

/* Discards all versions of keys that were replaced at or before a revision. If physical is not 0,
 * the answer waits until their space is free. Watches and reads of older revisions fail afterwards
 * with VIGIL_ERROR_COMPACTED. */
VIGIL_API vigil_call *vigil_compact(vigil_client *client, int64_t revision, int physical);

#ifdef __cplusplus
}
#endif

#endif

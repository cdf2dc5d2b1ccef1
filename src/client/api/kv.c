/* Range, put, delete and compaction as calls. */
#include "client/api/kv.h"
#include "client/api/methods.h"
#include "codec/pb/wire.h"

void kv_request_copy(void *to, size_t to_bytes, const void *request)
{
    size_t size = request ? *(const size_t *)request : 0;
    memset(to, 0, to_bytes);
    if (size > sizeof(size))
        memcpy(to, (const uint8_t *)request + sizeof(size),
               size_min(size - sizeof(size), to_bytes));
}

enum status kv_request_prefix(const struct vigil_client *client, struct slice *key,
                              struct slice *range_end, struct prefixed_range *memory)
{
    TRY(prefix_range(client_prefix(client), *key, *range_end, memory));
    *key = memory->key;
    *range_end = memory->end;
    return ST_OK;
}

/* A call about a range of keys, whose key and end are in the message. */
static vigil_call *range_call(vigil_client *client, enum client_method_id method, void *message,
                              struct slice *key, struct slice *range_end)
{
    AUTO(prefixed_range_fini) struct prefixed_range memory = {0};
    if (kv_request_prefix(client, key, range_end, &memory) != ST_OK)
        return NULL;
    return client_request(client, method, message);
}

vigil_bytes vigil_prefix_end(vigil_bytes prefix, void *buffer)
{
    struct slice end = prefix_end(slice_of_bytes(prefix), buffer);
    return vigil_bytes_of(end.ptr, end.len);
}

/* -- Range -- */

void vigil_range_request_init(vigil_range_request *request)
{
    *request = (vigil_range_request){.size = sizeof(*request)};
}

vigil_call *vigil_range(vigil_client *client, const vigil_range_request *request)
{
    struct pb_range_request message;
    kv_request_copy(&message, sizeof(message), request);
    vigil_call *call = range_call(client, METHOD_RANGE, &message, &message.key, &message.range_end);
    if (call)
        call->alone = message.serializable;
    return call;
}

/*
 * The requests of vigil_get and vigil_put have few fields. They are written here because encoding
 * any request by its table takes a large part of the time of a call to a store in this process.
 */
enum { FIELD_KEY = 1, FIELD_VALUE = 2, FIELD_LEASE = 3 };

/* A key with the client's prefix. An empty one is not encoded, and refused. */
static uint8_t *key_write(uint8_t *to, const struct vigil_client *client, struct slice key)
{
    size_t len = client->prefix.len + key.len;
    if (len == 0)
        return to;
    to = pb_message_head_write(to, FIELD_KEY, len);
    slice_copy(to, client->prefix);
    slice_copy(to + client->prefix.len, key);
    return to + len;
}

/* A call with room for a request of this many bytes. NULL: no memory. */
static struct vigil_call *call_with_room(struct vigil_client *client, enum client_method_id method,
                                         size_t bytes, uint8_t **ret_room)
{
    struct vigil_call *call = client_call_new(client, &client_methods[method]);
    *ret_room = call ? client_call_room(call, bytes) : NULL;
    if (*ret_room)
        return call;
    vigil_call_free(call);
    return NULL;
}

vigil_call *vigil_get(vigil_client *client, vigil_bytes key)
{
    uint8_t *to;
    struct slice rest = slice_of_bytes(key);
    size_t bytes = pb_bytes_size(FIELD_KEY, client_prefix(client).len + rest.len);
    struct vigil_call *call = call_with_room(client, METHOD_RANGE, bytes, &to);
    if (call)
        key_write(to, client, rest);
    return call;
}

vigil_call *vigil_get_prefix(vigil_client *client, vigil_bytes prefix)
{
    struct pb_range_request message = {0};
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    if (prefix_all(client_prefix(client), slice_of_bytes(prefix), &range) != ST_OK)
        return NULL;
    message.key = range.key;
    message.range_end = range.end;
    return client_request(client, METHOD_RANGE, &message);
}

const vigil_range_response *vigil_range_result(const vigil_call *call)
{
    return client_result(call, METHOD_RANGE);
}

/* -- Put -- */

void vigil_put_request_init(vigil_put_request *request)
{
    *request = (vigil_put_request){.size = sizeof(*request)};
}

vigil_call *vigil_put_with(vigil_client *client, const vigil_put_request *request)
{
    struct pb_put_request message;
    struct slice no_end = SLICE_EMPTY;
    kv_request_copy(&message, sizeof(message), request);
    return range_call(client, METHOD_PUT, &message, &message.key, &no_end);
}

vigil_call *vigil_put(vigil_client *client, vigil_bytes key, vigil_bytes value, int64_t lease)
{
    uint8_t *to;
    struct slice rest = slice_of_bytes(key), content = slice_of_bytes(value);
    size_t bytes = pb_bytes_size(FIELD_KEY, client_prefix(client).len + rest.len) +
                   pb_bytes_size(FIELD_VALUE, content.len) +
                   pb_uint_size(FIELD_LEASE, (uint64_t)lease);
    struct vigil_call *call = call_with_room(client, METHOD_PUT, bytes, &to);
    if (!call)
        return NULL;
    to = key_write(to, client, rest);
    to = pb_bytes_write(to, FIELD_VALUE, content);
    pb_uint_write(to, FIELD_LEASE, (uint64_t)lease);
    return call;
}

const vigil_put_response *vigil_put_result(const vigil_call *call)
{
    return client_result(call, METHOD_PUT);
}

/* -- Delete -- */

void vigil_delete_request_init(vigil_delete_request *request)
{
    *request = (vigil_delete_request){.size = sizeof(*request)};
}

vigil_call *vigil_delete_with(vigil_client *client, const vigil_delete_request *request)
{
    struct pb_delete_range_request message;
    kv_request_copy(&message, sizeof(message), request);
    return range_call(client, METHOD_DELETE_RANGE, &message, &message.key, &message.range_end);
}

vigil_call *vigil_delete(vigil_client *client, vigil_bytes key)
{
    vigil_delete_request request = {.size = sizeof(request), .key = key};
    return vigil_delete_with(client, &request);
}

vigil_call *vigil_delete_prefix(vigil_client *client, vigil_bytes prefix)
{
    struct pb_delete_range_request message = {0};
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    if (prefix_all(client_prefix(client), slice_of_bytes(prefix), &range) != ST_OK)
        return NULL;
    message.key = range.key;
    message.range_end = range.end;
    return client_request(client, METHOD_DELETE_RANGE, &message);
}

const vigil_delete_response *vigil_delete_result(const vigil_call *call)
{
    return client_result(call, METHOD_DELETE_RANGE);
}

/* -- Compaction -- */

vigil_call *vigil_compact(vigil_client *client, int64_t revision, int physical)
{
    struct pb_compaction_request message = {.revision = revision, .physical = physical != 0};
    return client_request(client, METHOD_COMPACT, &message);
}

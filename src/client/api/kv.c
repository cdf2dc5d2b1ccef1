/* Range, put, delete and compaction as calls. */
#include "client/api/kv.h"

static void strip_kvs(struct pb_key_value *kvs, size_t count, size_t prefix_len)
{
    for (size_t i = 0; i < count; i++)
        prefix_strip(&kvs[i].key, prefix_len);
}

void kv_strip_range(void *response, size_t prefix_len)
{
    struct pb_range_response *range = response;
    strip_kvs(range->kvs, range->kvs_count, prefix_len);
}

void kv_strip_put(void *response, size_t prefix_len)
{
    struct pb_put_response *put = response;
    strip_kvs(put->prev_kv, put->prev_kv != NULL, prefix_len);
}

void kv_strip_delete(void *response, size_t prefix_len)
{
    struct pb_delete_range_response *removal = response;
    strip_kvs(removal->prev_kvs, removal->prev_kvs_count, prefix_len);
}

static const struct client_method range_method = {
    .path = "/etcdserverpb.KV/Range",
    .response = &pb_range_response_table,
    .reads = true,
    .strip = kv_strip_range,
};
static const struct client_method put_method = {
    .path = "/etcdserverpb.KV/Put",
    .response = &pb_put_response_table,
    .strip = kv_strip_put,
};
static const struct client_method delete_method = {
    .path = "/etcdserverpb.KV/DeleteRange",
    .response = &pb_delete_range_response_table,
    .strip = kv_strip_delete,
};
static const struct client_method compact_method = {
    .path = "/etcdserverpb.KV/Compact",
    .response = &pb_compaction_response_table,
};

void kv_request_copy(void *to, size_t to_bytes, const void *request)
{
    size_t size = *(const size_t *)request;
    memset(to, 0, to_bytes);
    if (size > sizeof(size))
        memcpy(to, (const uint8_t *)request + sizeof(size),
               size_min(size - sizeof(size), to_bytes));
}

enum status kv_request_prefix(const struct vigil_client *client, struct slice *key,
                              struct slice *range_end, struct prefixed_range *memory)
{
    TRY(prefix_range(client->prefix, *key, *range_end, memory));
    *key = memory->key;
    *range_end = memory->end;
    return ST_OK;
}

/* A call about a range of keys, whose key and end are in the message. */
static vigil_call *range_call(vigil_client *client, const struct client_method *method,
                              const struct pb_message *type, void *message, struct slice *key,
                              struct slice *range_end)
{
    AUTO(prefixed_range_fini) struct prefixed_range memory = {0};
    if (kv_request_prefix(client, key, range_end, &memory) != ST_OK)
        return NULL;
    return client_call_with(client_call_new(client, method), type, message);
}

vigil_bytes vigil_prefix_end(vigil_bytes prefix, void *buffer)
{
    struct slice end = prefix_end(kv_slice(prefix), buffer);
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
    return range_call(client, &range_method, &pb_range_request_table, &message, &message.key,
                      &message.range_end);
}

vigil_call *vigil_get(vigil_client *client, vigil_bytes key)
{
    vigil_range_request request = {.size = sizeof(request), .key = key};
    return vigil_range(client, &request);
}

vigil_call *vigil_get_prefix(vigil_client *client, vigil_bytes prefix)
{
    struct pb_range_request message = {0};
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    if (prefix_all(client->prefix, kv_slice(prefix), &range) != ST_OK)
        return NULL;
    message.key = range.key;
    message.range_end = range.end;
    return client_call_with(client_call_new(client, &range_method), &pb_range_request_table,
                            &message);
}

const vigil_range_response *vigil_range_result(const vigil_call *call)
{
    return client_call_response(call, &range_method);
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
    return range_call(client, &put_method, &pb_put_request_table, &message, &message.key, &no_end);
}

vigil_call *vigil_put(vigil_client *client, vigil_bytes key, vigil_bytes value, int64_t lease)
{
    vigil_put_request request = {
        .size = sizeof(request), .key = key, .value = value, .lease = lease};
    return vigil_put_with(client, &request);
}

const vigil_put_response *vigil_put_result(const vigil_call *call)
{
    return client_call_response(call, &put_method);
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
    return range_call(client, &delete_method, &pb_delete_range_request_table, &message,
                      &message.key, &message.range_end);
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
    if (prefix_all(client->prefix, kv_slice(prefix), &range) != ST_OK)
        return NULL;
    message.key = range.key;
    message.range_end = range.end;
    return client_call_with(client_call_new(client, &delete_method), &pb_delete_range_request_table,
                            &message);
}

const vigil_delete_response *vigil_delete_result(const vigil_call *call)
{
    return client_call_response(call, &delete_method);
}

/* -- Compaction -- */

vigil_call *vigil_compact(vigil_client *client, int64_t revision, int physical)
{
    struct pb_compaction_request message = {.revision = revision, .physical = physical != 0};
    return client_call_with(client_call_new(client, &compact_method), &pb_compaction_request_table,
                            &message);
}

#include "client/connect/metadata.h"

#include "base/random.h"
#include "client/connect/connection.h"

#include "wire/grpc/head.h"

#include <stdlib.h>

enum { BYTES_MAX = 8192 }; /* a default of many servers for all header fields */

static struct slice copy_text(uint8_t **at, const char *text)
{
    struct slice copy = slice_of(*at, strlen(text));
    memcpy(*at, text, copy.len);
    *at += copy.len;
    return copy;
}

/* The rules of a request decide. Binary values would have to be encoded, so they are not allowed.
 */
static enum status check(const struct client_metadata *metadata)
{
    AUTO(grpc_head_unrefp) struct grpc_head *head = NULL;
    struct grpc_head_fields fields = {
        .authority = SLICE_LITERAL("localhost"),
        .metadata = metadata->fields,
        .metadata_count = metadata->count,
    };
    struct slice binary = SLICE_LITERAL("-bin");
    for (size_t i = 0; i < metadata->count; i++) {
        struct slice name = metadata->fields[i].name;
        if (name.len >= binary.len &&
            slice_equal(slice_sub(name, name.len - binary.len, binary.len), binary))
            return ST_INVALID;
    }
    return grpc_head_new(&fields, &head);
}

enum status client_metadata_new(const vigil_metadata *fields, size_t count,
                                struct client_metadata **ret_metadata)
{
    size_t bytes = 0;
    *ret_metadata = NULL;
    if (count == 0)
        return ST_OK;
    if (count > CLIENT_METADATA_FIELDS_MAX)
        return ST_LIMIT;
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].name || !fields[i].value)
            return ST_INVALID;
        bytes += strlen(fields[i].name) + strlen(fields[i].value);
        if (bytes > BYTES_MAX)
            return ST_LIMIT;
    }
    struct client_metadata *metadata =
        malloc(sizeof(*metadata) + count * sizeof(metadata->fields[0]) + bytes);
    if (!metadata)
        return ST_NOMEM;
    metadata->count = count;
    uint8_t *at = (uint8_t *)&metadata->fields[count];
    for (size_t i = 0; i < count; i++) {
        metadata->fields[i].name = copy_text(&at, fields[i].name);
        metadata->fields[i].value = copy_text(&at, fields[i].value);
    }
    enum status status = check(metadata);
    if (status != ST_OK)
        free(metadata);
    else
        *ret_metadata = metadata;
    return status;
}

bool client_metadata_equal(const struct client_metadata *a, const struct client_metadata *b)
{
    if (!a || !b)
        return a == b;
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!slice_equal(a->fields[i].name, b->fields[i].name) ||
            !slice_equal(a->fields[i].value, b->fields[i].value))
            return false;
    return true;
}

#define USER_AGENT SLICE_LITERAL("libvigil/1.0.0")

/* etcd's own gateway sends grpcgateway-accept with the calls that it passes on. */
static enum status make_head(const struct connection *connection,
                             const struct client_credentials *credentials,
                             struct grpc_head **ret_head)
{
    struct http_field metadata[3 + CLIENT_METADATA_FIELDS_MAX];
    const struct client_metadata *own = credentials->metadata;
    const struct endpoint *endpoint = connection_endpoint(connection);
    struct grpc_head_fields fields = {
        .secure = connection_is_secure(connection),
        .authority = slice_from_text(endpoint->is_path ? endpoint->host : endpoint->text),
        .user_agent = USER_AGENT,
        .metadata = metadata,
    };
    if (credentials->token.len)
        metadata[fields.metadata_count++] =
            (struct http_field){SLICE_LITERAL("token"), credentials->token};
    if (credentials->via.len)
        metadata[fields.metadata_count++] =
            (struct http_field){SLICE_LITERAL("grpcgateway-accept"), credentials->via};
    if (credentials->require_leader)
        metadata[fields.metadata_count++] =
            (struct http_field){SLICE_LITERAL("hasleader"), SLICE_LITERAL("true")};
    for (size_t i = 0; own && i < own->count; i++)
        metadata[fields.metadata_count++] = own->fields[i];
    return grpc_head_new(&fields, ret_head);
}

/* Metadata of the program's own and calls that others have passed on are rare, so their heads are
 * not kept. */
enum status client_heads_find(struct client_heads *heads, const struct connection *connection,
                              const struct client_credentials *credentials,
                              struct grpc_head **ret_head)
{
    struct grpc_head **kept = &heads->own[credentials->require_leader];
    if (credentials->metadata || (credentials->via.len && !credentials->is_usual))
        return make_head(connection, credentials, ret_head);
    if (credentials->via.len) {
        /* A server that passes on the calls of many users needs one head for each of them. */
        struct slice token = credentials->token;
        if (!heads->callers)
            heads->callers = grpc_head_cache_new(random_seed_system());
        if (!heads->callers)
            return ST_NOMEM;
        if (grpc_head_cache_get(heads->callers, token, credentials->require_leader, ret_head))
            return ST_OK;
        TRY(make_head(connection, credentials, ret_head));
        grpc_head_cache_put(heads->callers, token, credentials->require_leader, *ret_head);
        return ST_OK;
    }
    if (!*kept)
        TRY(make_head(connection, credentials, kept));
    grpc_head_ref(*kept);
    *ret_head = *kept;
    return ST_OK;
}

void client_heads_drop(struct client_heads *heads)
{
    for (size_t i = 0; i < COUNT_OF(heads->own); i++)
        grpc_head_unref(TAKE(heads->own[i]));
    grpc_head_cache_free(TAKE(heads->callers));
}

#include "tier/forward/head.h"

#include "base/buf.h"
#include "wire/http/query.h"

/* All values of Connection together. Each name in them is compared with each field. */
enum { CONNECTION_BYTES_MAX = 512 };

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_name_equal(name, slice_from_text(names[i])))
            return true;
    return false;
}

static bool has_prefix(struct slice name, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    return name.len >= start.len && http_name_equal(slice_sub(name, 0, start.len), start);
}

/* -- Fields of a connection -- */

struct fields {
    const struct http_field *at;
    size_t count;
};

static bool is_connection_readable(struct fields fields)
{
    size_t bytes = 0;
    for (size_t i = 0; i < fields.count; i++)
        if (http_name_equal(fields.at[i].name, SLICE_LITERAL("connection")))
            bytes += fields.at[i].value.len;
    return bytes <= CONNECTION_BYTES_MAX;
}

/* Connection names the field. */
static bool is_listed(struct fields fields, struct slice name)
{
    for (size_t i = 0; i < fields.count; i++) {
        struct slice rest = fields.at[i].value;
        if (!http_name_equal(fields.at[i].name, SLICE_LITERAL("connection")))
            continue;
        while (rest.len)
            if (http_name_equal(slice_trim(slice_cut(&rest, ',')), name))
                return true;
    }
    return false;
}

static bool is_for_one_connection(struct fields fields, struct slice name)
{
    static const char *const names[] = {"connection",
                                        "keep-alive",
                                        "proxy-connection",
                                        "proxy-authenticate",
                                        "proxy-authorization",
                                        "te",
                                        "trailer",
                                        "transfer-encoding",
                                        "upgrade"};
    return is_one_of(name, names, COUNT_OF(names)) || is_listed(fields, name);
}

/* -- The request -- */

/* "Expect" is answered here, and Host is the kube-apiserver's. */
static bool is_passed_on(struct fields fields, struct slice name, bool drop_credentials)
{
    static const char *const ours[] = {"host", "content-length", "expect", "x-forwarded-for"};
    if (!name.len || name.ptr[0] == ':' || has_prefix(name, "x-remote-"))
        return false;
    if (drop_credentials &&
        (http_name_equal(name, SLICE_LITERAL("authorization")) || has_prefix(name, "impersonate-")))
        return false;
    return !is_one_of(name, ours, COUNT_OF(ours)) && !is_for_one_connection(fields, name);
}

/* Without its port and brackets. Empty: the client has no address. */
static struct slice address_of(const struct http_request *request,
                               char text[static WIRE_ADDRESS_BYTES])
{
    text[0] = 0;
    if (request->peer.address)
        request->peer.address(request->peer.owner, text);
    char *end = text[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
    if (!end)
        return SLICE_EMPTY;
    const char *begin = text[0] == '[' ? text + 1 : text;
    return slice_of(begin, (size_t)(end - begin));
}

static enum status forwarded_for(struct arena *arena, const struct http_request *request,
                                 struct http_field *field)
{
    char text[WIRE_ADDRESS_BYTES];
    struct slice address = address_of(request, text);
    AUTO(buf_fini) struct buf list = {0};
    for (size_t i = 0; i < request->field_count; i++) {
        if (!http_name_equal(request->fields[i].name, SLICE_LITERAL("x-forwarded-for")))
            continue;
        TRY(buf_append(&list, request->fields[i].value));
        TRY(buf_append(&list, SLICE_LITERAL(", ")));
    }
    TRY(buf_append(&list, address));
    if (!address.len && list.len)
        list.len -= 2;
    field->name = SLICE_LITERAL("X-Forwarded-For");
    return arena_dup(arena, buf_slice(&list), &field->value);
}

static enum status add_fields(struct arena *arena, const struct http_request *request,
                              const struct tier_head_options *options, struct tier_head *head)
{
    struct fields all = {request->fields, request->field_count};
    if (!is_connection_readable(all))
        return ST_INVALID;
    head->fields =
        arena_calloc(arena, request->field_count + options->add_count + 1, sizeof(*head->fields));
    if (!head->fields)
        return ST_NOMEM;
    for (size_t i = 0; i < request->field_count; i++)
        if (is_passed_on(all, request->fields[i].name, options->drop_credentials))
            head->fields[head->field_count++] = request->fields[i];
    for (size_t i = 0; i < options->add_count; i++)
        head->fields[head->field_count++] = options->add[i];
    struct http_field *client = &head->fields[head->field_count];
    TRY(forwarded_for(arena, request, client));
    head->field_count += client->value.len > 0;
    return ST_OK;
}

/* Below the prefix of a server that has more than one API, a path must not lead out of it. */
static bool leads_out(struct slice path)
{
    while (path.len) {
        struct slice segment = slice_cut(&path, '/');
        if (slice_is(segment, ".."))
            return true;
    }
    return false;
}

/* The part of a target behind the host, which it has if it is meant for a proxy. */
static bool cut_target(struct slice target, struct slice *ret_rest)
{
    if (target.len && target.ptr[0] != '/') {
        const uint8_t *scheme = memmem(target.ptr, target.len, "://", 3);
        if (!scheme)
            return false;
        size_t host = (size_t)(scheme - target.ptr) + 3;
        target = slice_sub(target, host, target.len - host);
        const uint8_t *slash = target.len ? memchr(target.ptr, '/', target.len) : NULL;
        if (!slash)
            return false;
        target = slice_sub(target, (size_t)(slash - target.ptr),
                           target.len - (size_t)(slash - target.ptr));
    }
    *ret_rest = target;
    return target.len > 0;
}

static enum status make_target(struct arena *arena, const struct http_request *request,
                               struct slice prefix, struct slice *ret_target)
{
    struct slice rest;
    if (!cut_target(request->target, &rest) || (prefix.len && leads_out(request->path)))
        return ST_INVALID;
    uint8_t *bytes = arena_alloc(arena, prefix.len + rest.len);
    if (!bytes)
        return ST_NOMEM;
    slice_copy(bytes, prefix);
    slice_copy(bytes + prefix.len, rest);
    *ret_target = slice_of(bytes, prefix.len + rest.len);
    return ST_OK;
}

static bool is_true(struct slice query, const char *name, struct buf *scratch)
{
    struct slice value;
    return http_query_get(query, slice_from_text(name), scratch, &value) &&
           (slice_is(value, "true") || slice_is(value, "1"));
}

static enum status read_query(struct slice query, bool *ret_lasts)
{
    AUTO(buf_fini) struct buf scratch = {0};
    TRY(buf_reserve(&scratch, query.len + 1));
    *ret_lasts = is_true(query, "watch", &scratch) || is_true(query, "follow", &scratch);
    return ST_OK;
}

enum status tier_head_make(struct arena *arena, const struct http_request *request,
                           const struct tier_head_options *options, struct tier_head *ret_head)
{
    struct tier_head head = {.body_bytes = TIER_BYTES_UNKNOWN};
    struct slice length, upgrade;
    uint64_t bytes;
    TRY(make_target(arena, request, options->path_prefix, &head.target));
    TRY(add_fields(arena, request, options, &head));
    TRY(read_query(request->query, &head.lasts));
    if (http_request_get(request, SLICE_LITERAL("content-length"), &length) &&
        slice_decimal(length, &bytes) && bytes <= INT64_MAX) {
        head.has_body = true;
        head.body_bytes = (int64_t)bytes;
    }
    head.has_body |= request->has_body;
    /* HTTP/2 without TLS ends at this server. */
    if (request->upgrade && http_request_get(request, SLICE_LITERAL("upgrade"), &upgrade) &&
        !http_name_equal(upgrade, SLICE_LITERAL("h2c"))) {
        head.upgrade = upgrade;
        head.has_body = false;
    }
    *ret_head = head;
    return ST_OK;
}

/* -- The answer -- */

enum status tier_head_answer(struct http_exchange *x, bool upgraded,
                             const struct http_field *fields, size_t count, int64_t *ret_bytes)
{
    struct fields all = {fields, count};
    uint64_t bytes;
    *ret_bytes = TIER_BYTES_UNKNOWN;
    if (!is_connection_readable(all))
        return ST_INVALID;
    if (upgraded)
        TRY(http_add_field(x, SLICE_LITERAL("Connection"), SLICE_LITERAL("Upgrade")));
    for (size_t i = 0; i < count; i++) {
        struct slice name = fields[i].name, value = fields[i].value;
        bool is_length = http_name_equal(name, SLICE_LITERAL("content-length"));
        bool is_upgrade = upgraded && http_name_equal(name, SLICE_LITERAL("upgrade"));
        if (is_length && slice_decimal(value, &bytes) && bytes <= INT64_MAX)
            *ret_bytes = (int64_t)bytes;
        if (is_upgrade || (!is_length && !is_for_one_connection(all, name)))
            TRY(http_add_field(x, name, value));
    }
    return ST_OK;
}

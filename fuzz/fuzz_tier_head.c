/*
 * Input: a byte of options, and the head of a request of HTTP/1.1. What the watch tier sends on of
 * it names no other user and belongs to no connection.
 */
#include "cost.h"

#include "tier/forward/head.h"
#include "wire/http/http1/parser.h"

#include <assert.h>

static const struct http_field own[] = {
    {SLICE_LITERAL("authorization"), SLICE_LITERAL("Bearer tier")},
    {SLICE_LITERAL("impersonate-user"), SLICE_LITERAL("jane")},
};

static bool has_prefix(struct slice name, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    return name.len >= start.len && http_name_equal(slice_sub(name, 0, start.len), start);
}

static void check_field(const struct http_field *field, const struct tier_head_options *options)
{
    static const char *const never[] = {"host",    "content-length",    "connection", "keep-alive",
                                        "upgrade", "transfer-encoding", "te",         "expect"};
    for (size_t i = 0; i < COUNT_OF(never); i++)
        assert(!http_name_equal(field->name, slice_from_text(never[i])));
    assert(!has_prefix(field->name, "x-remote-"));
    assert(http1_is_token(field->name) && http1_is_field_value(field->value));
    bool is_ours = false;
    for (size_t i = 0; i < options->add_count; i++)
        is_ours |= field->value.ptr == options->add[i].value.ptr;
    assert(is_ours || !options->drop_credentials ||
           (!http_name_equal(field->name, SLICE_LITERAL("authorization")) &&
            !has_prefix(field->name, "impersonate-")));
}

FUZZ_INPUT(.steps_per_byte = 3000)
{
    struct http1_head head;
    struct tier_head made;
    struct arena arena;
    if (!size)
        return 0;
    struct tier_head_options options = {
        .path_prefix = data[0] & 1 ? SLICE_LITERAL("/clusters/c-1") : SLICE_EMPTY,
        .add = own,
        .add_count = data[0] & 2 ? COUNT_OF(own) : 0,
        .drop_credentials = data[0] & 2,
    };
    if (http1_head_parse(slice_of(data + 1, size - 1), HTTP1_FIELDS_MAX, &head))
        return 0;
    arena_init(&arena, NULL, 0, 1 << 20);
    enum status status = tier_head_make(&arena, &head.request, &options, &made);
    assert(status == ST_OK || status == ST_INVALID || status == ST_NOMEM);
    if (status == ST_OK) {
        assert(slice_has_prefix(made.target, options.path_prefix));
        assert(made.target.len > options.path_prefix.len &&
               made.target.ptr[options.path_prefix.len] == '/');
        for (size_t i = 0; i < made.field_count; i++)
            check_field(&made.fields[i], &options);
    }
    arena_fini(&arena);
    return 0;
}

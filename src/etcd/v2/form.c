#include "etcd/v2/form.h"

#include "wire/http/query.h"

static const struct v2_fault no_memory = {V2_RAFT_INTERNAL, "out of memory"};

struct form_reader {
    struct slice body, query;
    struct buf scratch;
};

static bool get(struct form_reader *r, const char *name, struct slice *ret_value)
{
    return http_query_get(r->body, slice_from_text(name), &r->scratch, ret_value) ||
           http_query_get(r->query, slice_from_text(name), &r->scratch, ret_value);
}

/* False: it was given and is not a number. */
static bool get_u64(struct form_reader *r, const char *name, uint64_t *ret_number)
{
    struct slice text;
    uint64_t number = 0;
    if (!get(r, name, &text))
        return true;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, c - '0', &number))
            return false;
    }
    *ret_number = number;
    return text.len > 0;
}

/* Like Go's strconv.ParseBool. False: it was given and is not a boolean. */
static bool get_bool(struct form_reader *r, const char *name, enum v2_given *ret_given)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    struct slice text;
    *ret_given = V2_NOT_GIVEN;
    if (!get(r, name, &text))
        return true;
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        if (slice_is(text, yes[i]))
            *ret_given = V2_GIVEN_TRUE;
        else if (slice_is(text, no[i]))
            *ret_given = V2_GIVEN_FALSE;
    }
    return *ret_given != V2_NOT_GIVEN;
}

static struct v2_fault read_flags(struct form_reader *r, bool is_get, struct v2_form *form)
{
    bool ignored;
    const struct {
        const char *name, *fault;
        bool *to;
    } flags[] = {
        {"recursive", "invalid value for \"recursive\"", &form->recursive},
        {"sorted", "invalid value for \"sorted\"", &ignored},
        {"wait", "invalid value for \"wait\"", &form->wait},
        {"dir", "invalid value for \"dir\"", &form->dir},
        {"quorum", "invalid value for \"quorum\"", &ignored},
        {"stream", "invalid value for \"stream\"", &form->stream},
    };
    enum v2_given given;
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        if (!get_bool(r, flags[i].name, &given))
            return (struct v2_fault){V2_INVALID_FIELD, flags[i].fault};
        *flags[i].to = given == V2_GIVEN_TRUE;
    }
    if (form->wait && !is_get)
        return (struct v2_fault){V2_INVALID_FIELD, "\"wait\" can only be used with GET requests"};
    return (struct v2_fault){0};
}

static struct v2_fault read_refresh(struct form_reader *r, struct v2_form *form)
{
    enum v2_given given;
    struct slice text;
    if (!get_bool(r, "refresh", &given))
        return (struct v2_fault){V2_INVALID_FIELD, "invalid value for refresh"};
    form->refresh = given == V2_GIVEN_TRUE;
    if (!form->refresh)
        return (struct v2_fault){0};
    if (get(r, "value", &text) && text.len)
        return (struct v2_fault){V2_REFRESH_VALUE, "A value was provided on a refresh"};
    if (!form->has_ttl)
        return (struct v2_fault){V2_REFRESH_TTL_REQUIRED, "No TTL value set"};
    return (struct v2_fault){0};
}

static struct v2_fault read_all(struct form_reader *r, bool is_get, struct arena *arena,
                                struct v2_form *form)
{
    struct slice text;
    enum v2_given given;
    if (!get_u64(r, "prevIndex", &form->prev_index))
        return (struct v2_fault){V2_INDEX_NAN, "invalid value for \"prevIndex\""};
    if (!get_u64(r, "waitIndex", &form->wait_index))
        return (struct v2_fault){V2_INDEX_NAN, "invalid value for \"waitIndex\""};
    struct v2_fault fault = read_flags(r, is_get, form);
    if (fault.code)
        return fault;
    if (get(r, "prevValue", &text)) {
        if (!text.len)
            return (struct v2_fault){V2_PREV_VALUE_REQUIRED, "\"prevValue\" cannot be empty"};
        if (arena_dup(arena, text, &form->prev_value) != ST_OK)
            return no_memory;
    }
    if (!get_bool(r, "noValueOnSuccess", &given))
        return (struct v2_fault){V2_INVALID_FIELD, "invalid value for \"noValueOnSuccess\""};
    form->no_value_on_success = given == V2_GIVEN_TRUE;
    form->has_ttl = get(r, "ttl", &text) && text.len;
    if (form->has_ttl && !get_u64(r, "ttl", &form->ttl_s))
        return (struct v2_fault){V2_TTL_NAN, "invalid value for \"ttl\""};
    if (!get_bool(r, "prevExist", &form->prev_exist))
        return (struct v2_fault){V2_INVALID_FIELD, "invalid value for prevExist"};
    fault = read_refresh(r, form);
    if (!fault.code && get(r, "value", &text) && arena_dup(arena, text, &form->value) != ST_OK)
        return no_memory;
    return fault;
}

bool v2_form_has_body(const struct http_request *request)
{
    return slice_is(request->method, "PUT") || slice_is(request->method, "POST");
}

struct v2_fault v2_form_read(const struct http_request *request, struct arena *arena,
                             struct v2_form *ret_form)
{
    struct form_reader r = {.query = request->query};
    struct slice type;
    if (v2_form_has_body(request) &&
        http_request_get(request, SLICE_LITERAL("Content-Type"), &type) &&
        slice_has_prefix(type, SLICE_LITERAL("application/x-www-form-urlencoded")))
        r.body = request->body;
    *ret_form = (struct v2_form){0};
    /* Room for any pair, so that no condition is missed because memory runs out later. */
    if (buf_reserve(&r.scratch, size_max(r.body.len, r.query.len) + 1) != ST_OK)
        return no_memory;
    bool is_get = slice_is(request->method, "GET");
    struct v2_fault fault = read_all(&r, is_get, arena, ret_form);
    buf_fini(&r.scratch);
    return fault;
}

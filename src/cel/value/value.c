#include "cel/value/value.h"

#include "cel/value/memo.h"
#include "cel/value/opaque.h"
#include "codec/json/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char cel_no_overload[] = "no such overload";

enum { NUMBER_BYTES_MAX = 400, SHORT_DIGITS_MAX = 18 };

struct cel_value cel_of_error_format(struct cel_work *work, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : arena_alloc(work->arena, (size_t)length + 1);
    if (!text)
        return CEL_NO_MEMORY;
    work->steps_left -= length / 64;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return cel_of_error(slice_of(text, (size_t)length));
}

/* False: the number is long, or has a fraction or an exponent. */
static bool read_short(struct slice text, int64_t *ret_integer)
{
    bool negative = text.ptr[0] == '-';
    int64_t magnitude = 0;
    if (text.len > SHORT_DIGITS_MAX)
        return false;
    for (size_t i = negative; i < text.len; i++) {
        unsigned digit = (unsigned)text.ptr[i] - '0';
        if (digit > 9)
            return false;
        magnitude = 10 * magnitude + digit;
    }
    *ret_integer = negative ? -magnitude : magnitude;
    return true;
}

void cel_end(struct cel_work *work, struct cel_value error)
{
    struct cel_value *end = arena_alloc(work->arena, sizeof(*end));
    if (end && !work->end) {
        *end = error;
        work->end = end;
    }
    cel_work_stop(work);
}

/* A number without fraction and exponent is an integer, as in Kubernetes' JSON. */
NEVER_INLINE static struct cel_value of_number(struct slice text)
{
    int64_t integer;
    char copy[NUMBER_BYTES_MAX];
    bool is_integer = !memchr(text.ptr, '.', text.len) && !memchr(text.ptr, 'e', text.len) &&
                      !memchr(text.ptr, 'E', text.len);
    if (is_integer && json_number_i64(text, &integer))
        return cel_of_int(integer);
    /* Digits behind these do not change the nearest double, unless it is beyond all of them. */
    size_t len = size_min(text.len, sizeof(copy) - 1);
    slice_copy(copy, slice_sub(text, 0, len));
    copy[len] = 0;
    return cel_of_double(strtod(copy, NULL));
}

NEVER_INLINE static struct cel_value of_text(struct cel_work *work, const struct json_node *node)
{
    struct slice text;
    return cel_memo_text(work, node, &text) == ST_OK ? cel_of_string(text) : CEL_NO_MEMORY;
}

struct cel_value cel_of_json(struct cel_work *work, const struct json_node *node)
{
    int64_t integer;
    switch ((enum json_type)node->type) {
    case JSON_TYPE_NULL:
        break;
    case JSON_TYPE_BOOL:
        return cel_of_bool(node->truth);
    case JSON_TYPE_NUMBER:
        if (read_short(node->text, &integer))
            return cel_of_int(integer);
        work->steps_left -= (int64_t)(node->text.len / 64);
        return of_number(node->text);
    case JSON_TYPE_STRING:
        return node->escaped ? of_text(work, node) : cel_of_string(node->text);
    case JSON_TYPE_ARRAY:
        return (struct cel_value){
            .kind = CEL_LIST, .is_view = true, .count = node->count, .node = node};
    case JSON_TYPE_OBJECT:
        return (struct cel_value){
            .kind = CEL_MAP, .is_view = true, .count = node->count, .node = node};
    }
    return (struct cel_value){.kind = CEL_NULL};
}

struct cel_value cel_of_some(struct cel_work *work, struct cel_value value)
{
    struct cel_value *some = arena_alloc(work->arena, sizeof(*some));
    if (!some)
        return CEL_NO_MEMORY;
    *some = value;
    return (struct cel_value){.kind = CEL_OPTIONAL, .some = some};
}

const struct cel_type *cel_value_type(struct cel_value value)
{
    if (value.kind == CEL_OPAQUE && value.opaque->ops->type_of)
        return value.opaque->ops->type_of(value.opaque);
    if (value.kind == CEL_OPAQUE)
        return value.opaque->ops->type;
    static const struct cel_type *const types[] = {
        [CEL_ERROR] = &cel_type_ERROR,       [CEL_NULL] = &cel_type_NULL,
        [CEL_BOOL] = &cel_type_BOOL,         [CEL_INT] = &cel_type_INT,
        [CEL_UINT] = &cel_type_UINT,         [CEL_DOUBLE] = &cel_type_DOUBLE,
        [CEL_STRING] = &cel_type_STRING,     [CEL_BYTES] = &cel_type_BYTES,
        [CEL_DURATION] = &cel_type_DURATION, [CEL_TIMESTAMP] = &cel_type_TIMESTAMP,
        [CEL_LIST] = &cel_type_LIST_A,       [CEL_MAP] = &cel_type_MAP_A_B,
        [CEL_TYPE_VALUE] = &cel_type_TYPE,   [CEL_OPTIONAL] = &cel_type_OPTIONAL_TYPE_V,
    };
    return types[value.kind];
}

const char *cel_value_type_name(struct cel_value value)
{
    return cel_value_type(value)->name;
}

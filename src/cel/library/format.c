#include "cel/library/format.h"

#include "cel/check/clause.h"
#include "cel/library/convert.h"
#include "cel/library/number_text.h"
#include "cel/library/writer.h"
#include "cel/value/container.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_BYTES_MAX = 400, DEPTH_MAX = 1000 };

#define DURING "error during formatting: "

struct formatter {
    struct cel_writer to;
    struct cel_value error; /* CEL_NULL: none so far */
};

static bool refuse(struct formatter *f, struct cel_value error)
{
    f->error = error;
    return false;
}

/* -- %s -- */

static bool write_within(struct formatter *f, struct cel_value value, int depth);

static bool write_converted(struct formatter *f, struct cel_value value)
{
    struct cel_work *work = f->to.work;
    struct cel_value text = value.kind == CEL_TYPE_VALUE
                                ? cel_of_string(slice_from_text(value.type->name))
                                : cel_to_string(work, &value);
    if (cel_is_error(text))
        return refuse(f, cel_of_error_format(work, DURING "could not convert argument %s to string",
                                             cel_quoted(work, cel_text(text))));
    cel_write(&f->to, cel_text(text));
    return true;
}

static bool write_list(struct formatter *f, struct cel_value list, int depth)
{
    struct cel_walk walk;
    struct cel_value index, item;
    cel_write_text(&f->to, "[");
    cel_walk_init(&walk, f->to.work, list);
    while (!f->to.failed && cel_walk_next(&walk, &index, &item)) {
        if (index.i64)
            cel_write_text(&f->to, ", ");
        if (!write_within(f, item, depth + 1))
            return false;
    }
    cel_write_text(&f->to, "]");
    return true;
}

/* An entry of a map with the text of its key, by which the entries are sorted. */
struct entry {
    struct slice key;
    struct cel_value value;
};

static int compare_entries(const void *a, const void *b)
{
    return slice_compare(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static struct slice text_of_key(struct cel_work *work, struct cel_value key)
{
    struct cel_value text = cel_to_string(work, &key);
    return key.kind == CEL_STRING ? slice_from_text(cel_quoted(work, cel_text(text)))
                                  : cel_text(text);
}

static bool write_map(struct formatter *f, struct cel_value map, int depth)
{
    struct cel_walk walk;
    struct cel_value key, value;
    struct entry *entries = arena_calloc(f->to.work->arena, map.count + 1, sizeof(*entries));
    uint32_t count = 0;
    if (!entries)
        return refuse(f, CEL_NO_MEMORY);
    cel_walk_init(&walk, f->to.work, map);
    while (cel_walk_next(&walk, &key, &value))
        entries[count++] = (struct entry){text_of_key(f->to.work, key), value};
    f->to.work->steps_left -= map.count;
    qsort(entries, count, sizeof(*entries), compare_entries);
    cel_write_text(&f->to, "{");
    for (uint32_t i = 0; i < count && !f->to.failed; i++) {
        if (i)
            cel_write_text(&f->to, ", ");
        cel_write(&f->to, entries[i].key);
        cel_write_text(&f->to, ":");
        if (!write_within(f, entries[i].value, depth + 1))
            return false;
    }
    cel_write_text(&f->to, "}");
    return true;
}

/* A value in a list or map, as it could be written in an expression. */
static bool write_within(struct formatter *f, struct cel_value value, int depth)
{
    struct cel_work *work = f->to.work;
    char number[NUMBER_BYTES_MAX];
    struct cel_value text;
    work->steps_left--;
    if (depth > DEPTH_MAX)
        return refuse(f, CEL_TOO_MUCH_WORK);
    switch ((enum cel_value_kind)value.kind) {
    case CEL_STRING:
        cel_write_quoted(&f->to, cel_text(value));
        return true;
    case CEL_BYTES:
        text = cel_to_string(work, &value);
        if (cel_is_error(text))
            return write_converted(f, value);
        cel_write_text(&f->to, "b");
        cel_write_quoted(&f->to, cel_text(text));
        return true;
    case CEL_DURATION:
    case CEL_TIMESTAMP:
        cel_write_text(&f->to, value.kind == CEL_DURATION ? "duration(" : "timestamp(");
        cel_write_quoted(&f->to, cel_text(cel_to_string(work, &value)));
        cel_write_text(&f->to, ")");
        return true;
    case CEL_DOUBLE:
        if (isnan(value.number))
            snprintf(number, sizeof(number), "\"NaN\"");
        else if (isinf(value.number))
            snprintf(number, sizeof(number), "\"%cInf\"", value.number > 0 ? '+' : '-');
        else
            snprintf(number, sizeof(number), "%.6f", value.number);
        cel_write_text(&f->to, number);
        return true;
    case CEL_NULL:
        cel_write_text(&f->to, "null");
        return true;
    case CEL_LIST:
        return write_list(f, value, depth);
    case CEL_MAP:
        return write_map(f, value, depth);
    case CEL_OPTIONAL:
    case CEL_OPAQUE:
        return refuse(f, cel_of_error_format(work, DURING "no formatting function for %s",
                                             cel_value_type_name(value)));
    default:
        return write_converted(f, value);
    }
}

/* -- The other clauses -- */

/* A number in a base that is a power of two. */
static void write_bits(struct formatter *f, struct cel_value value, unsigned bits, bool is_upper)
{
    const char *digits = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[66];
    size_t at = sizeof(text);
    bool negative = value.kind == CEL_INT && value.i64 < 0;
    uint64_t number = negative ? 0 - (uint64_t)value.i64 : value.u64;
    do
        text[--at] = digits[number & ((1u << bits) - 1)];
    while (number >>= bits);
    if (negative)
        text[--at] = '-';
    cel_write(&f->to, slice_of(text + at, sizeof(text) - at));
}

static void write_hex(struct formatter *f, struct slice bytes, bool is_upper)
{
    char text[3];
    for (size_t i = 0; i < bytes.len && !f->to.failed; i++) {
        if (i % 16 == 0)
            f->to.work->steps_left--;
        snprintf(text, sizeof(text), is_upper ? "%02X" : "%02x", bytes.ptr[i]);
        cel_write_text(&f->to, text);
    }
}

/* %f and %e also accept the names of numbers that have no digits. */
static bool as_number(struct cel_value value, double *ret_number)
{
    *ret_number = value.number;
    if (value.kind == CEL_DOUBLE)
        return true;
    struct slice text = cel_text(value);
    *ret_number = slice_is(text, "NaN") ? (double)NAN : (double)INFINITY;
    if (slice_is(text, "-Infinity"))
        *ret_number = -(double)INFINITY;
    return slice_is(text, "NaN") || slice_is(text, "Infinity") || slice_is(text, "-Infinity");
}

static bool write_clause(struct formatter *f, const struct cel_clause *clause,
                         struct cel_value value)
{
    const struct cel_type *type = cel_value_type(value);
    double number = 0;
    bool is_double = clause->verb == 'f' || clause->verb == 'e';
    if (!cel_clause_accepts(clause->verb, type) || (is_double && !as_number(value, &number)))
        return refuse(f, cel_of_error(cel_clause_refusal(f->to.work->arena, clause->verb, type)));
    switch (clause->verb) {
    case 's':
        if (value.kind == CEL_LIST)
            return write_list(f, value, 0);
        if (value.kind == CEL_MAP)
            return write_map(f, value, 0);
        if (value.kind == CEL_NULL)
            return write_within(f, value, 0);
        return write_converted(f, value);
    case 'd':
        return write_converted(f, value);
    case 'f':
        cel_write_fixed(&f->to, number, clause->has_precision ? clause->precision : 6);
        return true;
    case 'e':
        cel_write_scientific(&f->to, number, clause->has_precision ? clause->precision : 6);
        return true;
    case 'b':
        if (value.kind == CEL_BOOL)
            cel_write_text(&f->to, value.truth ? "1" : "0");
        else
            write_bits(f, value, 1, false);
        return true;
    case 'o':
        write_bits(f, value, 3, false);
        return true;
    default:
        if (value.kind == CEL_STRING || value.kind == CEL_BYTES)
            write_hex(f, cel_text(value), clause->verb == 'X');
        else
            write_bits(f, value, 4, clause->verb == 'X');
        return true;
    }
}

static struct cel_value format(struct cel_work *work, const struct cel_value *args)
{
    struct slice rest, text, fault;
    struct cel_clause clause;
    enum cel_part part;
    uint32_t index = 0;
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    struct formatter f = {.to = {.work = work}, .error = {.kind = CEL_NULL}};
    rest = cel_text(args[0]);
    while (!f.to.failed && (part = cel_format_next(&rest, &text)) != CEL_PART_END) {
        work->steps_left--;
        if (part == CEL_PART_TEXT) {
            cel_write(&f.to, text);
            continue;
        }
        if (!cel_clause_read(work->arena, rest, index, args[1].count, &clause, &fault))
            return cel_of_error(fault);
        if (!write_clause(&f, &clause, cel_list_at(work, args[1], index++)))
            return f.error;
        rest = slice_sub(rest, clause.length, rest.len - clause.length);
    }
    return cel_written(&f.to);
}

static uint64_t cost_of_format(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return cel_cost_traversal(cel_cost_size(call->args[0]));
}

static const struct cel_builtin rows[] = {
    {"format", 2, format, true, 0, cost_of_format},
};

const struct cel_library cel_formats = CEL_LIBRARY(rows);

#include "cel/library/places.h"

#include "cel/library/strings.h"
#include "cel/value/container.h"
#include "codec/utf8.h"

static bool are_strings(const struct cel_value *args)
{
    return args[0].kind == CEL_STRING && args[1].kind == CEL_STRING;
}

/* -- Lists -- */

static struct cel_value find_item(struct cel_work *work, const struct cel_value *args, bool last)
{
    struct cel_walk walk;
    struct cel_value index, item, found = cel_of_int(-1);
    cel_walk_init(&walk, work, args[0]);
    while (work->steps_left >= 0 && (last || found.i64 < 0) && cel_walk_next(&walk, &index, &item))
        if (cel_is_true(cel_equal(work, item, args[1])))
            found = index;
    return found;
}

/* -- Strings -- */

struct search {
    struct slice text, part;
};

static bool prepare(struct cel_work *work, const struct cel_value *args, struct search *ret_search)
{
    return cel_valid_text(work, cel_text(args[0]), &ret_search->text) &&
           cel_valid_text(work, cel_text(args[1]), &ret_search->part);
}

static struct cel_value index_from(struct cel_work *work, const struct cel_value *args,
                                   int64_t from)
{
    struct search s;
    size_t begin;
    if (!args[1].length)
        return cel_of_int(from);
    if (from < 0)
        return CEL_OUT_OF_RANGE(work, from);
    if (!prepare(work, args, &s))
        return CEL_NO_MEMORY;
    if (!cel_find_character(s.text, from, &begin) || begin == s.text.len)
        return cel_of_int(-1);
    const uint8_t *found = memmem(s.text.ptr + begin, s.text.len - begin, s.part.ptr, s.part.len);
    if (!found)
        return cel_of_int(-1);
    size_t before = (size_t)(found - s.text.ptr) - begin;
    return cel_of_int(from + (int64_t)utf8_count(slice_sub(s.text, begin, before)));
}

static struct cel_value index_of(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind == CEL_LIST)
        return find_item(work, args, false);
    return are_strings(args) ? index_from(work, args, 0) : CEL_NO_OVERLOAD;
}

static struct cel_value index_of_from(struct cel_work *work, const struct cel_value *args)
{
    return (are_strings(args) && args[2].kind == CEL_INT) ? index_from(work, args, args[2].i64)
                                                          : CEL_NO_OVERLOAD;
}

/* The last occurrence that begins at or before a place. Every attempt counts as work, because
 * similar texts take long. */
static struct cel_value search_backwards(struct cel_work *work, const struct search *s, size_t at)
{
    at = size_min(at, s->text.len - s->part.len);
    while (work->steps_left >= 0) {
        work->steps_left--;
        if (s->text.ptr[at] == s->part.ptr[0]) {
            work->steps_left -= (int64_t)(s->part.len / 64);
            if (memcmp(s->text.ptr + at, s->part.ptr, s->part.len) == 0)
                return cel_of_int((int64_t)utf8_count(slice_sub(s->text, 0, at)));
        }
        if (at-- == 0)
            return cel_of_int(-1);
    }
    return CEL_TOO_MUCH_WORK;
}

static struct cel_value last_index_of(struct cel_work *work, const struct cel_value *args)
{
    struct search s;
    if (args[0].kind == CEL_LIST)
        return find_item(work, args, true);
    if (!are_strings(args))
        return CEL_NO_OVERLOAD;
    if (!prepare(work, args, &s))
        return CEL_NO_MEMORY;
    if (!s.part.len)
        return cel_of_int((int64_t)utf8_count(s.text));
    if (args[0].length < args[1].length)
        return cel_of_int(-1);
    return s.text.len < s.part.len ? cel_of_int(-1) : search_backwards(work, &s, s.text.len);
}

static struct cel_value last_index_of_from(struct cel_work *work, const struct cel_value *args)
{
    struct search s;
    size_t at;
    if (!are_strings(args) || args[2].kind != CEL_INT)
        return CEL_NO_OVERLOAD;
    if (!args[1].length)
        return args[2];
    if (args[2].i64 < 0)
        return CEL_OUT_OF_RANGE(work, args[2].i64);
    if (!prepare(work, args, &s))
        return CEL_NO_MEMORY;
    if (!cel_find_character(s.text, args[2].i64, &at) || at == s.text.len ||
        s.text.len < s.part.len)
        return cel_of_int(-1);
    return search_backwards(work, &s, at);
}

static const struct cel_builtin rows[] = {
    {"indexOf", 2, index_of, true, 0, cel_cost_of_items},
    {"indexOf", 3, index_of_from, true, 0, cel_cost_of_items},
    {"lastIndexOf", 2, last_index_of, true, 0, cel_cost_of_items},
    {"lastIndexOf", 3, last_index_of_from, true, 0, cel_cost_of_items},
};

const struct cel_library cel_places = CEL_LIBRARY(rows);

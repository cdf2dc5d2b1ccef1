#include "cel/library/strings.h"

#include "cel/library/writer.h"
#include "cel/value/container.h"
#include "codec/utf8.h"

/* Whether the arguments are strings, then ints. */
static bool are(const struct cel_value *args, uint32_t strings, uint32_t ints)
{
    for (uint32_t i = 0; i < strings + ints; i++)
        if (args[i].kind != (i < strings ? CEL_STRING : CEL_INT))
            return false;
    return true;
}

/* -- Characters -- */

bool cel_valid_text(struct cel_work *work, struct slice text, struct slice *ret_text)
{
    static const struct slice replacement = SLICE_LITERAL("\xef\xbf\xbd");
    work->steps_left -= (int64_t)(text.len / 16);
    *ret_text = text;
    if (utf8_valid(text))
        return true;
    uint8_t *to = arena_alloc(work->arena, replacement.len * text.len);
    size_t at = 0;
    for (size_t i = 0; to && i < text.len;) {
        size_t length = utf8_char_len(slice_sub(text, i, text.len - i));
        struct slice part = length ? slice_sub(text, i, length) : replacement;
        slice_copy(to + at, part);
        at += part.len;
        i += length ? length : 1;
    }
    *ret_text = slice_of(to, at);
    return to;
}

bool cel_find_character(struct slice text, int64_t index, size_t *ret_at)
{
    size_t at = 0;
    for (; index > 0 && at < text.len; index--)
        at += cel_first_length(slice_sub(text, at, text.len - at));
    *ret_at = at;
    return index == 0;
}

static struct cel_value char_at(struct cel_work *work, const struct cel_value *args)
{
    struct slice text;
    size_t at;
    if (!are(args, 1, 1))
        return CEL_NO_OVERLOAD;
    if (!cel_valid_text(work, cel_text(args[0]), &text))
        return CEL_NO_MEMORY;
    if (!cel_find_character(text, args[1].i64, &at))
        return CEL_OUT_OF_RANGE(work, args[1].i64);
    size_t length = at < text.len ? cel_first_length(slice_sub(text, at, text.len - at)) : 0;
    return cel_of_string(slice_sub(text, at, length));
}

static struct cel_value substring(struct cel_work *work, const struct cel_value *args)
{
    struct slice text;
    size_t at;
    if (!are(args, 1, 1))
        return CEL_NO_OVERLOAD;
    if (!cel_valid_text(work, cel_text(args[0]), &text))
        return CEL_NO_MEMORY;
    if (!cel_find_character(text, args[1].i64, &at))
        return CEL_OUT_OF_RANGE(work, args[1].i64);
    return cel_of_string(slice_sub(text, at, text.len - at));
}

static struct cel_value substring_between(struct cel_work *work, const struct cel_value *args)
{
    struct slice text;
    size_t begin, end;
    if (!are(args, 1, 2))
        return CEL_NO_OVERLOAD;
    if (!cel_valid_text(work, cel_text(args[0]), &text))
        return CEL_NO_MEMORY;
    if (args[1].i64 > args[2].i64)
        return cel_of_error_format(work, "invalid substring range. start: %lld, end: %lld",
                                   (long long)args[1].i64, (long long)args[2].i64);
    if (!cel_find_character(text, args[1].i64, &begin))
        return CEL_OUT_OF_RANGE(work, args[1].i64);
    if (!cel_find_character(text, args[2].i64, &end))
        return CEL_OUT_OF_RANGE(work, args[2].i64);
    return cel_of_string(slice_sub(text, begin, end - begin));
}

/* -- Changing -- */

/* Letters of ASCII from first to last become those at a distance in the code. */
static struct cel_value shift_letters(struct cel_work *work, const struct cel_value *args,
                                      uint8_t first, uint8_t last)
{
    struct slice text;
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    if (!cel_valid_text(work, cel_text(args[0]), &text))
        return CEL_NO_MEMORY;
    uint8_t *to = arena_alloc(work->arena, text.len + 1);
    if (!to)
        return CEL_NO_MEMORY;
    for (size_t i = 0; i < text.len; i++)
        to[i] = text.ptr[i] >= first && text.ptr[i] <= last ? text.ptr[i] ^ 0x20 : text.ptr[i];
    return cel_of_string(slice_of(to, text.len));
}

static struct cel_value lower(struct cel_work *work, const struct cel_value *args)
{
    return shift_letters(work, args, 'A', 'Z');
}

static struct cel_value upper(struct cel_work *work, const struct cel_value *args)
{
    return shift_letters(work, args, 'a', 'z');
}

/* The length of the white space at the beginning of a text, as Unicode defines it; 0: there is
 * none. */
static size_t space_length(struct slice text)
{
    static const char *const wide[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001",
                                       "\u2002",   "\u2003", "\u2004", "\u2005", "\u2006",
                                       "\u2007",   "\u2008", "\u2009", "\u200a", "\u2028",
                                       "\u2029",   "\u202f", "\u205f", "\u3000"};
    if (!text.len)
        return 0;
    if (text.ptr[0] == ' ' || (text.ptr[0] >= '\t' && text.ptr[0] <= '\r'))
        return 1;
    for (size_t i = 0; i < COUNT_OF(wide); i++)
        if (slice_has_prefix(text, slice_from_text(wide[i])))
            return strlen(wide[i]);
    return 0;
}

static struct cel_value trim(struct cel_work *work, const struct cel_value *args)
{
    size_t length;
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct slice text = cel_text(args[0]);
    work->steps_left -= (int64_t)(text.len / 16);
    while ((length = space_length(text)))
        text = slice_sub(text, length, text.len - length);
    while (text.len) {
        length = 1;
        while (length < 4 && length < text.len && (text.ptr[text.len - length] & 0xc0) == 0x80)
            length++;
        if (space_length(slice_sub(text, text.len - length, length)) != length)
            break;
        text.len -= length;
    }
    return cel_of_string(text);
}

/* How often a part that is not empty occurs, without overlaps. */
static size_t count_of(struct slice text, struct slice part)
{
    size_t count = 0, from = 0;
    const uint8_t *at;
    while (from < text.len && (at = memmem(text.ptr + from, text.len - from, part.ptr, part.len))) {
        from = (size_t)(at - text.ptr) + part.len;
        count++;
    }
    return count;
}

/* The part before the next occurrence of the old text, which is removed with it. An empty one is
 * before the first character and behind every one. */
static struct slice take_before(struct slice *text, struct slice old, bool is_first)
{
    size_t length = 0;
    if (old.len)
        length =
            (size_t)((const uint8_t *)memmem(text->ptr, text->len, old.ptr, old.len) - text->ptr);
    else if (!is_first)
        length = cel_first_length(*text);
    struct slice part = slice_sub(*text, 0, length);
    *text = slice_sub(*text, length + old.len, text->len - length - old.len);
    return part;
}

/* limit: at most so often; negative: always. */
static struct cel_value replace_some(struct cel_work *work, const struct cel_value *args,
                                     int64_t limit)
{
    struct slice text = cel_text(args[0]), old = cel_text(args[1]), new = cel_text(args[2]);
    size_t length, at = 0;
    work->steps_left -= (int64_t)(text.len / 16);
    if (slice_equal(old, new) || limit == 0)
        return args[0];
    size_t count = old.len ? count_of(text, old) : cel_count_characters(text) + 1;
    if (limit > 0 && count > (uint64_t)limit)
        count = (size_t)limit;
    if (__builtin_mul_overflow(count, new.len, &length) ||
        __builtin_add_overflow(length, text.len - count * old.len, &length))
        return CEL_NO_MEMORY;
    uint8_t *to = arena_alloc(work->arena, length + 1);
    if (!to)
        return CEL_NO_MEMORY;
    work->steps_left -= (int64_t)(length / 64);
    for (size_t i = 0; i < count; i++) {
        struct slice before = take_before(&text, old, i == 0);
        slice_copy(to + at, before);
        slice_copy(to + at + before.len, new);
        at += before.len + new.len;
    }
    slice_copy(to + at, text);
    return cel_of_string(slice_of(to, at + text.len));
}

static struct cel_value replace(struct cel_work *work, const struct cel_value *args)
{
    return are(args, 3, 0) ? replace_some(work, args, -1) : CEL_NO_OVERLOAD;
}

static struct cel_value replace_limited(struct cel_work *work, const struct cel_value *args)
{
    return are(args, 3, 1) ? replace_some(work, args, args[3].i64) : CEL_NO_OVERLOAD;
}

/* The text as a literal of the language. */
static struct cel_value quote(struct cel_work *work, const struct cel_value *args)
{
    static const char letters[] = "abfnrtv\\\"", bytes[] = "\a\b\f\n\r\t\v\\\"";
    struct slice text;
    size_t at = 0;
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    if (!cel_valid_text(work, cel_text(args[0]), &text))
        return CEL_NO_MEMORY;
    uint8_t *to = arena_alloc(work->arena, 2 * text.len + 2);
    if (!to)
        return CEL_NO_MEMORY;
    to[at++] = '"';
    for (size_t i = 0; i < text.len; i++) {
        const char *escaped = text.ptr[i] ? strchr(bytes, text.ptr[i]) : NULL;
        if (escaped)
            to[at++] = '\\';
        to[at++] = escaped ? (uint8_t)letters[escaped - bytes] : text.ptr[i];
    }
    to[at++] = '"';
    return cel_of_string(slice_of(to, at));
}

/* -- Lists of strings -- */

/* limit: at most so many parts; negative: all. */
static struct cel_value split_some(struct cel_work *work, const struct cel_value *args,
                                   int64_t limit)
{
    struct slice text = cel_text(args[0]), separator = cel_text(args[1]);
    work->steps_left -= (int64_t)(text.len / 16);
    size_t count = separator.len ? count_of(text, separator) + 1 : cel_count_characters(text);
    if (limit >= 0 && count > (uint64_t)limit)
        count = (size_t)limit;
    if (count > UINT32_MAX)
        return CEL_NO_MEMORY;
    work->steps_left -= (int64_t)count;
    struct cel_value list = cel_list_new(work, (uint32_t)count);
    for (size_t i = 0; i + 1 < count && !cel_is_error(list); i++)
        list = cel_list_append(work, list, cel_of_string(take_before(&text, separator, false)));
    if (count && !cel_is_error(list))
        list = cel_list_append(work, list, cel_of_string(text));
    return list;
}

static struct cel_value split(struct cel_work *work, const struct cel_value *args)
{
    return are(args, 2, 0) ? split_some(work, args, -1) : CEL_NO_OVERLOAD;
}

static struct cel_value split_limited(struct cel_work *work, const struct cel_value *args)
{
    return are(args, 2, 1) ? split_some(work, args, args[2].i64) : CEL_NO_OVERLOAD;
}

static struct cel_value not_a_string(struct cel_work *work, struct cel_value item)
{
    struct cel_writer to = {.work = work};
    cel_write(&to, SLICE_LITERAL("join: invalid input: "));
    cel_write_go(&to, item, false, 0);
    return to.failed ? CEL_NO_MEMORY : cel_of_error(slice_of(to.bytes, to.length));
}

/* The length of all items with the separators. False: an item is not a string, which is the error.
 */
static bool length_of_all(struct cel_work *work, struct cel_value list, size_t separator_bytes,
                          size_t *ret_length, struct cel_value *ret_error)
{
    struct cel_walk walk;
    struct cel_value index, item;
    size_t length = 0;
    cel_walk_init(&walk, work, list);
    while (cel_walk_next(&walk, &index, &item)) {
        work->steps_left--;
        if (item.kind != CEL_STRING) {
            *ret_error = index.i64 ? not_a_string(work, item) : CEL_NO_OVERLOAD;
            return false;
        }
        if (__builtin_add_overflow(length, item.length + (index.i64 ? separator_bytes : 0),
                                   &length)) {
            *ret_error = CEL_NO_MEMORY;
            return false;
        }
    }
    *ret_length = length;
    return true;
}

static struct cel_value join_by(struct cel_work *work, struct cel_value list,
                                struct slice separator)
{
    struct cel_walk walk;
    struct cel_value index, item, error;
    size_t length, at = 0;
    if (!length_of_all(work, list, separator.len, &length, &error))
        return error;
    uint8_t *to = arena_alloc(work->arena, length + 1);
    if (!to)
        return CEL_NO_MEMORY;
    work->steps_left -= (int64_t)(length / 64);
    cel_walk_init(&walk, work, list);
    while (cel_walk_next(&walk, &index, &item)) {
        if (index.i64) {
            slice_copy(to + at, separator);
            at += separator.len;
        }
        slice_copy(to + at, cel_text(item));
        at += item.length;
    }
    return cel_of_string(slice_of(to, at));
}

static struct cel_value join(struct cel_work *work, const struct cel_value *args)
{
    return args[0].kind == CEL_LIST ? join_by(work, args[0], SLICE_EMPTY) : CEL_NO_OVERLOAD;
}

static struct cel_value join_with(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return join_by(work, args[0], cel_text(args[1]));
}

/* -- Cost -- */

/* What Kubernetes counts for a text that is traversed, and another one that is made. */
static uint64_t twice(struct cel_value value)
{
    return cel_cost_traversal(2 * (value.kind == CEL_OPTIONAL ? 1 : cel_cost_size(value)));
}

static uint64_t cost_of_rewriting(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return twice(call->args[0]);
}

static uint64_t cost_of_join(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return twice(call->result);
}

static uint64_t cost_of_quote(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return cel_cost_traversal(cel_cost_size(call->args[0]));
}

static const struct cel_builtin rows[] = {
    {"charAt", 2, char_at, true, 0, NULL},
    {"join", 1, join, true, 0, cost_of_join},
    {"join", 2, join_with, true, 0, cost_of_join},
    {"lowerAscii", 1, lower, true, 0, cel_cost_of_text},
    {"replace", 3, replace, true, 0, cost_of_rewriting},
    {"replace", 4, replace_limited, true, 0, cost_of_rewriting},
    {"split", 2, split, true, 0, cost_of_rewriting},
    {"split", 3, split_limited, true, 0, cost_of_rewriting},
    {"strings.quote", 1, quote, true, 0, cost_of_quote},
    {"substring", 2, substring, true, 0, cel_cost_of_text},
    {"substring", 3, substring_between, true, 0, cel_cost_of_text},
    {"trim", 1, trim, true, 0, cel_cost_of_text},
    {"upperAscii", 1, upper, true, 0, cel_cost_of_text},
};

const struct cel_library cel_strings = CEL_LIBRARY(rows);

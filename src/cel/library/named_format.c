#include "cel/library/named_format.h"

#include "cel/library/go_url.h"
#include "cel/value/container.h"
#include "codec/kube_name.h"
#include "codec/kube_time.h"

struct named_format {
    struct cel_opaque opaque;
    const char *name; /* behind "format." */
    /* The length of its regular expression in Kubernetes, for the cost. */
    uint32_t pattern_bytes;
    bool is_prefix; /* names begin with the text */
    bool (*name_valid)(struct slice text, char why[NAME_ERROR_BYTES]);
    /* Others than names have one reason at most. */
    bool (*is_valid)(struct slice text);
    const char *reason;
};

static bool formats_equal(struct cel_work *work, const struct cel_opaque *a,
                          const struct cel_opaque *b, bool *ret_equal)
{
    (void)work;
    *ret_equal = a == b;
    return a->ops == b->ops;
}

static const struct cel_opaque_ops format_ops = {
    .type = &cel_type_KUBERNETES_NAMEDFORMAT, .go_type = "cel.Format", .equal = formats_equal};

/* -- Formats of kube-openapi -- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hexadecimal(uint8_t c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Each dash may be absent. */
static bool is_uuid(struct slice text)
{
    static const size_t parts[] = {8, 4, 4, 4, 12};
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        at += i && at < text.len && text.ptr[at] == '-';
        for (size_t end = at + parts[i]; at < end; at++)
            if (at >= text.len || !is_hexadecimal(text.ptr[at]))
                return false;
    }
    return at == text.len;
}

/* Base64 with its padding, and not empty. */
static bool is_base64(struct slice text)
{
    size_t len = text.len;
    for (int i = 0; i < 2 && len && text.ptr[len - 1] == '='; i++)
        len--;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = text.ptr[i];
        if (!is_digit(c) && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '+' && c != '/')
            return false;
    }
    return len && text.len % 4 == 0;
}

static bool is_date(struct slice text)
{
    char time[] = "2006-01-02T00:00:00Z";
    int64_t seconds;
    int32_t nanos;
    if (text.len != strlen("2006-01-02"))
        return false;
    slice_copy(time, text);
    return kube_time_read(slice_from_text(time), &seconds, &nanos);
}

static bool is_two_digits(struct slice text, size_t at)
{
    return at + 2 <= text.len && is_digit(text.ptr[at]) && is_digit(text.ptr[at + 1]);
}

/* "Z" or "+01:00", whatever its numbers. */
static bool is_zone(struct slice text)
{
    if (text.len == 1)
        return (text.ptr[0] | 0x20) == 'z';
    return text.len == strlen("+01:00") && (text.ptr[0] == '+' || text.ptr[0] == '-') &&
           is_two_digits(text, 1) && text.ptr[3] == ':' && is_two_digits(text, 4);
}

/* "12:00:59Z", "12:00:59.5+01:00"; any character may stand for the point. */
static bool is_time_of_day(struct slice text)
{
    size_t at = strlen("12:00:59"), digits;
    if (!is_two_digits(text, 0) || !is_two_digits(text, 3) || !is_two_digits(text, 6) ||
        text.ptr[2] != ':' || text.ptr[5] != ':')
        return false;
    if (memcmp(text.ptr, "23", 2) > 0 || text.ptr[3] > '5' || text.ptr[6] > '5' || at == text.len)
        return false;
    struct slice rest = slice_sub(text, at, text.len - at);
    if (is_zone(rest))
        return true;
    if (rest.ptr[0] == '\n')
        return false;
    at = digits = cel_first_length(rest);
    while (at < rest.len && is_digit(rest.ptr[at]))
        at++;
    return at > digits && is_zone(slice_sub(rest, at, rest.len - at));
}

/* kube-openapi looks only at what is between the first T and the second one. */
static bool is_date_time(struct slice text)
{
    struct slice parts[2];
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        size_t begin = at;
        if (begin > text.len)
            return false;
        while (at < text.len && (text.ptr[at] | 0x20) != 't')
            at++;
        parts[i] = slice_sub(text, begin, at - begin);
        at++;
    }
    return is_date(parts[0]) && is_time_of_day(parts[1]);
}

/* X(name, the length of the regular expression, what decides). */
#define FORMATS(X)                                                                  \
    X(dns1123Label, 30, .name_valid = dns_label_valid)                              \
    X(dns1123Subdomain, 60, .name_valid = subdomain_valid)                          \
    X(dns1035Label, 30, .name_valid = dns_1035_valid)                               \
    X(qualifiedName, 60, .name_valid = label_key_valid)                             \
    X(dns1123LabelPrefix, 30, .name_valid = dns_label_valid, .is_prefix = true)     \
    X(dns1123SubdomainPrefix, 60, .name_valid = subdomain_valid, .is_prefix = true) \
    X(dns1035LabelPrefix, 30, .name_valid = dns_1035_valid, .is_prefix = true)      \
    X(labelValue, 40, .name_valid = label_value_valid)                              \
    X(uri, 1103, .reason = NULL)                                                    \
    X(uuid, 70, .is_valid = is_uuid, .reason = "does not match the UUID format")    \
    X(byte, 84, .is_valid = is_base64, .reason = "invalid base64")                  \
    X(date, 71, .is_valid = is_date, .reason = "invalid date")                      \
    X(datetime, 71, .is_valid = is_date_time, .reason = "invalid datetime")

#define FORMAT(id, bytes, ...)                                                             \
    static const struct named_format format_##id = {                                       \
        .opaque = {&format_ops}, .name = #id, .pattern_bytes = (bytes), __VA_ARGS__};      \
    static struct cel_value make_##id(struct cel_work *work, const struct cel_value *args) \
    {                                                                                      \
        (void)work;                                                                        \
        (void)args;                                                                        \
        return cel_of_opaque(&format_##id.opaque);                                         \
    }
FORMATS(FORMAT)

#define ADDRESS(id, ...) &format_##id,
static const struct named_format *const formats[] = {FORMATS(ADDRESS)};

/* -- Functions -- */

static const struct named_format *as_format(struct cel_value value)
{
    return cel_is_opaque(value, &format_ops) ? (const struct named_format *)value.opaque : NULL;
}

static struct cel_value named(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        if (slice_is(cel_text(args[0]), formats[i]->name))
            return cel_of_some(work, cel_of_opaque(&formats[i]->opaque));
    return cel_of_none();
}

/* An optional list with one reason. */
static struct cel_value one_reason(struct cel_work *work, struct cel_value reason)
{
    struct cel_value list = cel_list_append(work, cel_list_new(work, 1), reason);
    return cel_is_error(list) ? list : cel_of_some(work, list);
}

/* Kubernetes replaces a last dash and the character before it by a letter, because more follows. */
static struct slice without_dash(struct cel_work *work, struct slice text)
{
    if (text.len < 2 || text.ptr[text.len - 1] != '-')
        return text;
    uint8_t *copy = arena_alloc(work->arena, text.len - 1);
    if (!copy)
        return SLICE_EMPTY;
    slice_copy(copy, slice_sub(text, 0, text.len - 2));
    copy[text.len - 2] = 'a';
    return slice_of(copy, text.len - 1);
}

static struct cel_value validate_name(struct cel_work *work, const struct named_format *format,
                                      struct slice text)
{
    char *why = arena_alloc(work->arena, NAME_ERROR_BYTES);
    struct slice name = format->is_prefix ? without_dash(work, text) : text;
    if (!why || (text.len && !name.len))
        return CEL_NO_MEMORY;
    if (format->name_valid(name, why))
        return cel_of_none();
    struct cel_value list = cel_list_new(work, 2);
    struct slice rest = slice_from_text(why);
    while (rest.len && !cel_is_error(list))
        list = cel_list_append(work, list, cel_of_string(name_cut_reason(&rest)));
    return cel_is_error(list) ? list : cel_of_some(work, list);
}

static struct cel_value validate(struct cel_work *work, const struct cel_value *args)
{
    const struct named_format *format = as_format(args[0]);
    struct go_url url;
    struct cel_value error;
    if (!format || args[1].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct slice text = cel_text(args[1]);
    work->steps_left -= (int64_t)(text.len / 64);
    if (format->name_valid)
        return validate_name(work, format, text);
    if (format->is_valid)
        return format->is_valid(text)
                   ? cel_of_none()
                   : one_reason(work, cel_of_string(slice_from_text(format->reason)));
    if (go_url_read(work, text, true, &url, &error))
        return cel_of_none();
    return one_reason(work, cel_of_string(cel_text(error)));
}

/* As if a regular expression were matched. */
static uint64_t cost_of_validate(struct cel_work *work, const struct cel_called *call)
{
    const struct named_format *format = as_format(call->args[0]);
    (void)work;
    if (!format)
        return 1;
    return cel_cost_traversal(cel_cost_size_shallow(call->args[1]) + 1) *
           ((format->pattern_bytes + 3) / 4);
}

#define ROW(id, ...) {"format." #id, 0, make_##id, true, 0, NULL},
static const struct cel_builtin rows[] = {
    FORMATS(ROW){"format.named", 1, named, true, 0, NULL},
    {"validate", 2, validate, true, 0, cost_of_validate},
};

const struct cel_library cel_named_formats = CEL_LIBRARY(rows);

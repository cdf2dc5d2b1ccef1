#include "cel/library/version.h"

enum { NUMBERS = 3 };

struct version {
    struct cel_opaque opaque;
    uint64_t numbers[NUMBERS];
    struct slice prerelease; /* parts with dots between them; empty: there is none */
};

static bool versions_equal(struct cel_work *work, const struct cel_opaque *a,
                           const struct cel_opaque *b, bool *ret_equal);
static cel_builtin_fn compare;

static const struct cel_opaque_ops version_ops = {.type = &cel_type_KUBERNETES_SEMVER,
                                                  .go_type = "cel.Semver",
                                                  .equal = versions_equal,
                                                  .compare = compare};

static const struct version *as_version(struct cel_value value)
{
    return cel_is_opaque(value, &version_ops) ? (const struct version *)value.opaque : NULL;
}

/* -- Reading -- */

static bool has_only(struct slice text, bool letters)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i], lower = c | 0x20;
        if (!(c >= '0' && c <= '9') && !(letters && ((lower >= 'a' && lower <= 'z') || c == '-')))
            return false;
    }
    return true;
}

static bool has_leading_zero(struct slice text)
{
    return text.len > 1 && text.ptr[0] == '0';
}

/* Go's strconv.ParseUint of digits. False, with its error. */
static bool read_digits(struct cel_work *work, struct slice text, uint64_t *ret_number,
                        struct cel_value *ret_error)
{
    uint64_t number = 0;
    bool fits = true;
    for (size_t i = 0; i < text.len; i++)
        fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, (uint64_t)(text.ptr[i] - '0'), &number);
    *ret_number = number;
    if (text.len && fits)
        return true;
    *ret_error =
        cel_of_error_format(work, "strconv.ParseUint: parsing %s: %s", cel_quoted(work, text),
                            text.len ? "value out of range" : "invalid syntax");
    return false;
}

static bool read_number(struct cel_work *work, struct slice text, size_t which,
                        uint64_t *ret_number, struct cel_value *ret_error)
{
    static const char *const names[] = {"major", "minor", "patch"};
    static const char *const titles[] = {"Major", "Minor", "Patch"};
    if (!has_only(text, false))
        *ret_error = cel_of_error_format(work, "Invalid character(s) found in %s number %s",
                                         names[which], cel_quoted(work, text));
    else if (has_leading_zero(text))
        *ret_error = cel_of_error_format(work, "%s number must not contain leading zeroes %s",
                                         titles[which], cel_quoted(work, text));
    else
        return read_digits(work, text, ret_number, ret_error);
    return false;
}

static bool check_prerelease(struct cel_work *work, struct slice part, struct cel_value *ret_error)
{
    uint64_t number;
    if (!part.len)
        *ret_error = CEL_FAIL("Prerelease is empty");
    else if (!has_only(part, true))
        *ret_error = cel_of_error_format(work, "Invalid character(s) found in prerelease %s",
                                         cel_quoted(work, part));
    else if (!has_only(part, false))
        return true;
    else if (has_leading_zero(part))
        *ret_error = cel_of_error_format(
            work, "Numeric PreRelease version must not contain leading zeroes %s",
            cel_quoted(work, part));
    else
        return read_digits(work, part, &number, ret_error);
    return false;
}

static bool check_build(struct cel_work *work, struct slice part, struct cel_value *ret_error)
{
    if (!part.len)
        *ret_error = CEL_FAIL("Build meta data is empty");
    else if (!has_only(part, true))
        *ret_error = cel_of_error_format(work, "Invalid character(s) found in build meta data %s",
                                         cel_quoted(work, part));
    else
        return true;
    return false;
}

/* All parts between dots; there is at least one, which may be empty. */
static bool check_parts(struct cel_work *work, struct slice text,
                        bool (*check)(struct cel_work *, struct slice, struct cel_value *),
                        struct cel_value *ret_error)
{
    size_t parts = 1;
    for (size_t i = 0; i < text.len; i++)
        parts += text.ptr[i] == '.';
    while (parts-- > 0)
        if (!check(work, slice_cut(&text, '.'), ret_error))
            return false;
    return true;
}

/* Cuts what is behind the first of these bytes off. False: there is none. */
static bool cut_off(struct slice *text, char byte, struct slice *ret_behind)
{
    struct slice behind = *text, before = slice_cut(&behind, byte);
    if (before.len == text->len)
        return false;
    *text = before;
    *ret_behind = behind;
    return true;
}

static struct cel_value read(struct cel_work *work, struct slice text)
{
    struct cel_value error;
    struct slice rest = text, build, prerelease = SLICE_EMPTY;
    struct version *version = arena_calloc(work->arena, 1, sizeof(*version));
    if (!version)
        return CEL_NO_MEMORY;
    version->opaque.ops = &version_ops;
    work->steps_left -= (int64_t)(text.len / 16);
    if (!text.len)
        return CEL_FAIL("Version string empty");
    struct slice minor, patch, major = rest;
    if (!cut_off(&major, '.', &minor) || !cut_off(&minor, '.', &patch))
        return CEL_FAIL("No Major.Minor.Patch elements found");
    bool has_build = cut_off(&patch, '+', &build);
    bool has_prerelease = cut_off(&patch, '-', &prerelease);
    if (!read_number(work, major, 0, &version->numbers[0], &error) ||
        !read_number(work, minor, 1, &version->numbers[1], &error) ||
        !read_number(work, patch, 2, &version->numbers[2], &error) ||
        (has_prerelease && !check_parts(work, prerelease, check_prerelease, &error)) ||
        (has_build && !check_parts(work, build, check_build, &error)))
        return error;
    version->prerelease = prerelease;
    return cel_of_opaque(&version->opaque);
}

/* "v01.2" is 1.2.0. */
static struct cel_value normalize(struct cel_work *work, struct slice text)
{
    uint8_t *to = arena_alloc(work->arena, text.len + 2 * NUMBERS);
    size_t at = 0;
    if (!to)
        return CEL_NO_MEMORY;
    if (text.len && text.ptr[0] == 'v')
        text = slice_sub(text, 1, text.len - 1);
    bool ended = false;
    for (size_t i = 0; i < NUMBERS; i++) {
        struct slice behind = SLICE_EMPTY;
        bool last = i + 1 == NUMBERS || !cut_off(&text, '.', &behind);
        if (last && i + 1 < NUMBERS && !ended && text.len &&
            (memchr(text.ptr, '+', text.len) || memchr(text.ptr, '-', text.len)))
            return CEL_FAIL("short version cannot contain PreRelease/Build meta data");
        if (ended)
            text = SLICE_LITERAL("0");
        if (text.len > 1) {
            while (text.len && text.ptr[0] == '0')
                text = slice_sub(text, 1, text.len - 1);
            if (!text.len || text.ptr[0] < '0' || text.ptr[0] > '9')
                to[at++] = '0';
        }
        slice_copy(to + at, text);
        at += text.len;
        if (i + 1 < NUMBERS)
            to[at++] = '.';
        ended |= last;
        text = behind;
    }
    return read(work, slice_of(to, at));
}

static struct cel_value to_version(struct cel_work *work, const struct cel_value *args)
{
    return args[0].kind == CEL_STRING ? read(work, cel_text(args[0])) : CEL_NO_OVERLOAD;
}

static struct cel_value to_version_with(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_BOOL)
        return CEL_NO_OVERLOAD;
    return args[1].truth ? normalize(work, cel_text(args[0])) : read(work, cel_text(args[0]));
}

static struct cel_value is_version(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return cel_of_bool(!cel_is_error(to_version(work, args)));
}

static struct cel_value is_version_with(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_BOOL)
        return CEL_NO_OVERLOAD;
    return cel_of_bool(!cel_is_error(to_version_with(work, args)));
}

/* -- Numbers -- */

static struct cel_value number_of(const struct cel_value *args, size_t which)
{
    const struct version *version = as_version(args[0]);
    return version ? cel_of_int((int64_t)version->numbers[which]) : CEL_NO_OVERLOAD;
}

static struct cel_value major(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return number_of(args, 0);
}

static struct cel_value minor(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return number_of(args, 1);
}

static struct cel_value patch(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return number_of(args, 2);
}

/* -- Order -- */

/* Numbers come before words, and have no leading zeros. */
static int order_of_parts(struct slice a, struct slice b)
{
    bool is_number = has_only(a, false), other_is_number = has_only(b, false);
    if (is_number != other_is_number)
        return is_number ? -1 : 1;
    if (is_number && a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return slice_compare(a, b);
}

static int order_of(struct cel_work *work, const struct version *a, const struct version *b)
{
    struct slice x = a->prerelease, y = b->prerelease;
    for (size_t i = 0; i < NUMBERS; i++)
        if (a->numbers[i] != b->numbers[i])
            return a->numbers[i] < b->numbers[i] ? -1 : 1;
    /* A version comes behind its own prereleases. */
    if (!x.len || !y.len)
        return (x.len ? -1 : 0) + (y.len ? 1 : 0);
    work->steps_left -= (int64_t)((x.len + y.len) / 16);
    while (x.len && y.len) {
        int order = order_of_parts(slice_cut(&x, '.'), slice_cut(&y, '.'));
        if (order)
            return order;
    }
    return (x.len ? 1 : 0) - (y.len ? 1 : 0);
}

static struct cel_value compare(struct cel_work *work, const struct cel_value *args)
{
    const struct version *a = as_version(args[0]), *b = as_version(args[1]);
    if (!a || !b)
        return CEL_NO_OVERLOAD;
    int order = order_of(work, a, b);
    return cel_of_int((order > 0) - (order < 0));
}

static bool versions_equal(struct cel_work *work, const struct cel_opaque *a,
                           const struct cel_opaque *b, bool *ret_equal)
{
    if (a->ops != b->ops)
        return false;
    *ret_equal = order_of(work, (const struct version *)a, (const struct version *)b) == 0;
    return true;
}

static const struct cel_builtin rows[] = {
    {"semver", 1, to_version, true, 0, cel_cost_of_text},
    {"semver", 2, to_version_with, true, 0, cel_cost_of_text},
    {"isSemver", 1, is_version, true, 0, cel_cost_of_text},
    {"isSemver", 2, is_version_with, true, 0, cel_cost_of_text},
    {"major", 1, major, true, 0, NULL},
    {"minor", 1, minor, true, 0, NULL},
    {"patch", 1, patch, true, 0, NULL},
};

const struct cel_library cel_versions = CEL_LIBRARY(rows);

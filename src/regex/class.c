/* Classes of characters: [a-z], [[:alpha:]], \d, \p{Greek}. */
#include "regex/parse_private.h"
#include "regex/unicode.h"

enum { WORK_PER_STEP = 8 };

struct named_class {
    const char *name;
    uint8_t count;
    struct regex_range ranges[4];
};

/* The letters of Perl's classes; upper case negates them. */
static const struct named_class perl_classes[] = {
    {"d", 1, {{'0', '9'}}},
    {"s", 3, {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
    {"w", 4, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
};

static const struct named_class posix_classes[] = {
    {"alnum", 3, {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {"alpha", 2, {{'A', 'Z'}, {'a', 'z'}}},
    {"ascii", 1, {{0, 0x7f}}},
    {"blank", 2, {{'\t', '\t'}, {' ', ' '}}},
    {"cntrl", 2, {{0, 0x1f}, {0x7f, 0x7f}}},
    {"digit", 1, {{'0', '9'}}},
    {"graph", 1, {{'!', '~'}}},
    {"lower", 1, {{'a', 'z'}}},
    {"print", 1, {{' ', '~'}}},
    {"punct", 4, {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"space", 2, {{'\t', '\r'}, {' ', ' '}}},
    {"upper", 1, {{'A', 'Z'}}},
    {"word", 4, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {"xdigit", 3, {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};

static const struct named_class *find_named(const struct named_class *classes, size_t count,
                                            struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_from_text(classes[i].name)))
            return &classes[i];
    return NULL;
}

static enum status add_range(struct regex_reader *r, struct regex_ranges *to, uint32_t low,
                             uint32_t high)
{
    return r->flags & FLAG_FOLD ? regex_ranges_add_folded(to, low, high)
                                : regex_ranges_add(to, low, high);
}

/* Adds a class to another one; it is folded before it is negated. */
static enum status add_class(struct regex_ranges *to, struct regex_ranges *class, bool negated)
{
    regex_ranges_merge(class);
    to->work += class->work;
    return regex_ranges_add_all(to, class->at, class->count, negated);
}

static enum status add_named(struct regex_reader *r, struct regex_ranges *to,
                             const struct named_class *named, bool negated)
{
    struct regex_ranges class = {.arena = to->arena};
    for (size_t i = 0; i < named->count; i++)
        TRY(add_range(r, &class, named->ranges[i].low, named->ranges[i].high));
    return add_class(to, &class, negated);
}

/* Reads [:name:]. ST_NOT_FOUND: it is not a class, but literal characters. */
static enum status take_posix(struct regex_reader *r, struct regex_ranges *to)
{
    size_t from = r->at + 2, end = from;
    if (!regex_ahead(r, "[:") || from >= r->names_end)
        return ST_NOT_FOUND;
    while (memcmp(r->pattern.ptr + end, ":]", 2) != 0)
        end++;
    bool negated = r->pattern.ptr[from] == '^';
    struct slice name = slice_sub(r->pattern, from + negated, end - from - negated);
    const struct named_class *named = find_named(posix_classes, COUNT_OF(posix_classes), name);
    if (!named)
        return regex_fail(r, "invalid character class range", r->at, end + 2);
    r->at = end + 2;
    return add_named(r, to, named, negated);
}

/* Reads \pL, \p{Greek}, \P{Greek} or \p{^Greek}. */
static enum status take_unicode(struct regex_reader *r, struct regex_ranges *to)
{
    struct regex_ranges class = {.arena = to->arena};
    struct slice name;
    uint32_t rune;
    size_t from = r->at;
    bool negated = r->pattern.ptr[r->at + 1] == 'P';
    r->at += 2;
    TRY(regex_take_rune(r, &rune));
    name = slice_sub(r->pattern, from + 2, r->at - from - 2);
    if (rune == '{' && regex_more(r)) {
        const uint8_t *begin = r->pattern.ptr + r->at;
        const uint8_t *brace = memchr(begin, '}', r->pattern.len - r->at);
        size_t end = brace ? (size_t)(brace - r->pattern.ptr) : r->pattern.len;
        TRY(regex_check_utf8(r, r->at, end));
        name = slice_of(begin, end - r->at);
        r->at = brace ? end + 1 : end;
        if (!brace)
            return regex_fail(r, "invalid character class range", from, r->at);
    }
    if (name.len && name.ptr[0] == '^') {
        negated = !negated;
        name = slice_sub(name, 1, name.len - 1);
    }
    enum status status = unicode_add_class(name, r->flags & FLAG_FOLD, &class);
    if (status == ST_NOT_FOUND)
        return regex_fail(r, "invalid character class range", from, r->at);
    return status == ST_OK ? add_class(to, &class, negated) : status;
}

/* ST_NOT_FOUND: it is not an escape for a class. */
static enum status take_escape(struct regex_reader *r, struct regex_ranges *to)
{
    if (r->pattern.len - r->at < 2 || r->pattern.ptr[r->at] != '\\')
        return ST_NOT_FOUND;
    uint8_t letter = r->pattern.ptr[r->at + 1];
    if (letter == 'p' || letter == 'P')
        return take_unicode(r, to);
    bool negated = letter >= 'A' && letter <= 'Z';
    if (negated)
        letter |= 0x20;
    const struct named_class *named =
        find_named(perl_classes, COUNT_OF(perl_classes), slice_of(&letter, 1));
    if (!named)
        return ST_NOT_FOUND;
    r->at += 2;
    return add_named(r, to, named, negated);
}

/* One end of a range. class_from is the beginning of the class. */
static enum status take_bound(struct regex_reader *r, size_t class_from, uint32_t *ret_rune)
{
    if (!regex_more(r))
        return regex_fail(r, "missing closing ]", class_from, r->pattern.len);
    return regex_peek(r) == '\\' ? regex_take_escape(r, ret_rune) : regex_take_rune(r, ret_rune);
}

static enum status take_item(struct regex_reader *r, size_t class_from, struct regex_ranges *to)
{
    size_t from = r->at;
    uint32_t low, high;
    enum status status = take_posix(r, to);
    if (status == ST_NOT_FOUND)
        status = take_escape(r, to);
    if (status != ST_NOT_FOUND)
        return status;
    TRY(take_bound(r, class_from, &low));
    high = low;
    /* A hyphen before the closing bracket is literal. */
    if (r->pattern.len - r->at >= 2 && regex_peek(r) == '-' && r->pattern.ptr[r->at + 1] != ']') {
        r->at++;
        TRY(take_bound(r, class_from, &high));
        if (high < low)
            return regex_fail(r, "invalid character class range", from, r->at);
    }
    return add_range(r, to, low, high);
}

/* The class of merged ranges. */
static enum status make(struct regex_reader *r, const struct regex_ranges *ranges,
                        const struct regex_class **ret_class)
{
    TRY(regex_spend(r->parser, (ranges->work + ranges->count) / WORK_PER_STEP));
    struct regex_class *class =
        arena_alloc(r->parser->arena, sizeof(*class) + ranges->count * sizeof(*class->ranges));
    if (!class)
        return ST_NOMEM;
    *class = (struct regex_class){.count = 0};
    for (size_t i = 0; i < ranges->count; i++) {
        struct regex_range range = ranges->at[i];
        for (; range.low < 0x80 && range.low <= range.high; range.low++)
            class->ascii[range.low / 64] |= UINT64_C(1) << range.low % 64;
        if (range.low <= range.high)
            class->ranges[class->count++] = range;
    }
    *ret_class = class;
    return ST_OK;
}

enum status regex_take_class(struct regex_reader *r, const struct regex_class **ret_class)
{
    struct regex_ranges ranges = {.arena = r->parser->scratch};
    size_t from = r->at++, spent = 0;
    bool negated = regex_accept(r, '^');
    /* A bracket that is the first character is literal. */
    for (bool first = true; first || regex_peek(r) != ']'; first = false) {
        TRY(take_item(r, from, &ranges));
        TRY(regex_spend(r->parser, (ranges.work - spent) / WORK_PER_STEP));
        spent = ranges.work - (ranges.work - spent) % WORK_PER_STEP;
    }
    r->at++;
    ranges.work -= spent;
    regex_ranges_merge(&ranges);
    if (negated)
        TRY(regex_ranges_negate(&ranges));
    return make(r, &ranges, ret_class);
}

enum status regex_take_class_escape(struct regex_reader *r, const struct regex_class **ret_class)
{
    struct regex_ranges ranges = {.arena = r->parser->scratch};
    enum status status = take_escape(r, &ranges);
    *ret_class = NULL;
    if (status != ST_OK)
        return status == ST_NOT_FOUND ? ST_OK : status;
    return make(r, &ranges, ret_class);
}

enum status regex_folded_rune(struct regex_reader *r, uint32_t rune,
                              const struct regex_class **ret_class)
{
    struct regex_ranges ranges = {.arena = r->parser->scratch};
    TRY(regex_ranges_add_folded(&ranges, rune, rune));
    regex_ranges_merge(&ranges);
    return make(r, &ranges, ret_class);
}

enum status regex_any(struct regex_reader *r, bool newline, const struct regex_class **ret_class)
{
    struct regex_ranges ranges = {.arena = r->parser->scratch};
    static const struct regex_range end_of_line = {'\n', '\n'};
    TRY(regex_ranges_add_all(&ranges, &end_of_line, newline ? 0 : 1, true));
    return make(r, &ranges, ret_class);
}

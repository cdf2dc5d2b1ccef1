#include "regex/unicode.h"

static const struct regex_range ranges_of_classes[] = {
#define UNICODE_CLASS(name, first, count)
#define UNICODE_UNION(name, parts)
#define UNICODE_FOLD(low, high, delta)
#define UNICODE_FOLD_PAIRS(low, high)
#define R(low, high) {low, high},
#include "regex/unicode.inc"
#undef R
#undef UNICODE_CLASS
#undef UNICODE_UNION
};

static const struct unicode_class {
    const char *name;
    uint16_t first, count;
    const char *parts; /* the names of other classes, whose sum it is; NULL: it has ranges */
} classes[] = {
#define R(low, high)
#define UNICODE_CLASS(name, first, count) {name, first, count, NULL},
#define UNICODE_UNION(name, parts) {name, 0, 0, parts},
#include "regex/unicode.inc"
};

enum { NAME_BYTES_MAX = 64 };

/* Go compares names without spaces, hyphens and underscores, and ignores case. */
static struct slice canonical_name(struct slice name, char room[NAME_BYTES_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < name.len && len < NAME_BYTES_MAX; i++) {
        char c = (char)name.ptr[i];
        if (c == ' ' || c == '-' || c == '_')
            continue;
        if (!len && c >= 'a' && c <= 'z')
            c = (char)(c - 0x20);
        else if (len && c >= 'A' && c <= 'Z')
            c = (char)(c + 0x20);
        room[len++] = c;
    }
    return slice_of(room, len);
}

static const struct unicode_class *find_class(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(classes); i++)
        if (slice_equal(name, slice_from_text(classes[i].name)))
            return &classes[i];
    return NULL;
}

static enum status add(const struct regex_range *range, bool folded, struct regex_ranges *ranges)
{
    return folded ? regex_ranges_add_folded(ranges, range->low, range->high)
                  : regex_ranges_add(ranges, range->low, range->high);
}

/* A class consists of ranges, or of other classes, which may themselves be sums. */
static enum status add_class(const struct unicode_class *class, bool folded,
                             struct regex_ranges *ranges)
{
    /* Go has no table of folding for letters with case. */
    folded = folded && strcmp(class->name, "Lc") != 0;
    for (uint32_t i = 0; i < class->count; i++)
        TRY(add(&ranges_of_classes[class->first + i], folded, ranges));
    struct slice rest = slice_from_text(class->parts ? class->parts : "");
    while (rest.len)
        TRY(add_class(find_class(slice_cut(&rest, ' ')), folded, ranges));
    return ST_OK;
}

enum status unicode_add_class(struct slice name, bool folded, struct regex_ranges *ranges)
{
    static const struct regex_range any = {0, REGEX_RUNE_MAX}, ascii = {0, 0x7f};
    char room[NAME_BYTES_MAX];
    struct regex_ranges unassigned = {.arena = ranges->arena};
    struct slice canonical = canonical_name(name, room);
    const struct unicode_class *class = find_class(canonical);
    if (class)
        return add_class(class, folded, ranges);
    if (slice_equal(canonical, SLICE_LITERAL("Any")))
        return add(&any, false, ranges);
    if (slice_equal(canonical, SLICE_LITERAL("Ascii")))
        return add(&ascii, folded, ranges);
    if (!slice_equal(canonical, SLICE_LITERAL("Assigned")))
        return ST_NOT_FOUND;
    TRY(add_class(find_class(SLICE_LITERAL("Cn")), false, &unassigned));
    return regex_ranges_add_all(ranges, unassigned.at, unassigned.count, true);
}

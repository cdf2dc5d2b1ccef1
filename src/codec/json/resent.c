#include "codec/json/resent.h"

#include "codec/json/scanner.h"

#include <string.h>

struct member {
    struct slice name, value; /* a name with its quotes */
};

struct members {
    struct member items[JSON_RESENT_MEMBERS_MAX];
    size_t count;
};

/* Reads the members of an object; values are skipped, and examined by the scanner on the way. */
static bool read_members(struct slice object, struct members *ret_members)
{
    struct json_scanner s;
    enum json_token token;
    json_scanner_init(&s, object);
    ret_members->count = 0;
    if (json_next(&s) != JSON_OBJECT)
        return false;
    while ((token = json_next(&s)) == JSON_KEY) {
        if (s.escaped || ret_members->count == JSON_RESENT_MEMBERS_MAX)
            return false;
        struct member *member = &ret_members->items[ret_members->count++];
        member->name = s.raw;
        token = json_next(&s);
        const uint8_t *from = s.raw.ptr;
        if (!json_skip(&s, token))
            return false;
        member->value = slice_of(from, (size_t)(s.at - from));
    }
    return token == JSON_OBJECT_END && json_next(&s) == JSON_END;
}

static bool is_named(const struct member *member, const char *name)
{
    return slice_is(slice_sub(member->name, 1, member->name.len - 2), name);
}

/* The member of the same name; mostly it has the same place. NULL: there is none. */
static const struct member *find(const struct members *members, size_t place, struct slice name)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->items[(place + i) % members->count];
        if (slice_equal(member->name, name))
            return member;
    }
    return NULL;
}

/* A string without escapes, without its quotes. */
static bool take_text(struct slice value, struct slice *ret_text)
{
    if (value.len < 2 || value.ptr[0] != '"' || memchr(value.ptr, '\\', value.len))
        return false;
    *ret_text = slice_sub(value, 1, value.len - 2);
    return true;
}

/* One level of both objects. The object itself has neither of the two strings. */
struct level {
    const char *changed,
        *added;                 /* names of these strings in this object; NULL: they are not here */
    struct json_resent *resent; /* NULL: this is not the outermost object */
    struct slice *before, *after, *extra;
};

static bool compare(struct slice before, struct slice after, const struct level *level);

/* A member whose two values are not the same bytes. */
static bool compare_different(const struct member *before, const struct member *after,
                              const struct level *level)
{
    struct json_resent *resent = level->resent;
    if (level->changed && is_named(after, level->changed))
        return take_text(before->value, level->before) && take_text(after->value, level->after);
    if (resent && is_named(after, resent->changed.member))
        return compare(before->value, after->value,
                       &(struct level){.changed = resent->changed.name,
                                       .before = &resent->before,
                                       .after = &resent->after});
    return resent && is_named(after, resent->added.member) &&
           compare(before->value, after->value,
                   &(struct level){.added = resent->added.name, .extra = &resent->version});
}

/* As many members as before, apart from the added one, each found once under its name: repeated
 * names would leave another one unfound. */
static bool compare(struct slice before, struct slice after, const struct level *level)
{
    struct members was, is;
    uint32_t found = 0;
    if (!read_members(before, &was) || !read_members(after, &is))
        return false;
    for (size_t i = 0; i < is.count; i++) {
        const struct member *member = &is.items[i], *same = NULL;
        if (level->added && is_named(member, level->added)) {
            if (level->extra->ptr || !take_text(member->value, level->extra))
                return false;
            continue;
        }
        same = find(&was, i, member->name);
        if (!same || found & 1u << (same - was.items))
            return false;
        found |= 1u << (same - was.items);
        if (!slice_equal(same->value, member->value) && !compare_different(same, member, level))
            return false;
    }
    return found == (1u << was.count) - 1;
}

bool json_is_resent(struct json_resent *resent, struct slice before, struct slice after)
{
    _Static_assert(JSON_RESENT_MEMBERS_MAX < 32, "members are bits of a number");
    resent->before = resent->after = resent->version = SLICE_EMPTY;
    return compare(before, after, &(struct level){.resent = resent}) && resent->after.ptr &&
           resent->version.ptr;
}

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

/* -- The same bytes but for the two strings: so most clients send them, and only one of the two
 * objects needs to be examined -- */

static const struct member *named(const struct members *members, const char *name)
{
    for (size_t i = 0; i < members->count; i++)
        if (is_named(&members->items[i], name))
            return &members->items[i];
    return NULL;
}

/* The members of the member of this name. */
static bool read_inner(const struct members *members, const char *name, struct members *ret_inner)
{
    const struct member *member = named(members, name);
    return member && read_members(member->value, ret_inner);
}

static size_t common_prefix(struct slice a, struct slice b)
{
    size_t n = 0, len = size_min(a.len, b.len);
    while (n < len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

/* The length of a string at the beginning of the bytes, up to its quote, without anything that may
 * need an escape. */
static size_t text_length(struct slice bytes)
{
    size_t n = 0;
    while (n < bytes.len && bytes.ptr[n] >= ' ' && bytes.ptr[n] < 0x7f && bytes.ptr[n] != '"' &&
           bytes.ptr[n] != '\\')
        n++;
    return n;
}

/* At a member of the object: `"name":"text",`. Returns its length; 0: it is something else. */
static size_t take_added(struct slice bytes, const char *name, struct slice *ret_text)
{
    size_t name_len = strlen(name), from = name_len + 4;
    if (bytes.len <= from || bytes.ptr[0] != '"' ||
        !slice_is(slice_sub(bytes, 1, name_len), name) ||
        memcmp(bytes.ptr + name_len + 1, "\":\"", 3) != 0)
        return 0;
    struct slice rest = slice_sub(bytes, from, bytes.len - from);
    size_t len = text_length(rest);
    if (rest.len < len + 2 || memcmp(rest.ptr + len, "\",", 2) != 0)
        return 0;
    *ret_text = slice_sub(rest, 0, len);
    return from + len + 2;
}

/* The added member is in front of the last member that begins before the first difference. */
static size_t find_added(const struct members *members, struct slice before, size_t difference)
{
    size_t at = SIZE_MAX;
    for (size_t i = 0; i < members->count; i++) {
        size_t begins = (size_t)(members->items[i].name.ptr - before.ptr);
        if (begins <= difference)
            at = begins;
    }
    return at;
}

static bool is_same_behind(struct slice a, size_t at, struct slice b, size_t from, size_t len)
{
    return a.len - at >= len && b.len - from >= len && memcmp(a.ptr + at, b.ptr + from, len) == 0;
}

static bool has_same_bytes(struct json_resent *resent, struct slice before, struct slice after)
{
    struct members outer, parent, other;
    const struct member *changed;
    if (!read_members(before, &outer) || !read_inner(&outer, resent->added.member, &parent) ||
        !read_inner(&outer, resent->changed.member, &other) ||
        !(changed = named(&other, resent->changed.name)) || named(&parent, resent->added.name) ||
        !take_text(changed->value, &resent->before))
        return false;
    size_t at = find_added(&parent, before, common_prefix(before, after));
    size_t text_at = (size_t)(resent->before.ptr - before.ptr);
    if (at >= text_at)
        return false;
    size_t added =
        take_added(slice_sub(after, at, after.len - at), resent->added.name, &resent->version);
    if (!added || !is_same_behind(before, at, after, at + added, text_at - at))
        return false;
    size_t from = text_at + added, end = text_at + resent->before.len;
    size_t len = text_length(slice_sub(after, from, after.len - from));
    resent->after = slice_sub(after, from, len);
    return after.len - from - len == before.len - end &&
           is_same_behind(before, end, after, from + len, before.len - end) &&
           !slice_equal(resent->before, resent->after);
}

bool json_is_resent(struct json_resent *resent, struct slice before, struct slice after)
{
    _Static_assert(JSON_RESENT_MEMBERS_MAX < 32, "members are bits of a number");
    if (has_same_bytes(resent, before, after))
        return true;
    resent->before = resent->after = resent->version = SLICE_EMPTY;
    return compare(before, after, &(struct level){.resent = resent}) && resent->after.ptr &&
           resent->version.ptr;
}

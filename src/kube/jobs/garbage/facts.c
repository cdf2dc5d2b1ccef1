#include "kube/jobs/garbage/facts.h"

#include "codec/json/scanner.h"
#include "codec/json/string.h"

/* -- Values -- */

/* The string just returned; empty if the token is another one. */
static enum status read_text(struct arena *arena, const struct json_scanner *s,
                             enum json_token token, struct slice *ret_text)
{
    uint8_t *decoded = NULL;
    *ret_text = SLICE_EMPTY;
    if (token != JSON_STRING)
        return ST_OK;
    if (s->escaped && !(decoded = arena_alloc(arena, s->raw.len)))
        return ST_NOMEM;
    return json_string_get(s, decoded, ret_text) == JSON_STRING_FINE ? ST_OK : ST_MALFORMED;
}

/* Skips the value that begins with the token just returned; *ret_json is all of it. */
static enum status skip(struct json_scanner *s, enum json_token token, struct slice *ret_json)
{
    const uint8_t *from = s->raw.ptr;
    if (!json_skip(s, token))
        return ST_MALFORMED;
    *ret_json = slice_of(from, (size_t)(s->at - from));
    return ST_OK;
}

/* -- Owners -- */

static enum status read_owner_member(struct arena *arena, struct json_scanner *s,
                                     struct garbage_owner *owner)
{
    const struct {
        struct slice name;
        struct slice *to;
    } texts[] = {
        {SLICE_LITERAL("uid"), &owner->uid},
        {SLICE_LITERAL("apiVersion"), &owner->api_version},
        {SLICE_LITERAL("kind"), &owner->kind},
        {SLICE_LITERAL("name"), &owner->name},
    };
    struct slice *to = NULL;
    struct slice whole;
    /* Compared before the scanner moves on to the value. */
    bool blocks = json_token_is(s, SLICE_LITERAL("blockOwnerDeletion"));
    for (size_t i = 0; !to && i < COUNT_OF(texts); i++)
        to = json_token_is(s, texts[i].name) ? texts[i].to : NULL;
    enum json_token token = json_next(s);
    if (to)
        TRY(read_text(arena, s, token, to));
    if (blocks)
        owner->blocks = token == JSON_TRUE;
    return skip(s, token, &whole);
}

static enum status count_items(struct slice array, size_t *ret_count)
{
    struct json_scanner s;
    struct slice whole;
    enum json_token token;
    json_scanner_init(&s, array);
    *ret_count = 0;
    (void)json_next(&s);
    for (; (token = json_next(&s)) != JSON_ARRAY_END; ++*ret_count)
        TRY(skip(&s, token, &whole));
    return ST_OK;
}

/* An entry that is not an object, or has no uid, names nothing. */
static enum status read_owners(struct arena *arena, struct slice array, struct garbage_facts *facts)
{
    struct json_scanner s;
    struct slice whole;
    enum json_token token;
    size_t count;
    TRY(count_items(array, &count));
    if (!count)
        return ST_OK;
    facts->owners = arena_calloc(arena, count, sizeof(*facts->owners));
    if (!facts->owners)
        return ST_NOMEM;
    json_scanner_init(&s, array);
    (void)json_next(&s);
    while ((token = json_next(&s)) != JSON_ARRAY_END) {
        struct garbage_owner *owner = &facts->owners[facts->owner_count];
        if (token != JSON_OBJECT) {
            TRY(skip(&s, token, &whole));
        } else {
            const uint8_t *from = s.raw.ptr;
            enum json_token member;
            *owner = (struct garbage_owner){0};
            while ((member = json_next(&s)) == JSON_KEY)
                TRY(read_owner_member(arena, &s, owner));
            owner->json = slice_of(from, (size_t)(s.at - from));
            TRY(member == JSON_OBJECT_END ? ST_OK : ST_MALFORMED);
        }
        facts->owner_count += token == JSON_OBJECT && owner->uid.len;
    }
    return ST_OK;
}

/* -- Finalizers -- */

static enum status read_finalizers(struct garbage_facts *facts, struct slice array)
{
    struct json_scanner s;
    struct slice whole;
    enum json_token token;
    json_scanner_init(&s, array);
    (void)json_next(&s);
    while ((token = json_next(&s)) != JSON_ARRAY_END) {
        bool text = token == JSON_STRING;
        facts->orphans = facts->orphans || (text && json_token_is(&s, SLICE_LITERAL("orphan")));
        facts->foreground =
            facts->foreground || (text && json_token_is(&s, SLICE_LITERAL("foregroundDeletion")));
        TRY(skip(&s, token, &whole));
    }
    facts->finalizers = array;
    return ST_OK;
}

/* -- Metadata -- */

static enum status read_member(struct arena *arena, struct json_scanner *s,
                               struct garbage_facts *facts)
{
    const struct {
        struct slice name;
        struct slice *to;
    } texts[] = {
        {SLICE_LITERAL("name"), &facts->name},
        {SLICE_LITERAL("namespace"), &facts->namespace},
    };
    struct slice *to = NULL;
    for (size_t i = 0; !to && i < COUNT_OF(texts); i++)
        to = json_token_is(s, texts[i].name) ? texts[i].to : NULL;
    bool owners = json_token_is(s, SLICE_LITERAL("ownerReferences"));
    bool finalizers = json_token_is(s, SLICE_LITERAL("finalizers"));
    bool deleting = json_token_is(s, SLICE_LITERAL("deletionTimestamp"));
    bool uid = json_token_is(s, SLICE_LITERAL("uid"));
    struct slice whole;
    enum json_token token = json_next(s);
    if (to && token == JSON_STRING)
        *to = slice_sub(s->raw, 1, s->raw.len - 2);
    if (uid)
        TRY(read_text(arena, s, token, &facts->uid));
    if (deleting)
        facts->deleting = token == JSON_STRING;
    TRY(skip(s, token, &whole));
    if (uid)
        facts->uid_json = whole;
    if (owners && token == JSON_ARRAY)
        return read_owners(arena, whole, facts);
    return finalizers && token == JSON_ARRAY ? read_finalizers(facts, whole) : ST_OK;
}

static enum status read_metadata(struct arena *arena, struct json_scanner *s,
                                 struct garbage_facts *facts)
{
    enum json_token token = json_next(s);
    if (token != JSON_OBJECT)
        return ST_MALFORMED;
    while ((token = json_next(s)) == JSON_KEY)
        TRY(read_member(arena, s, facts));
    return token == JSON_OBJECT_END ? ST_OK : ST_MALFORMED;
}

/* One pass, because this is done for every object that is written: up to the end of metadata, if
 * kind and apiVersion come before it. */
enum status garbage_facts_read(struct arena *arena, struct slice json,
                               struct garbage_facts *ret_facts)
{
    struct garbage_facts facts = {0};
    struct json_scanner s;
    enum json_token token = JSON_KEY;
    json_scanner_init(&s, json);
    if (json_next(&s) != JSON_OBJECT)
        return ST_MALFORMED;
    while (!(facts.kind.ptr && facts.api_version.ptr && facts.uid.len) &&
           (token = json_next(&s)) == JSON_KEY) {
        struct slice *to = json_token_is(&s, SLICE_LITERAL("kind"))         ? &facts.kind
                           : json_token_is(&s, SLICE_LITERAL("apiVersion")) ? &facts.api_version
                                                                            : NULL;
        if (json_token_is(&s, SLICE_LITERAL("metadata"))) {
            TRY(read_metadata(arena, &s, &facts));
            continue;
        }
        token = json_next(&s);
        if (to && token == JSON_STRING)
            *to = slice_sub(s.raw, 1, s.raw.len - 2);
        if (!json_skip(&s, token))
            return ST_MALFORMED;
    }
    if (token == JSON_FAULT || !facts.uid.len)
        return ST_MALFORMED;
    *ret_facts = facts;
    return ST_OK;
}

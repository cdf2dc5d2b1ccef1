#include "kube/jobs/garbage/bodies.h"

#include "codec/json/scanner.h"
#include "codec/json/string.h"

#include <inttypes.h>

static enum status write_condition(const struct garbage_facts *facts, int64_t revision,
                                   struct buf *to)
{
    TRY(buf_append_text(to, "{\"uid\":"));
    TRY(buf_append(to, facts->uid_json));
    return buf_append_format(to, ",\"resourceVersion\":\"%" PRIi64 "\"", revision);
}

enum status garbage_write_delete(const struct garbage_facts *facts, int64_t revision,
                                 const char *policy, struct buf *to)
{
    TRY(buf_append_text(to,
                        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":"));
    TRY(write_condition(facts, revision, to));
    return buf_append_format(to, "},\"propagationPolicy\":\"%s\"}", policy);
}

/* {"metadata":{"uid":…,"resourceVersion":…,"finalizers":[ */
static enum status begin_patch(const struct garbage_facts *facts, int64_t revision,
                               const char *member, struct buf *to)
{
    TRY(buf_append_text(to, "{\"metadata\":"));
    TRY(write_condition(facts, revision, to));
    return buf_append_format(to, ",\"%s\":[", member);
}

/* An empty list is removed. */
static enum status end_patch(struct buf *to)
{
    bool empty = to->ptr[to->len - 1] == '[';
    to->len -= empty;
    return buf_append_text(to, empty ? "null}}" : "]}}");
}

static enum status write_item(struct slice item, struct buf *to)
{
    if (to->ptr[to->len - 1] != '[')
        TRY(buf_append_text(to, ","));
    return buf_append(to, item);
}

enum status garbage_write_refs(const struct garbage_facts *facts, int64_t revision,
                               const uint8_t *classes, unsigned removed, struct buf *to)
{
    TRY(begin_patch(facts, revision, "ownerReferences", to));
    for (size_t i = 0; i < facts->owner_count; i++)
        if (!(removed & 1u << classes[i]))
            TRY(write_item(facts->owners[i].json, to));
    return end_patch(to);
}

/* A copy of a reference with another blockOwnerDeletion. */
static enum status write_unblocked(struct slice json, struct buf *to)
{
    struct json_scanner s;
    json_scanner_init(&s, json);
    (void)json_next(&s);
    TRY(write_item(SLICE_LITERAL("{\"blockOwnerDeletion\":false"), to));
    while (json_next(&s) == JSON_KEY) {
        const uint8_t *from = s.raw.ptr;
        bool kept = !json_token_is(&s, SLICE_LITERAL("blockOwnerDeletion"));
        if (!json_skip(&s, JSON_KEY))
            return ST_MALFORMED;
        if (kept)
            TRY(buf_append_text(to, ","));
        if (kept)
            TRY(buf_append(to, slice_of(from, (size_t)(s.at - from))));
    }
    return buf_append_text(to, "}");
}

enum status garbage_write_unblocked(const struct garbage_facts *facts, int64_t revision,
                                    struct buf *to)
{
    TRY(begin_patch(facts, revision, "ownerReferences", to));
    for (size_t i = 0; i < facts->owner_count; i++)
        if (facts->owners[i].blocks)
            TRY(write_unblocked(facts->owners[i].json, to));
        else
            TRY(write_item(facts->owners[i].json, to));
    return end_patch(to);
}

enum status garbage_write_finalizers(const struct garbage_facts *facts, int64_t revision,
                                     struct slice removed, struct buf *to)
{
    struct json_scanner s;
    enum json_token token;
    json_scanner_init(&s, facts->finalizers);
    TRY(begin_patch(facts, revision, "finalizers", to));
    (void)json_next(&s);
    while ((token = json_next(&s)) == JSON_STRING)
        if (!json_token_is(&s, removed))
            TRY(write_item(s.raw, to));
    return token == JSON_ARRAY_END ? end_patch(to) : ST_MALFORMED;
}

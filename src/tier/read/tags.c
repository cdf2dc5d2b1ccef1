#include "tier/read/tags.h"

#include "base/xalloc.h"
#include "codec/json/string.h"
#include "kube/types/storage.h"
#include "tier/object/object.h"

struct tier_tagged {
    struct list in_tags;
    uint8_t prefix[TIER_PREFIX_BYTES];
    enum tier_encoding encoding;
    const struct kube_kind *kind;
    size_t watches;
};

/* Before every tag, so that it is in no range of keys: the number of a collection begins with
 * zeros.
 */
enum { TAG_MARK = 0xff, TAG_HEAD_BYTES = 1 + TIER_PREFIX_BYTES };

/* Empty if the value is too long, which no watch requires then. */
static struct slice make_tag(const uint8_t prefix[TIER_PREFIX_BYTES], struct slice value,
                             uint8_t tag[TIER_TAG_BYTES_MAX])
{
    if (TAG_HEAD_BYTES + value.len > TIER_TAG_BYTES_MAX)
        return SLICE_EMPTY;
    tag[0] = TAG_MARK;
    memcpy(tag + 1, prefix, TIER_PREFIX_BYTES);
    slice_copy(tag + TAG_HEAD_BYTES, value);
    return slice_of(tag, TAG_HEAD_BYTES + value.len);
}

static struct tier_tagged *find(const struct tier_tags *tags, const uint8_t *prefix)
{
    struct tier_tagged *tagged;
    LIST_FOREACH (tagged, &tags->prefixes, in_tags) {
        if (memcmp(tagged->prefix, prefix, TIER_PREFIX_BYTES) == 0)
            return tagged;
    }
    return NULL;
}

/* -- Events -- */

/* The field is looked for in JSON as it is: its metadata, which are most of many objects, need not
 * be parsed. */
static enum status view_head(struct tier_tags *tags, const struct tier_tagged *tagged,
                             struct slice bytes, struct kube_object *ret_view)
{
    if (!tier_encoding_is_protobuf(tagged->encoding))
        return kube_object_parse_head(bytes, ret_view);
    return tier_object_view(tagged->encoding, tagged->kind, bytes, &tags->scratch, ret_view);
}

static struct slice tag_of(struct tier_tags *tags, const struct tier_tagged *tagged,
                           struct slice field, uint8_t tag[TIER_TAG_BYTES_MAX])
{
    struct kube_object view;
    struct slice value = SLICE_EMPTY;
    uint8_t decoded[TIER_TAG_BYTES_MAX];
    size_t len;
    if (!field.len || view_head(tags, tagged, kube_kv_of(field).value, &view) != ST_OK)
        return SLICE_EMPTY;
    (void)!kube_object_field(&view, slice_from_text(tagged->kind->indexed_field), &value);
    if (LIKELY(!value.len || !memchr(value.ptr, '\\', value.len)))
        return make_tag(tagged->prefix, value, tag);
    struct slice raw = slice_of(value.ptr - 1, value.len + 2);
    if (json_string_decode(raw, NULL, &len) != JSON_STRING_FINE || len > sizeof(decoded) ||
        json_string_decode(raw, decoded, &len) != JSON_STRING_FINE)
        return SLICE_EMPTY;
    return make_tag(tagged->prefix, slice_of(decoded, len), tag);
}

/* The tags of the object before and after: a watch learns of objects that come into its selection
 * and of those that leave it. */
static size_t find_tags(void *ctx, struct watch_history *history, const struct watch_event *event,
                        struct slice ret_tags[])
{
    static _Thread_local uint8_t before[TIER_TAG_BYTES_MAX], after[TIER_TAG_BYTES_MAX];
    struct tier_tags *tags = ctx;
    const struct tier_tagged *tagged =
        event->key.len > TIER_PREFIX_BYTES ? find(tags, event->key.ptr) : NULL;
    size_t count = 0;
    if (!tagged)
        return 0;
    if (!event->tombstone)
        ret_tags[count] = tag_of(tags, tagged, event->field, after);
    count += !event->tombstone && ret_tags[count].len;
    if (event->created)
        return count;
    struct slice prev = history->ops->prev(history, event);
    if (UNLIKELY(!prev.len)) /* every watch of a tag must report that it is gone */
        return WATCH_TAGS_UNKNOWN;
    ret_tags[count] = tag_of(tags, tagged, prev, before);
    bool another = ret_tags[count].len && (!count || !slice_equal(ret_tags[0], ret_tags[1]));
    return count + another;
}

/* -- Watches -- */

void tier_tags_init(struct tier_tags *tags, struct watch_hub *hub)
{
    list_init(&tags->prefixes);
    watch_hub_set_tagger(hub, find_tags, tags);
}

void tier_tags_fini(struct tier_tags *tags)
{
    assert(list_empty(&tags->prefixes));
    buf_fini(&tags->scratch);
}

struct tier_tagged *tier_tags_join(struct tier_tags *tags, const uint8_t prefix[TIER_PREFIX_BYTES],
                                   enum tier_encoding encoding, const struct kube_kind *kind,
                                   const struct kube_selection *selection,
                                   uint8_t tag[TIER_TAG_BYTES_MAX], struct slice *ret_tag)
{
    struct slice value;
    if (!kind->indexed_field ||
        !kube_selection_requires(selection, slice_from_text(kind->indexed_field), &value))
        return NULL;
    *ret_tag = make_tag(prefix, value, tag);
    if (!ret_tag->len)
        return NULL;
    struct tier_tagged *tagged = find(tags, prefix);
    if (!tagged) {
        tagged = xcalloc(1, sizeof(*tagged));
        memcpy(tagged->prefix, prefix, TIER_PREFIX_BYTES);
        tagged->encoding = encoding;
        tagged->kind = kind;
        list_push_back(&tags->prefixes, &tagged->in_tags);
    }
    tagged->watches++;
    return tagged;
}

void tier_tags_leave(struct tier_tagged *tagged)
{
    if (!tagged || --tagged->watches)
        return;
    list_remove(&tagged->in_tags);
    free(tagged);
}

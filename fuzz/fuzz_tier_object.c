/*
 * Input: a byte that selects an encoding, and an object as a kube-apiserver sends it. What the
 * mirror reads of it agrees with what is derived from it: the object of a deletion, which has the
 * same name and another version, an item of a list, and what selectors see.
 */
#include "cost.h"

#include "codec/json/tree.h"
#include "codec/utf8.h"
#include "kubeclient/data/framer.h"
#include "kubeclient/data/protobuf.h"
#include "tier/mirror/arrived.h"
#include "tier/object/frame.h"
#include "tier/object/object.h"

#include <assert.h>

/* The bytes of a long field are skipped without a look at each, so that short ones after it would
 * look like work that grows faster than the input. */
enum { OBJECT_BYTES_MAX = 8192, VERSION = 123456 };

static bool is_within(struct slice part, struct slice whole)
{
    return !part.len || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

/* The name in the view, which selectors compare. */
static void check_view(enum tier_encoding encoding, const struct kube_kind *kind,
                       struct slice object)
{
    AUTO(buf_fini) struct buf scratch = {0};
    struct kube_object view;
    struct slice name;
    enum status status = tier_object_view(encoding, kind, object, &scratch, &view);
    assert(status == ST_OK || status == ST_MALFORMED || status == ST_NOMEM);
    if (status == ST_OK && kube_object_field(&view, SLICE_LITERAL("metadata.name"), &name))
        assert(is_within(name, tier_encoding_is_protobuf(encoding) ? buf_slice(&scratch) : object));
}

/* With another version it is the same object. */
static void check_version(enum tier_encoding encoding, struct slice object,
                          const struct arrived *arrived)
{
    AUTO(buf_fini) struct buf changed = {0};
    AUTO(buf_fini) struct buf key = {0};
    struct arrived again;
    enum status status = tier_object_append_at(encoding, object, VERSION, &changed);
    assert(status == ST_OK || status == ST_MALFORMED || status == ST_NOMEM);
    if (status != ST_OK)
        return;
    status = arrived_read(buf_slice(&changed), &key, &again);
    assert(status == ST_NOMEM ||
           (status == ST_OK && again.version == VERSION && slice_equal(again.key, arrived->key) &&
            again.lacks_kind == arrived->lacks_kind));
}

static void check_item(enum tier_encoding encoding, struct slice object)
{
    struct slice head, rest;
    if (tier_encoding_is_protobuf(encoding)) {
        assert(is_within(tier_object_message(object), object));
        return;
    }
    rest = tier_object_item(object, &head);
    assert(is_within(rest, object) && (head.len == 0 || head.len == 1));
}

/* An event with it is one frame of a watch. */
static void check_event(enum tier_encoding encoding, struct slice object)
{
    AUTO(buf_fini) struct buf event = {0};
    uint8_t head[TIER_EVENT_HEAD_BYTES];
    size_t len = tier_event_head(encoding, TIER_EVENT_MODIFIED, object.len, head);
    assert(len <= sizeof(head));
    if (buf_append(&event, slice_of(head, len)) != ST_OK || buf_append(&event, object) != ST_OK ||
        buf_append(&event, tier_event_tail(encoding)) != ST_OK)
        return;
    if (tier_encoding_is_protobuf(encoding)) {
        const uint8_t *at = event.ptr;
        size_t length = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
        assert(length == event.len - 4);
    }
}

/* Its kinds are written into bookmarks and heads of lists, which are JSON if the object was. */
static void check_kinds(struct slice object)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice kind, api_version;
    char kind_text[256], version_text[256];
    struct arena arena;
    struct json_node *tree;
    struct error error;
    arrived_read_kind(object, &kind, &api_version);
    assert(is_within(kind, object) && is_within(api_version, object));
    if (envelope_begins(object) || !utf8_valid(kind) || !utf8_valid(api_version) ||
        kind.len >= sizeof(kind_text) || api_version.len >= sizeof(version_text) ||
        (kind.len && memchr(kind.ptr, 0, kind.len)) ||
        (api_version.len && memchr(api_version.ptr, 0, api_version.len)))
        return;
    slice_copy(kind_text, kind);
    kind_text[kind.len] = 0;
    slice_copy(version_text, api_version);
    version_text[api_version.len] = 0;
    struct tier_kind made = {
        .kind = kind_text, .list_kind = kind_text, .api_version = version_text};
    struct tier_list_meta meta = {.version = VERSION, .remaining = -1};
    if (tier_append_list_head(TIER_JSON, &made, &meta, 0, &text) != ST_OK ||
        buf_append(&text, tier_list_tail(TIER_JSON)) != ST_OK)
        return;
    arena_init(&arena, NULL, 0, 1 << 20);
    enum status status = json_tree_read(&arena, buf_slice(&text), &tree, &error);
    assert(status == ST_OK || status == ST_NOMEM);
    arena_fini(&arena);
}

FUZZ_INPUT(.steps_per_byte = 1000)
{
    AUTO(buf_fini) struct buf key = {0};
    struct arrived arrived;
    const struct kube_kind *pods =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("pods"));
    if (!size || size > OBJECT_BYTES_MAX)
        return 0;
    struct slice object = slice_of(data + 1, size - 1);
    enum tier_encoding encoding = data[0] % TIER_ENCODINGS;
    if (envelope_begins(object) != tier_encoding_is_protobuf(encoding))
        return 0;
    check_kinds(object);
    check_view(encoding, data[0] & 4 ? pods : NULL, object);
    check_item(encoding, object);
    check_event(encoding, object);
    enum status status = arrived_read(object, &key, &arrived);
    assert(status == ST_OK || status == ST_MALFORMED || status == ST_INVALID ||
           status == ST_LIMIT || status == ST_NOMEM);
    if (status != ST_OK)
        return 0;
    assert(arrived.key.len > 0 && arrived.key.len <= ARRIVED_KEY_BYTES_MAX && arrived.version > 0);
    check_version(encoding, object, &arrived);
    return 0;
}

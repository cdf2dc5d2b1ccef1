/*
 * Input: a label selector, a field selector and an object, separated by zero bytes. The selectors
 * give the same result for the same object without unnecessary escapes, and an object that matches
 * also passes field_selector_may_match.
 */
#include "cost.h"

#include "codec/json/tree.h"
#include "kube/request/field_selector.h"
#include "kube/request/label_selector.h"
#include "kube/types/kind.h"

enum { ARENA_BYTES_MAX = 64 << 20 };

struct selectors {
    const struct label_selector *labels;
    const struct field_selector *fields;
};

static bool matches(const struct selectors *s, struct slice json, bool *ret_matches)
{
    struct kube_object object;
    struct kube_field_memo memo = {0};
    if (kube_object_parse(json, &object) != ST_OK)
        return false;
    bool labels = label_selector_matches(s->labels, object.labels);
    bool fields = field_selector_matches(s->fields, &object);
    object.memo = &memo;
    assert(field_selector_matches(s->fields, &object) == fields);
    assert(!fields || field_selector_may_match(s->fields, json));
    *ret_matches = labels && fields;
    return true;
}

/* For a key that occurs twice, a scan may find another value than a tree. */
static void check_again(struct arena *arena, const struct selectors *s, struct slice json,
                        bool matched)
{
    AUTO(buf_fini) struct buf repeats = {0};
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *root;
    struct error error;
    bool again;
    if (json_tree_read_strict(arena, json, &root, &repeats, &error) != ST_OK || repeats.len ||
        json_tree_write(root, &text) != ST_OK)
        return;
    assert(matches(s, buf_slice(&text), &again));
    assert(again == matched);
}

FUZZ_INPUT(.memory_bytes = 2 * ARENA_BYTES_MAX)
{
    struct slice rest = slice_of(data, size);
    struct slice labels = slice_cut(&rest, '\0'), fields = slice_cut(&rest, '\0');
    const struct kube_kind *pods =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("pods"));
    struct selectors s;
    struct arena arena;
    struct error error;
    bool matched;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    if (label_selector_parse(&arena, labels, &s.labels, &error) == ST_OK &&
        field_selector_parse(&arena, fields, pods, &s.fields, &error) == ST_OK &&
        matches(&s, rest, &matched))
        check_again(&arena, &s, rest, matched);
    arena_fini(&arena);
    return 0;
}

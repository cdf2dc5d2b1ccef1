/*
 * Input: a byte that selects the kind, then the JSON of an object that is printed. Its cells are a
 * JSON array with one item for each column.
 */
#include "cost.h"

#include "codec/json/tree.h"
#include "kube/call/table/table.h"
#include "kube/custom/definition.h"
#include "kube/types/kind.h"

/* A definition with columns of every type, and paths of every form. */
static const char definition_text[] =
    "{\"metadata\":{\"name\":\"hats.example.com\"},"
    "\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\","
    "\"names\":{\"plural\":\"hats\",\"kind\":\"Hat\",\"listKind\":\"HatList\"},"
    "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
    "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}},"
    "\"additionalPrinterColumns\":["
    "{\"name\":\"A\",\"type\":\"string\",\"jsonPath\":\".spec.a\"},"
    "{\"name\":\"B\",\"type\":\"integer\",\"jsonPath\":\".spec.items[*].b\"},"
    "{\"name\":\"C\",\"type\":\"date\",\"jsonPath\":\".metadata.creationTimestamp\"},"
    "{\"name\":\"D\",\"type\":\"string\","
    "\"jsonPath\":\".status.conditions[?(@.type=='Ready')].status\"},"
    "{\"name\":\"E\",\"type\":\"boolean\",\"jsonPath\":\".spec.e\"},"
    "{\"name\":\"F\",\"type\":\"number\",\"jsonPath\":\".spec.items[1].f\"}]}]},"
    "\"status\":{\"acceptedNames\":{\"plural\":\"hats\",\"kind\":\"Hat\",\"listKind\":\"HatList\"},"
    "\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}";

/* Created once, and never freed. */
static const struct kube_kind *custom_kind(void)
{
    static struct kube_definition *definition;
    if (!definition) {
        static struct schema_pool *pool;
        pool = schema_pool_new();
        enum status status =
            kube_definition_new(pool, slice_from_text(definition_text), 1, &definition);
        assert(status == ST_OK);
    }
    return &definition->versions[0].kind;
}

static size_t count_items(struct arena *arena, const struct buf *text)
{
    struct json_node *root;
    struct error error;
    assert(json_tree_read(arena, buf_slice(text), &root, &error) == ST_OK);
    assert(root->type == JSON_TYPE_ARRAY);
    return root->count;
}

/* A cell may be as long as the object, and a tree takes tens of bytes for each byte of JSON. */
FUZZ_INPUT()
{
    AUTO(buf_fini) struct buf cells = {0};
    AUTO(buf_fini) struct buf columns = {0};
    struct arena arena;
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    if (!size)
        return 0;
    const struct kube_kind *kind = data[0] < count ? &kinds[data[0]] : custom_kind();
    struct slice json = slice_of(data + 1, size - 1);
    assert(kube_table_columns(kind, &columns) == ST_OK);
    assert(kube_table_cells(kind, json, 1800000000, &cells) == ST_OK);
    arena_init(&arena, NULL, 0, (64 << 10) + 64 * cells.len);
    assert(count_items(&arena, &cells) == count_items(&arena, &columns));
    arena_fini(&arena);
    return 0;
}

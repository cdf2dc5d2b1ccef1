#include "kube/custom/schema_pool.h"

#include "base/lock.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "kube/custom/schema/patterns.h"

#include <stdlib.h>

struct schema_pool {
    struct lock lock; /* protects the map below, and the reference counts of all schemas */
    struct hash_map by_text;
    struct schema_pool_stats stats;
};

struct pool_schema {
    struct schema_pool *pool;
    size_t refs; /* protected by the pool's lock */

    struct lock compiling; /* protects the members below until `tried` or `tried_rules` is set */
    atomic_bool tried;
    const struct schema *compiled; /* NULL: it does not compile */
    bool has_rules;
    struct arena arena;

    atomic_bool tried_rules;
    const struct rule_node *rules; /* NULL: there are none, or there was no memory */

    size_t len;
    uint8_t text[];
};

static struct slice text_key(const void *value)
{
    return pool_schema_text(value);
}

struct schema_pool *schema_pool_new(void)
{
    struct schema_pool *pool = xcalloc(1, sizeof(*pool));
    lock_init(&pool->lock);
    hash_map_init(&pool->by_text, text_key, random_seed_system());
    return pool;
}

void schema_pool_free(struct schema_pool *pool)
{
    if (!pool)
        return;
    assert(!pool->by_text.count);
    hash_map_fini(&pool->by_text);
    lock_fini(&pool->lock);
    free(pool);
}

/* -- Lookup and release -- */

static struct pool_schema *make(struct schema_pool *pool, struct slice text)
{
    struct pool_schema *made = xcalloc(1, sizeof(*made) + text.len);
    void *replaced;
    made->pool = pool;
    lock_init(&made->compiling);
    arena_init(&made->arena, NULL, 0, SCHEMA_BYTES_MAX);
    made->len = text.len;
    slice_copy(made->text, text);
    if (hash_map_put(&pool->by_text, made, &replaced) != ST_OK)
        abort(); /* out of memory, handled as everywhere in this layer */
    pool->stats.schemas++;
    pool->stats.text_bytes += text.len;
    return made;
}

struct pool_schema *schema_pool_get(struct schema_pool *pool, struct slice text)
{
    LOCK_SCOPE(&pool->lock);
    struct pool_schema *schema = hash_map_get(&pool->by_text, text);
    if (!schema)
        schema = make(pool, text);
    schema->refs++;
    return schema;
}

/* Returns true if this was the last reference; the schema is no longer in the pool then. */
static bool release(struct pool_schema *schema)
{
    struct schema_pool *pool = schema->pool;
    LOCK_SCOPE(&pool->lock);
    if (--schema->refs)
        return false;
    hash_map_remove(&pool->by_text, pool_schema_text(schema));
    pool->stats.schemas--;
    pool->stats.text_bytes -= schema->len;
    pool->stats.compiled -= schema->compiled != NULL;
    pool->stats.compiled_bytes -= schema->arena.held_bytes;
    return true;
}

void pool_schema_unref(struct pool_schema *schema)
{
    if (!schema || !release(schema))
        return;
    lock_fini(&schema->compiling);
    arena_fini(&schema->arena);
    free(schema);
}

struct slice pool_schema_text(const struct pool_schema *schema)
{
    return slice_of(schema->text, schema->len);
}

/* -- Compiling -- */

static enum status compile_in(struct pool_schema *schema, struct arena *tree)
{
    struct schema_traits traits = {0};
    struct patterns patterns;
    struct json_node *node;
    struct error error;
    TRY(json_tree_read(tree, pool_schema_text(schema), &node, &error));
    patterns_init(&patterns, &schema->arena);
    enum status status =
        schema_compile(&schema->arena, &patterns, node, &schema->compiled, &traits, &error);
    patterns_fini(&patterns);
    schema->has_rules = traits.has_rules;
    return status;
}

static void compile(struct pool_schema *schema)
{
    struct schema_pool *pool = schema->pool;
    struct arena tree;
    arena_init(&tree, NULL, 0, SCHEMA_BYTES_MAX);
    if (compile_in(schema, &tree) != ST_OK) {
        schema->compiled = NULL;
        arena_fini(&schema->arena);
    }
    arena_fini(&tree);
    LOCK_SCOPE(&pool->lock);
    pool->stats.compiled += schema->compiled != NULL;
    pool->stats.compiled_bytes += schema->arena.held_bytes;
}

const struct schema *pool_schema_compiled(struct pool_schema *schema)
{
    if (atomic_load_explicit(&schema->tried, memory_order_acquire))
        return schema->compiled;
    LOCK_SCOPE(&schema->compiling);
    if (!atomic_load_explicit(&schema->tried, memory_order_relaxed))
        compile(schema);
    atomic_store_explicit(&schema->tried, true, memory_order_release);
    return schema->compiled;
}

static void compile_rules(struct pool_schema *schema)
{
    struct schema_pool *pool = schema->pool;
    size_t before = schema->arena.held_bytes;
    if (rule_tree_new(&schema->arena, schema->compiled, true, &schema->rules) != ST_OK)
        schema->rules = NULL;
    LOCK_SCOPE(&pool->lock);
    pool->stats.compiled_bytes += schema->arena.held_bytes - before;
}

bool pool_schema_rules_ready(const struct pool_schema *schema)
{
    return atomic_load_explicit(&schema->tried, memory_order_acquire) &&
           (!schema->has_rules || atomic_load_explicit(&schema->tried_rules, memory_order_acquire));
}

enum status pool_schema_rules(struct pool_schema *schema, const struct rule_node **ret_rules)
{
    assert(pool_schema_compiled(schema));
    if (schema->has_rules && !atomic_load_explicit(&schema->tried_rules, memory_order_acquire)) {
        LOCK_SCOPE(&schema->compiling);
        if (!atomic_load_explicit(&schema->tried_rules, memory_order_relaxed))
            compile_rules(schema);
        atomic_store_explicit(&schema->tried_rules, true, memory_order_release);
    }
    if (schema->has_rules && !schema->rules)
        return ST_NOMEM;
    *ret_rules = schema->rules;
    return ST_OK;
}

size_t pool_schema_work(const struct pool_schema *schema)
{
    return atomic_load_explicit(&schema->tried, memory_order_acquire) ? 0 : schema->len;
}

/* -- Statistics -- */

void schema_pool_check(struct schema_pool *pool)
{
    LOCK_SCOPE(&pool->lock);
    struct schema_pool_stats sum = {0};
    const struct pool_schema *schema;
    hash_map_check(&pool->by_text);
    MAP_FOREACH (schema, &pool->by_text) {
        assert(schema->pool == pool);
        assert(schema->refs);
        sum.schemas++;
        sum.text_bytes += schema->len;
    }
    assert(sum.schemas == pool->stats.schemas);
    assert(sum.text_bytes == pool->stats.text_bytes);
    assert(pool->stats.compiled <= pool->stats.schemas);
}

struct schema_pool_stats schema_pool_stats(struct schema_pool *pool)
{
    LOCK_SCOPE(&pool->lock);
    return pool->stats;
}

void schema_pool_write_metrics(struct schema_pool *pool, struct metric_page *page)
{
    struct schema_pool_stats stats = schema_pool_stats(pool);
    metric_page_gauge(page, "vigil_kube_schemas", "Distinct schemas of custom resources in use.",
                      stats.schemas);
    metric_page_gauge(page, "vigil_kube_schemas_compiled",
                      "Schemas of custom resources that are compiled.", stats.compiled);
    metric_page_gauge(page, "vigil_kube_schema_text_bytes", "Bytes of the texts of these schemas.",
                      stats.text_bytes);
    metric_page_gauge(page, "vigil_kube_schema_compiled_bytes", "Bytes of the compiled schemas.",
                      stats.compiled_bytes);
}

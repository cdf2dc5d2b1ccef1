/*
 * The schemas of all definitions of a server: each text is stored once, no matter how many threads,
 * definitions and versions use it, together with its compiled form, which is made when it is first
 * needed. Schemas are reference-counted and freed with the last definition that uses them: a set of
 * kinds holds its definitions, and calls, watches and documents hold the set or the definition.
 *
 *     thread ─► kinds ─► definition ─► version ─┐
 *     thread ─► kinds ─► definition ─► version ─┴► schema: text, compiled (read-only)
 *
 * Used by every thread: the pool's lock is held while a text is looked up or released, and a lock
 * of the schema while it is compiled, so that only one thread compiles it.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_POOL_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_POOL_H

#include "base/metric/page.h"
#include "kube/custom/rules/tree.h"
#include "kube/custom/schema/structural.h"

/* Limit on the size of a compiled schema; compiling needs as much again. */
enum { SCHEMA_BYTES_MAX = 32 << 20 };

struct schema_pool;
struct pool_schema;

struct schema_pool *schema_pool_new(void);
/* Asserts that the pool is consistent; for tests. */
void schema_pool_check(struct schema_pool *pool);
/* The pool must be empty. Accepts NULL. */
void schema_pool_free(struct schema_pool *pool);

/*
 * Returns the schema of this text with a reference for the caller. text: the JSON of a schema;
 * empty: no schema.
 */
struct pool_schema *schema_pool_get(struct schema_pool *pool, struct slice text);
void pool_schema_unref(struct pool_schema *schema); /* accepts NULL */

struct slice pool_schema_text(const struct pool_schema *schema);
/* Bytes of text that must be compiled before it can be used; 0 if that is done. */
size_t pool_schema_work(const struct pool_schema *schema);
/* NULL: it does not compile. Valid as long as the schema. */
const struct schema *pool_schema_compiled(struct pool_schema *schema);
/* Whether nothing is left to be compiled. */
bool pool_schema_rules_ready(const struct pool_schema *schema);
/*
 * The rules of a schema that compiles; they are compiled when they are first needed. *ret_rules
 * is NULL if it has none. ST_NOMEM: they take too much memory.
 */
MUST_CHECK
enum status pool_schema_rules(struct pool_schema *schema, const struct rule_node **ret_rules);

/* Only schemas in use are stored, so these numbers are bounded by the existing definitions. */
struct schema_pool_stats {
    size_t schemas, compiled;
    size_t text_bytes, compiled_bytes;
};
struct schema_pool_stats schema_pool_stats(struct schema_pool *pool);
void schema_pool_write_metrics(struct schema_pool *pool, struct metric_page *page);

#endif

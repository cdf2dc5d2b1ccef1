/*
 * The schemas of all definitions of a server: each text once, whichever threads, definitions and
 * versions have it, and beside it what it is compiled to, made for the first who asks. Each is
 * counted and goes with the last definition that has it: a picture of kinds holds its definitions,
 * and calls, watches and documents hold the picture or the definition that they work by.
 *
 *     thread ─► picture ─► definition ─► version ─┐
 *     thread ─► picture ─► definition ─► version ─┴► schema: text, compiled (read-only)
 *
 * For every thread: a lock is held while a text is looked for or the last of its users goes, and
 * one of the schema's own while it is compiled, so that no two threads do so.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_POOL_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_POOL_H

#include "base/metric/page.h"
#include "kube/custom/schema/structural.h"

enum { SCHEMA_BYTES_MAX = 32 << 20 }; /* compiled; and as much while it is made */

struct schema_pool;
struct pool_schema;

struct schema_pool *schema_pool_new(void);
/* Nothing may be left in it. Accepts NULL. */
void schema_pool_free(struct schema_pool *pool);

/* The one of this text, counted for the caller. JSON of a schema; empty: there is none. */
struct pool_schema *schema_pool_get(struct schema_pool *pool, struct slice text);
void pool_schema_unref(struct pool_schema *schema); /* accepts NULL */

struct slice pool_schema_text(const struct pool_schema *schema);
/* How many bytes of text have to be compiled before it can be used; 0: that has been done. */
size_t pool_schema_work(const struct pool_schema *schema);
/* NULL: it cannot be compiled. Lives as long as the schema. */
const struct schema *pool_schema_compiled(struct pool_schema *schema);

/* What is held: by its users only, so that it is bounded by what definitions there are. */
struct schema_pool_stats {
    size_t schemas, compiled;
    size_t text_bytes, compiled_bytes;
};
struct schema_pool_stats schema_pool_stats(struct schema_pool *pool);
void schema_pool_write_metrics(struct schema_pool *pool, struct metric_page *page);

#endif

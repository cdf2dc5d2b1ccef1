/*
 * Input: a schema and an object, two JSON texts separated by a zero byte. If the schema compiles,
 * the object is pruned, defaulted and validated; repeating the first two changes nothing. The
 * schema is also checked as part of a definition, and the object's bytes are parsed as a path and
 * as a pattern.
 */
#include "cost.h"

#include "kube/custom/definition_check.h"
#include "kube/custom/jsonpath.h"
#include "kube/custom/schema/structural.h"
#include "kube/custom/schema_check.h"
#include "regex/regex.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

static void use(struct arena *arena, const struct schema *schema, struct json_node *value)
{
    struct kube_field_errors errors = {.arena = arena};
    if (schema_prune(schema, value, true, NULL) != ST_OK ||
        schema_default(arena, schema, value) != ST_OK)
        return;
    struct json_node *copy = json_node_copy(arena, value);
    if (copy && schema_prune(schema, copy, true, NULL) == ST_OK &&
        schema_default(arena, schema, copy) == ST_OK)
        (void)json_node_equal(copy,
                              value); /* a default may have fields that the schema does not allow */
    schema_validate(schema, value, copy, SLICE_EMPTY, arena, &errors);
    schema_validate(schema, value, NULL, SLICE_LITERAL("status"), arena, &errors);
    schema_validate_embedded(schema, value, arena, &errors);
    schema_validate_lists(schema, value, arena, &errors);
}

static void check(struct arena *arena, struct json_node *schema)
{
    struct kube_field_errors errors = {.arena = arena};
    struct definition_check walk = {.arena = arena, .errors = &errors, .steps = SCHEMA_STEPS_MAX};
    AUTO(buf_fini) struct buf warning = {0};
    patterns_init(&walk.patterns, arena);
    check_schema(&walk, schema, true, &warning);
    kube_definition_validate(arena, schema, NULL, &errors, &warning);
    kube_definition_validate(arena, schema, schema, &errors, &warning);
    patterns_fini(&walk.patterns);
    buf_fini(&walk.path);
}

static void match(struct arena *arena, struct slice text)
{
    const struct jsonpath *path;
    const struct regex *regex;
    struct error error;
    int64_t steps = 100000;
    (void)!jsonpath_parse(arena, text, &path);
    struct regex_scratch scratch = {.arena = arena};
    if (regex_compile(arena, text, &regex, &error) == ST_OK)
        (void)regex_match(regex, text, &scratch, &steps);
}

static void fuzz(struct arena *arena, struct slice bytes)
{
    const uint8_t *zero = bytes.len ? memchr(bytes.ptr, 0, bytes.len) : NULL;
    struct json_node *node, *value;
    const struct schema *schema;
    struct patterns patterns;
    struct schema_traits traits = {0};
    struct error error;
    size_t len = zero ? (size_t)(zero - bytes.ptr) : bytes.len;
    size_t rest = zero ? len + 1 : len;
    match(arena, slice_sub(bytes, rest, bytes.len - rest));
    if (json_tree_read(arena, slice_sub(bytes, 0, len), &node, &error) != ST_OK)
        return;
    check(arena, node);
    patterns_init(&patterns, arena);
    enum status status = schema_compile(arena, &patterns, node, &schema, &traits, &error);
    patterns_fini(&patterns);
    if (status != ST_OK)
        return;
    if (json_tree_read(arena, slice_sub(bytes, rest, bytes.len - rest), &value, &error) == ST_OK)
        use(arena, schema, value);
}

FUZZ_INPUT()
{
    struct arena arena;
    /* A copy of exactly this size, so that sanitizers detect a read past its end. */
    uint8_t *copy = malloc(size ? size : 1);
    assert(copy);
    if (size)
        memcpy(copy, data, size);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    fuzz(&arena, slice_of(copy, size));
    arena_fini(&arena);
    free(copy);
    return 0;
}

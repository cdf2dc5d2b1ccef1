/*
 * What the rules of custom resources cost: compiled, for the definition in the given file (JSON),
 * and evaluated for a write. Prints one JSON object for `make bench`; bench/clients/kuberules does
 * the same with Kubernetes' own library.
 */
#include "io/whole_file.h"
#include "kube/custom/rules/evaluate.h"
#include "kube/custom/schema/patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    COMPILE_ROUNDS = 20,
    EVALUATE_ROUNDS = 50,
    EVALUATIONS = 2000,
    FILE_BYTES_MAX = 16 << 20,
    ARENA_BYTES_MAX = 256 << 20,
};

static const char simple[] =
    "{\"type\":\"object\",\"properties\":{\"replicas\":{\"type\":\"integer\"},\"max\":{\"type\":"
    "\"integer\"}},\"x-kubernetes-validations\":[{\"rule\":\"self.replicas <= self.max\"}]}";
static const char object[] = "{\"replicas\":3,\"max\":10}";

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rules_bench: %s failed\n", what);
    exit(1);
}

static const struct json_node *read_json(struct arena *arena, struct slice text)
{
    struct json_node *root;
    struct error error;
    must(json_tree_read(arena, text, &root, &error) == ST_OK, "reading JSON");
    return root;
}

/* The schema of the version that is stored. */
static const struct json_node *stored_schema(const struct json_node *definition)
{
    const struct json_node *version = json_node_items_at(definition, "spec.versions");
    while (version && !json_node_is_true(json_node_named(version, "storage")))
        version = version->next;
    version = json_node_path(version, "schema.openAPIV3Schema");
    must(version, "finding the version that is stored");
    return version;
}

static size_t count_rules(const struct json_node *node)
{
    size_t count = slice_is(node->key, "x-kubernetes-validations") ? node->count : 0;
    for (const struct json_node *child = node->first; child; child = child->next)
        count += count_rules(child);
    return count;
}

static const struct schema *compile_schema(struct arena *arena, const struct json_node *node)
{
    struct patterns patterns;
    struct schema_traits traits = {0};
    const struct schema *schema;
    struct error error;
    patterns_init(&patterns, arena);
    must(schema_compile(arena, &patterns, node, &schema, &traits, &error) == ST_OK,
         "compiling the schema");
    patterns_fini(&patterns);
    return schema;
}

static size_t used_bytes(const struct arena *arena)
{
    return arena->held_bytes - (size_t)(arena->end - arena->next);
}

/* Milliseconds, and the bytes that the programs hold. */
static double compile(const struct json_node *node, size_t *ret_bytes)
{
    double best = 1e18;
    for (unsigned round = 0; round < COMPILE_ROUNDS; round++) {
        const struct rule_node *rules;
        struct arena arena;
        arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
        const struct schema *schema = compile_schema(&arena, node);
        size_t before = used_bytes(&arena);
        double start = now_ns();
        must(rule_tree_new(&arena, schema, true, &rules) == ST_OK && rules, "compiling the rules");
        double took = now_ns() - start;
        best = took < best ? took : best;
        *ret_bytes = used_bytes(&arena) - before;
        arena_fini(&arena);
    }
    return best / 1e6;
}

static void evaluate_one(const struct rule_node *rules, const struct json_node *value)
{
    uint8_t first[1024];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), ARENA_BYTES_MAX);
    struct kube_field_errors errors = {.arena = &arena};
    struct rule_evaluation evaluation = {.arena = &arena,
                                         .errors = &errors,
                                         .call_max = RULE_CALL_COST_MAX,
                                         .budget = RULE_WRITE_COST_MAX};
    rules_evaluate(rules, value, NULL, SLICE_EMPTY, &evaluation);
    must(!errors.count && evaluation.budget < RULE_WRITE_COST_MAX, "the rule");
    arena_fini(&arena);
}

/* Microseconds for the rules of one object. */
static double evaluate(struct arena *arena)
{
    const struct rule_node *rules;
    const struct json_node *value = read_json(arena, slice_from_text(object));
    const struct schema *schema = compile_schema(arena, read_json(arena, slice_from_text(simple)));
    double best = 1e18;
    must(rule_tree_new(arena, schema, false, &rules) == ST_OK && rules, "compiling the rule");
    for (unsigned round = 0; round < EVALUATE_ROUNDS; round++) {
        double start = now_ns();
        for (unsigned i = 0; i < EVALUATIONS; i++)
            evaluate_one(rules, value);
        double took = (now_ns() - start) / EVALUATIONS;
        best = took < best ? took : best;
    }
    return best / 1e3;
}

int main(int argc, char **argv)
{
    AUTO(buf_fini) struct buf text = {0};
    struct error error;
    struct arena arena;
    size_t bytes = 0;
    must(argc == 2, "the name of a file");
    must(whole_file_read(argv[1], WHOLE_FILE_REGULAR, FILE_BYTES_MAX, &text, &error) == ST_OK,
         argv[1]);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    const struct json_node *node = stored_schema(read_json(&arena, buf_slice(&text)));
    size_t rules = count_rules(node);
    double milliseconds = compile(node, &bytes);
    printf("{\"rules\": %zu, \"compile_ms\": %.4f, \"bytes_of_rule\": %zu, \"rule_us\": %.4f}\n",
           rules, milliseconds, bytes / rules, evaluate(&arena));
    arena_fini(&arena);
    return 0;
}

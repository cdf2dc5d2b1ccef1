/*
 * The C side of tests/kube_oracle.py and tests/kube/oracle; see oracle.h for its requests.
 *
 *     d protobuf                            JSON
 *     e JSON                                protobuf
 *     p apiVersion kind object patch        object, by a strategic merge patch
 *     j object patch                        object, by a JSON patch
 *     m object patch                        object, by a JSON merge patch
 *     a apiVersion kind how manager managedFields live object
 *                                           {"object":…,"managedFields":…}; how: apply, force,
 *                                           update
 *     s apiVersion kind object              strict validation's message, empty if the object is
 *                                           valid
 *     n JSON                                the same JSON as it is understood
 *     y YAML                                JSON
 *     w JSON                                YAML
 *     v schema object old path root budget call
 *                                           {"errors":…,"warnings":…,"left":…}, by the rules of a
 *                                           schema; old: empty if there is none; root: "root" if
 *                                           the schema is that of a whole resource; call: the most
 *                                           that one expression may cost
 *     r schema root                         [{"error":…,"message":…,"cost":…,"messageCost":…,
 *                                           "usesOld":…}], of each rule of a schema
 *     f schema path                         the field of a fieldPath, or why it has none
 *     c definition                          {"errors":…,"costs":[{"field":…,"cost":…,"wrong":…}]},
 *                                           of a CustomResourceDefinition
 */
#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "kube/custom/definition_report.h"
#include "kube/custom/rules/evaluate.h"
#include "kube/custom/rules/field_path.h"
#include "kube/custom/rules/types.h"
#include "kube/custom/schema/patterns.h"
#include "kube/merge/apply/apply.h"
#include "kube/merge/apply/conflict.h"
#include "kube/merge/patch/patch.h"
#include "kube/types/schema/protobuf.h"
#include "kube/types/schema/strict.h"
#include "yaml/yaml.h"

#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXTS_MAX = 7 };

static enum status decode(struct arena *arena, struct slice *texts, struct buf *out,
                          struct error *error)
{
    struct json_node *object;
    TRY(kube_protobuf_decode(arena, texts[0], &object, error));
    return json_tree_write(object, out);
}

static enum status encode(struct arena *arena, struct slice *texts, struct buf *out,
                          struct error *error)
{
    struct json_node *object;
    TRY(json_tree_read(arena, texts[0], &object, error));
    return kube_protobuf_encode(arena, object, out, error);
}

static enum status patch(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error)
{
    struct json_node *object, *change;
    const struct kube_type *type = kube_type_find(texts[0], texts[1]);
    if (!type)
        oracle_fail("unknown kind");
    TRY(json_tree_read(arena, texts[2], &object, error));
    TRY(json_tree_read(arena, texts[3], &change, error));
    TRY(patch_strategic(arena, type, object, change, &object, error));
    return json_tree_write(object, out);
}

static enum status check(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error)
{
    struct json_node *object;
    const struct kube_type *type = kube_type_find(texts[0], texts[1]);
    if (!type)
        oracle_fail("unknown kind");
    TRY(json_tree_read(arena, texts[2], &object, error));
    return kube_strict(type, object, out, error);
}

static enum status patch_by_json(struct arena *arena, struct slice *texts, struct buf *out,
                                 struct error *error)
{
    struct json_node *object, *change;
    TRY(json_tree_read(arena, texts[0], &object, error));
    TRY(json_tree_read(arena, texts[1], &change, error));
    TRY(patch_json(arena, object, change, &object, error));
    return json_tree_write(object, out);
}

static enum status merge(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error)
{
    struct json_node *object, *change;
    TRY(json_tree_read(arena, texts[0], &object, error));
    TRY(json_tree_read(arena, texts[1], &change, error));
    TRY(patch_merge(arena, object, change, &object));
    return json_tree_write(object, out);
}

static enum status repeat(struct arena *arena, struct slice *texts, struct buf *out,
                          struct error *error)
{
    struct json_node *value;
    TRY(json_tree_read(arena, texts[0], &value, error));
    return json_tree_write(value, out);
}

static enum status read_yaml(struct arena *arena, struct slice *texts, struct buf *out,
                             struct error *error)
{
    struct json_node *value;
    TRY(yaml_tree_read(arena, texts[0], &value, error));
    return json_tree_write(value, out);
}

static enum status write_yaml(struct arena *arena, struct slice *texts, struct buf *out,
                              struct error *error)
{
    struct json_node *value;
    TRY(json_tree_read(arena, texts[0], &value, error));
    return yaml_tree_write(arena, value, out);
}

/* -- Server-side apply -- */

static bool version_known(const struct apply_request *request, struct slice api_version)
{
    const struct slice *kind = request->ctx;
    return kube_type_find(api_version, *kind);
}

static enum status write_applied(const struct json_node *object, const struct managed *managed,
                                 struct buf *out)
{
    struct json_node *list;
    TRY(managed_write(managed, &list));
    TRY(buf_append_text(out, "{\"object\":"));
    TRY(json_tree_write(object, out));
    TRY(buf_append_text(out, ",\"managedFields\":"));
    TRY(list ? json_tree_write(list, out) : buf_append_text(out, "[]"));
    return buf_append_text(out, "}");
}

/* The texts of conflicts are those of the answer of a server. */
static enum status fail_conflicts(struct arena *arena, const struct apply_conflicts *conflicts,
                                  struct error *error)
{
    struct kube_status status = {0};
    (void)!kube_fail_apply_conflict(&status, arena, conflicts);
    struct slice text =
        status.long_message.len ? status.long_message : slice_from_text(status.message);
    return error_set(error, ST_EXISTS, "%.*s", SLICE_ARGS(text));
}

static enum status apply(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error)
{
    struct json_node *list, *live, *config, *made = NULL;
    struct managed managed = {.arena = arena};
    struct apply_conflicts conflicts;
    AUTO(buf_fini) struct buf faults = {0};
    size_t count;
    bool update = slice_equal(texts[2], SLICE_LITERAL("update"));
    struct apply_request request = {
        .typed = {.arena = arena, .why = error},
        .type = {.kind = APPLY_TYPE_MESSAGE, .of = kube_type_find(texts[0], texts[1])},
        .manager = {.name = texts[3], .api_version = texts[0], .applied = !update},
        .now = SLICE_LITERAL("2026-11-15T06:00:00Z"),
        .force = slice_equal(texts[2], SLICE_LITERAL("force")),
        .version_known = version_known,
        .ctx = &texts[1],
    };
    if (!request.type.of)
        oracle_fail("unknown kind");
    TRY(json_tree_read(arena, texts[4], &list, error));
    TRY(json_tree_read(arena, texts[5], &live, error));
    TRY(json_tree_read(arena, texts[6], &config, error));
    TRY(typed_validate(arena, request.type, config, &faults, &count));
    if (count)
        return error_set(error, ST_INVALID, "errors:%.*s", SLICE_ARGS(buf_slice(&faults)));
    TRY(managed_read(&managed, list));
    if (update) {
        TRY(apply_update(&request, live, config, &managed));
        return write_applied(config, &managed, out);
    }
    enum status status = apply_config(&request, live, config, &managed, &made, &conflicts);
    if (status == ST_EXISTS)
        return fail_conflicts(arena, &conflicts, error);
    TRY(status);
    return write_applied(made ? made : live, &managed, out);
}

/* -- Rules of custom resources -- */

static enum status write_errors(struct arena *arena, const struct kube_field_errors *errors,
                                const char *key, struct json_node *to)
{
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    for (const struct kube_field_error *e = errors->first; list && e; e = e->next) {
        AUTO(buf_fini) struct buf text = {0};
        TRY(buf_append_format(&text, "%.*s: %.*s", SLICE_ARGS(e->field), SLICE_ARGS(e->message)));
        struct json_node *item = json_node_new_text(arena, buf_slice(&text));
        if (!item)
            return ST_NOMEM;
        TRY(json_node_insert(list, NULL, item));
    }
    return json_node_put(arena, to, key, list);
}

static enum status read_schema(struct arena *arena, struct slice text,
                               const struct schema **ret_schema, struct error *error)
{
    struct json_node *node;
    struct schema_traits traits = {0};
    struct patterns patterns;
    TRY(json_tree_read(arena, text, &node, error));
    patterns_init(&patterns, arena);
    enum status status = schema_compile(arena, &patterns, node, ret_schema, &traits, error);
    patterns_fini(&patterns);
    return status;
}

static int64_t read_number(struct arena *arena, struct slice text)
{
    struct json_node *node;
    struct error error;
    int64_t number = 0;
    if (json_tree_read(arena, text, &node, &error) != ST_OK || !json_node_int(node, &number))
        oracle_fail("not a number");
    return number;
}

static enum status check_rules(struct arena *arena, struct slice *texts, struct buf *out,
                               struct error *error)
{
    struct json_node *object, *old = NULL, *answer = json_node_new(arena, JSON_TYPE_OBJECT);
    struct kube_field_errors errors = {.arena = arena}, warnings = {.arena = arena};
    const struct schema *schema;
    const struct rule_node *rules;
    int64_t budget = read_number(arena, texts[5]), call_max = read_number(arena, texts[6]);
    TRY(read_schema(arena, texts[0], &schema, error));
    TRY(json_tree_read(arena, texts[1], &object, error));
    if (texts[2].len)
        TRY(json_tree_read(arena, texts[2], &old, error));
    TRY(rule_tree_new(arena, schema, slice_is(texts[4], "root"), &rules));
    struct rule_evaluation evaluation = {
        .arena = arena,
        .errors = &errors,
        .warnings = old ? &warnings : NULL,
        .call_max = (uint64_t)call_max,
        .budget = budget,
    };
    if (rules)
        rules_evaluate(rules, object, old, texts[3], &evaluation);
    if (!answer)
        return ST_NOMEM;
    TRY(write_errors(arena, &errors, "errors", answer));
    TRY(write_errors(arena, &warnings, "warnings", answer));
    TRY(json_node_put(arena, answer, "left", json_node_new_int(arena, evaluation.budget)));
    return json_tree_write(answer, out);
}

static enum status compile_rules(struct arena *arena, struct slice *texts, struct buf *out,
                                 struct error *error)
{
    const struct schema *schema;
    const struct cel_type *type;
    struct rule_programs programs;
    struct json_writer w;
    TRY(read_schema(arena, texts[0], &schema, error));
    TRY(rule_type_new(arena, schema, slice_is(texts[1], "root"), &type));
    if (!type)
        return error_set(error, ST_INVALID, "the schema has no type");
    TRY(rules_compile(arena, arena, schema, type, &programs));
    json_writer_init(&w, out);
    json_begin_array(&w);
    for (size_t i = 0; i < programs.count; i++) {
        const struct rule_program *program = &programs.list[i];
        json_begin_object(&w);
        json_member_string(&w, "error", program->error);
        json_member_string(&w, "message", program->message_error);
        json_member_u64(&w, "cost", program->cost_max);
        json_member_u64(&w, "messageCost", program->message_cost_max);
        json_member_bool(&w, "usesOld", program->uses_old);
        json_end_object(&w);
    }
    json_end_array(&w);
    return json_writer_finish(&w);
}

static enum status find_field(struct arena *arena, struct slice *texts, struct buf *out,
                              struct error *error)
{
    const struct schema *schema;
    char why[RULE_PATH_WHY_BYTES];
    TRY(read_schema(arena, texts[0], &schema, error));
    enum status status = rule_field_path(schema, texts[1], out, why);
    return status == ST_INVALID ? error_set(error, ST_INVALID, "%s", why) : status;
}

static enum status write_costs(const struct rule_reports *reports, struct buf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_begin_array(&w);
    for (const struct rule_report *report = reports->first; report; report = report->next) {
        if (!report->text.len)
            continue; /* the total of a schema */
        json_begin_object(&w);
        json_member_string(&w, "field", report->field);
        json_member_u64(&w, "cost", report->cost);
        json_member_bool(&w, "wrong", report->error.len > 0);
        json_end_object(&w);
    }
    json_end_array(&w);
    return json_writer_finish(&w);
}

static enum status check_definition(struct arena *arena, struct slice *texts, struct buf *out,
                                    struct error *error)
{
    struct json_node *object, *costs, *answer = json_node_new(arena, JSON_TYPE_OBJECT);
    struct kube_field_errors errors = {.arena = arena};
    struct rule_reports reports;
    AUTO(buf_fini) struct buf list = {0};
    TRY(json_tree_read(arena, texts[0], &object, error));
    TRY(kube_definition_report(arena, object, &reports, &errors));
    TRY(write_costs(&reports, &list));
    TRY(json_tree_read(arena, buf_slice(&list), &costs, error));
    if (!answer)
        return ST_NOMEM;
    TRY(write_errors(arena, &errors, "errors", answer));
    TRY(json_node_put(arena, answer, "costs", costs));
    return json_tree_write(answer, out);
}

/* -- Requests -- */

static const struct kind_of_request {
    char letter;
    int texts;
    enum status (*serve)(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error);
} kinds[] = {
    {'d', 1, decode},        {'e', 1, encode},        {'p', 4, patch},
    {'s', 3, check},         {'j', 2, patch_by_json}, {'m', 2, merge},
    {'a', 7, apply},         {'n', 1, repeat},        {'y', 1, read_yaml},
    {'w', 1, write_yaml},    {'v', 7, check_rules},   {'c', 1, check_definition},
    {'r', 2, compile_rules}, {'f', 2, find_field},
};

static void serve(const struct kind_of_request *kind)
{
    struct slice texts[TEXTS_MAX];
    struct arena arena;
    struct buf out = {0};
    struct error error = {.text = "?"};
    arena_init(&arena, NULL, 0, 256 << 20);
    for (int i = 0; i < kind->texts; i++)
        texts[i] = oracle_read(&arena);
    if (kind->serve(&arena, texts, &out, &error) == ST_OK)
        oracle_answer('+', buf_slice(&out));
    else
        oracle_answer('-', slice_from_text(error.text));
    buf_fini(&out);
    arena_fini(&arena);
}

int main(void)
{
    int letter;
    while ((letter = getchar()) != EOF) {
        size_t at = 0;
        while (at < COUNT_OF(kinds) && kinds[at].letter != letter)
            at++;
        if (at == COUNT_OF(kinds))
            oracle_fail("unknown request");
        serve(&kinds[at]);
    }
    return 0;
}

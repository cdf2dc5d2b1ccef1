#include "cmd/cel/schema.h"

#include "codec/json/writer.h"
#include "io/whole_file.h"
#include "kube/custom/definition_report.h"
#include "yaml/yaml.h"

#include <inttypes.h>
#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };
enum { FILE_BYTES_MAX = 16 << 20, ARENA_BYTES_MAX = 512 << 20 };

struct checked {
    struct rule_reports reports;
    struct kube_field_errors errors;
};

/* -- Reading -- */

static enum status read_definition(struct arena *arena, const char *path,
                                   struct json_node **ret_object, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct error why = {0};
    bool is_input = strcmp(path, "-") == 0;
    TRY(whole_file_read(is_input ? "/dev/stdin" : path, WHOLE_FILE_ANY, FILE_BYTES_MAX, &text,
                        error));
    if (yaml_tree_read(arena, buf_slice(&text), ret_object, &why) != ST_OK)
        return error_set(error, ST_INVALID, "%.300s is neither YAML nor JSON: %s", path,
                         why.text[0] ? why.text : "it takes too much memory");
    const struct json_node *kind = json_node_named(*ret_object, "kind");
    const struct json_node *version = json_node_named(*ret_object, "apiVersion");
    if (!kind || !json_node_is_text(kind, "CustomResourceDefinition") || !version ||
        !json_node_is_text(version, "apiextensions.k8s.io/v1"))
        return error_set(error, ST_INVALID,
                         "%.300s is not a CustomResourceDefinition of apiextensions.k8s.io/v1",
                         path);
    return ST_OK;
}

/* -- Showing -- */

/* Errors of a rule that does not compile are shown with the rule. */
static bool is_of_rule(const struct rule_reports *reports, const struct kube_field_error *error)
{
    if (strcmp(error->reason, "FieldValueInvalid") != 0)
        return false;
    for (const struct rule_report *report = reports->first; report; report = report->next)
        if (report->error.len && slice_equal(report->field, error->field))
            return true;
    return false;
}

static enum status append_share(struct buf *to, const struct rule_report *report)
{
    double percent = 100.0 * (double)report->cost / (double)report->cost_max;
    if (percent > 10000)
        return buf_append_text(to, "cost more than 100 times the limit");
    return buf_append_format(to, "cost %" PRIu64 ", %.*f %% of the limit", report->cost,
                             percent < 10 ? 2 : 0, percent);
}

static enum status append_indented(struct buf *to, struct slice text)
{
    while (text.len) {
        struct slice line = slice_cut(&text, '\n');
        TRY(buf_append_format(to, "    %.*s\n", SLICE_ARGS(line)));
    }
    return ST_OK;
}

static enum status write_text(const struct checked *checked, struct buf *to)
{
    for (const struct rule_report *report = checked->reports.first; report; report = report->next) {
        TRY(buf_append_format(to, "%.*s: ", SLICE_ARGS(report->field)));
        if (!report->error.len) {
            TRY(buf_append_text(to, report->text.len ? "" : "all rules: "));
            TRY(append_share(to, report));
            TRY(buf_append_text(to, "\n"));
            TRY(append_indented(to, report->text));
        } else {
            /* The error repeats the expression, with the place underlined. */
            TRY(buf_append_format(to, "%.*s\n", SLICE_ARGS(report->error)));
        }
    }
    for (const struct kube_field_error *error = checked->errors.first; error; error = error->next)
        if (!is_of_rule(&checked->reports, error))
            TRY(buf_append_format(to, "%.*s: %.*s\n", SLICE_ARGS(error->field),
                                  SLICE_ARGS(error->message)));
    return ST_OK;
}

static void write_report(struct json_writer *w, const struct rule_report *report)
{
    json_begin_object(w);
    json_member_string(w, "field", report->field);
    if (report->text.len)
        json_member_string(w, "expression", report->text);
    if (report->error.len) {
        json_member_string(w, "error", report->error);
    } else {
        json_member_u64(w, "cost", report->cost);
        json_member_u64(w, "limit", report->cost_max);
    }
    json_end_object(w);
}

static enum status write_json(const struct checked *checked, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_array(&w, "rules");
    for (const struct rule_report *report = checked->reports.first; report; report = report->next)
        write_report(&w, report);
    json_end_array(&w);
    json_member_array(&w, "errors");
    for (const struct kube_field_error *error = checked->errors.first; error; error = error->next) {
        json_begin_object(&w);
        json_member_string(&w, "field", error->field);
        json_member_string(&w, "message", error->message);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    return buf_append_text(to, "\n");
}

/* -- The command -- */

static int check(struct arena *arena, const char *path, bool as_json)
{
    AUTO(buf_fini) struct buf out = {0};
    struct checked checked = {.errors = {.arena = arena}};
    struct json_node *object;
    struct error error;
    if (read_definition(arena, path, &object, &error) != ST_OK) {
        fprintf(stderr, "vigil cel: %s\n", error.text);
        return EXIT_USAGE;
    }
    enum status status = kube_definition_report(arena, object, &checked.reports, &checked.errors);
    if (status == ST_OK)
        status = as_json ? write_json(&checked, &out) : write_text(&checked, &out);
    if (status != ST_OK) {
        fprintf(stderr, "vigil cel: there is not enough memory for the definition\n");
        return EXIT_FAILED;
    }
    printf("%.*s", SLICE_ARGS(buf_slice(&out)));
    return checked.errors.count ? EXIT_FAILED : EXIT_OK;
}

int cel_schema_check(const char *path, bool as_json)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    int code = check(&arena, path, as_json);
    arena_fini(&arena);
    return code;
}

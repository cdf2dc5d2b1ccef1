#include "cmd/cel/cel.h"

#include "base/options/rows.h"
#include "cel/eval/program.h"
#include "cel/syntax/parser.h"
#include "cmd/arguments.h"
#include "cmd/cel/schema.h"
#include "cmd/cel/show.h"
#include "cmd/cel/variables.h"
#include "codec/json/writer.h"
#include "codec/utf8.h"

#include <inttypes.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };
enum { ARENA_BYTES_MAX = 256 << 20, COST_MAX = 1000000 };
enum { OUTPUT_SIMPLE, OUTPUT_JSON };

struct cel_flags {
    const char *variables;
    const char *file, *schema;
    bool cost;
    int write_out;
};

static const struct option rows[] = {
    FLAG_ROW(LIST, "var", cel_flags, variables, "",
             "A variable, NAME=JSON; may be given several times. Numbers, texts and bools have "
             "that type; lists, maps and null are dyn.",
             .repeats = true),
    FLAG_TEXT("file", cel_flags, file, "",
              "A file of YAML or JSON, which is the variable self; - is standard input."),
    FLAG_ALIAS("f", "file"),
    FLAG_TEXT(
        "schema", cel_flags, schema, "",
        "check: a file with a CustomResourceDefinition, whose rules are checked instead of an "
        "expression; - is standard input."),
    FLAG_BOOL("cost", cel_flags, cost, "Print what the evaluation cost."),
    FLAG_ENUM("write-out", cel_flags, write_out, "simple", "The output format.", "simple|json"),
    FLAG_ALIAS("w", "write-out"),
};
static const struct option_group group = {"Expressions", rows, COUNT_OF(rows)};
static const struct option_group *const groups[] = {&group};

const struct options_table cel_table = {
    .program = "vigil cel",
    .summary = "Evaluates or checks an expression of the Common Expression Language with "
               "Kubernetes' functions.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .words = "eval|check EXPRESSION|check --schema FILE",
    .flags_only = true,
    .man_more =
        ".SH COMMANDS\n"
        ".TP\neval\nEvaluates the expression and prints its value: as JSON, or as an expression "
        "would write it where JSON has no such value, for instance 2u or duration(\"1s\"). An "
        "evaluation may cost as much as in Kubernetes, 1,000,000.\n"
        ".TP\ncheck\nFinds errors of syntax and types without evaluating the expression, and "
        "prints its type.\n"
        ".TP\ncheck \\-\\-schema FILE\nChecks a CustomResourceDefinition as a server does, and "
        "prints for "
        "each of its rules the cost that is estimated for all values of an object and its share of "
        "the limit, or what is wrong with it. The last line of a schema is the cost of all its "
        "rules together.\n"
        ".PP\nAn error of syntax or types is shown with its place, as Kubernetes shows it.\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\nThe value or type was printed.\n"
        ".TP\n1\nThe expression or definition is wrong, or the evaluation failed.\n"
        ".TP\n2\nA flag or an argument is wrong.\n"
        ".SH EXAMPLES\n.nf\n"
        "vigil cel eval \\-\\-var x=3 'x * 2'\n"
        "kubectl get deployment web \\-o json | vigil cel eval \\-f \\- 'self.spec.replicas > 1'\n"
        "vigil cel check \\-\\-var 'name=\"web\"' 'name.size() < 10'\n"
        "vigil cel check \\-\\-schema crd.yaml\n.fi\n",
};

struct trial {
    const struct cel_flags *flags;
    struct arena *arena;
    struct cel_variables *variables;
    const struct cel_program *program;
    const struct cel_type *type;
    struct buf error; /* several lines, as they are displayed; empty: none */
};

/* -- Output -- */

static enum status show_type(const struct trial *trial, struct json_writer *writer)
{
    AUTO(buf_fini) struct buf type = {0};
    TRY(cel_type_write(trial->type, &type));
    json_member_string(writer, "type", buf_slice(&type));
    return ST_OK;
}

static enum status write_json(struct trial *trial, const struct cel_value *value,
                              const struct cel_budget *budget, struct buf *out)
{
    struct json_writer writer;
    AUTO(buf_fini) struct buf shown = {0};
    json_writer_init(&writer, out);
    json_begin_object(&writer);
    if (trial->type)
        TRY(show_type(trial, &writer));
    if (trial->error.len)
        json_member_string(&writer, "error", buf_slice(&trial->error));
    /* A failed evaluation has an "error" and no "value", so that a script need not guess from the
     * value. */
    if (value && !cel_is_error(*value)) {
        TRY(cel_show(&trial->variables->work, *value, true, &shown));
        json_member_raw(&writer, "value", buf_slice(&shown));
    }
    if (budget)
        json_member_u64(&writer, "cost", budget->cost);
    json_end_object(&writer);
    return json_writer_finish(&writer);
}

/* value and budget are NULL if nothing was evaluated. */
static int finish(struct trial *trial, const struct cel_value *value,
                  const struct cel_budget *budget)
{
    AUTO(buf_fini) struct buf out = {0};
    enum status status = ST_OK;
    bool failed = trial->error.len > 0;
    if (trial->flags->write_out == OUTPUT_JSON)
        status = write_json(trial, value, budget, &out);
    else if (!failed && value)
        status = cel_show(&trial->variables->work, *value, false, &out);
    else if (!failed)
        status = cel_type_write(trial->type, &out);
    if (status != ST_OK) {
        fprintf(stderr, "vigil cel: there is not enough memory for the result\n");
        return EXIT_FAILED;
    }
    if (out.len)
        printf("%.*s\n", SLICE_ARGS(buf_slice(&out)));
    if (failed && trial->flags->write_out == OUTPUT_SIMPLE)
        fprintf(stderr, "%.*s\n", SLICE_ARGS(buf_slice(&trial->error)));
    if (budget && trial->flags->cost && trial->flags->write_out == OUTPUT_SIMPLE)
        printf("cost: %" PRIu64 "\n", budget->cost);
    return failed ? EXIT_FAILED : EXIT_OK;
}

/* -- Commands -- */

/* Parses and checks the expression. */
static enum status compile(struct trial *trial, struct slice source)
{
    struct cel_errors errors;
    struct cel_expr *root;
    struct cel_env env = {.variables = trial->variables->declared,
                          .variable_count = trial->variables->count};
    if (!utf8_valid(source))
        return buf_append_text(&trial->error, "the expression is not UTF-8");
    cel_errors_init(&errors, trial->arena, source);
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&env, &errors, root);
    if (status == ST_OK)
        trial->type = root->type;
    if (status == ST_OK)
        status = cel_program_new(&env, &errors, root, &trial->program);
    return status == ST_INVALID ? cel_errors_display(&errors, &trial->error) : status;
}

static int evaluate(struct trial *trial)
{
    struct cel_budget budget = {.cost_max = COST_MAX};
    struct cel_value value =
        cel_eval(trial->program, trial->variables->values, trial->arena, &budget);
    /* An expression that fails has still cost something, and --cost shows how much. */
    if (cel_is_error(value) && buf_append(&trial->error, cel_text(value)) != ST_OK)
        return EXIT_FAILED;
    return finish(trial, &value, &budget);
}

static int run(const struct words *words, const struct cel_flags *flags)
{
    struct arena arena;
    struct error error;
    static struct cel_variables variables; /* large */
    /* An unknown command is refused before the variables are read, because reading them may wait
     * for standard input. */
    bool evaluates = strcmp(words->words[0], "eval") == 0;
    if (!evaluates && strcmp(words->words[0], "check") != 0)
        return words_refuse(words, "the first argument must be eval or check");
    if (*flags->schema && (evaluates || words->words[1]))
        return words_refuse(words, "--schema is for check, without an expression");
    if (*flags->schema)
        return cel_schema_check(flags->schema, flags->write_out == OUTPUT_JSON);
    if (!words->words[1])
        return words_refuse(words, "EXPRESSION is missing");
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    variables.work = (struct cel_work){.arena = &arena, .steps_left = INT64_MAX};
    struct trial trial = {.flags = flags, .arena = &arena, .variables = &variables};
    enum status status = cel_variables_add(&variables, slice_from_text(flags->variables), &error);
    if (status == ST_OK && *flags->file)
        status = cel_variables_add_file(&variables, flags->file, &error);
    int code = EXIT_USAGE;
    if (status != ST_OK) {
        fprintf(stderr, "vigil cel: %s\n", error.text);
    } else if (compile(&trial, slice_from_text(words->words[1])) != ST_OK) {
        fprintf(stderr, "vigil cel: there is not enough memory for the expression\n");
        code = EXIT_FAILED;
    } else {
        /* compile leaves what is wrong with the expression in trial.error. Then nothing is
         * evaluated, and finish prints the error. */
        code = evaluates && !trial.error.len ? evaluate(&trial) : finish(&trial, NULL, NULL);
    }
    buf_fini(&trial.error);
    arena_fini(&arena);
    return code;
}

int cel_main(int count, char **args)
{
    struct cel_flags flags = {0};
    struct words words = {
        .table = &cel_table, .config = &flags, .word_count_needed = 1, .word_count_more = 1};
    int done = words_read(&words, count - 1, args + 1);
    return done >= 0 ? done : run(&words, &flags);
}

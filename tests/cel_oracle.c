/*
 * The C side of tests/cel_oracle.py and tests/kube/celoracle; see oracle.h for its requests.
 *
 *     p expression             its tree, or the errors as they are displayed
 *     c variables expression   the same with types; variables are lines such as "a list(int)"
 *     e variables values expression
 *                              its value and what it cost; values are a JSON object
 *     o variables values expression
 *                              the same with the types of mutations, Object and JSONPatch
 *     v variables bindings expression
 *                              its type and its value in lines; bindings are lines such as "a
 * [1u]", with expressions for the values
 *     s variables expression   the least and the most that it may cost; types of variables have
 *                              sizes, such as "list(string#64)#10", and those of the first variable
 *                              are those of all others
 *
 * A tree is written with the place of every node, in characters from the beginning:
 *
 *     (call@5 _+_ (ident@3 a) (int@7 1))
 *     (call@5:int[add_int64] _+_ (ident@3:int a) (int@7:int 1))
 */
#include "cel/check/checker.h"
#include "cel/estimate/estimate.h"
#include "cel/eval/program.h"
#include "cel/library/authorizer.h"
#include "cel/library/objects.h"
#include "cel/library/times.h"
#include "cel/syntax/parser.h"
#include "cel/value/container.h"

#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

/* -- Trees -- */

struct printer {
    struct slice source;
    struct buf *out;
};

static void print(struct printer *to, const char *format, ...) PRINTF_LIKE(2, 3);

static void print(struct printer *to, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (buf_append_text(to->out, text) != ST_OK)
        oracle_fail("no memory");
}

static void print_hex(struct printer *to, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        print(to, "%02x", bytes.ptr[i]);
}

static void begin_at(struct printer *to, const char *kind, uint32_t offset)
{
    size_t characters = 0;
    for (size_t i = 0; i < offset; i++)
        characters += (to->source.ptr[i] & 0xc0) != 0x80;
    print(to, "(%s@%zu", kind, characters);
}

static void begin(struct printer *to, const char *kind, const struct cel_expr *expr)
{
    begin_at(to, kind, expr->offset);
    if (!expr->type)
        return;
    print(to, ":");
    if (cel_type_write(expr->type, to->out) != ST_OK)
        oracle_fail("no memory");
}

static void print_overloads(struct printer *to, const struct cel_call *call)
{
    for (uint16_t i = 0; i < call->overload_count; i++)
        print(to, "%s%s%s", i ? " " : "[", cel_overloads[call->overloads[i]].name,
              i + 1 == call->overload_count ? "]" : "");
}

static void print_expr(struct printer *to, const struct cel_expr *expr);

static void print_name(struct printer *to, struct slice name)
{
    print(to, " ");
    if (buf_append(to->out, name) != ST_OK)
        oracle_fail("no memory");
}

static void print_exprs(struct printer *to, const struct cel_exprs *exprs)
{
    for (uint32_t i = 0; i < exprs->count; i++)
        print_expr(to, exprs->at[i]);
}

static void print_literal(struct printer *to, const struct cel_expr *expr)
{
    const struct cel_literal *literal = &expr->literal;
    static const char *const kinds[] = {"null", "bool", "int", "uint", "double", "string", "bytes"};
    begin(to, kinds[literal->kind], expr);
    uint64_t bits;
    switch (literal->kind) {
    case CEL_LITERAL_NULL:
        break;
    case CEL_LITERAL_BOOL:
        print(to, " %s", literal->truth ? "true" : "false");
        break;
    case CEL_LITERAL_INT:
        print(to, " %lld", (long long)literal->i64);
        break;
    case CEL_LITERAL_UINT:
        print(to, " %llu", (unsigned long long)literal->u64);
        break;
    case CEL_LITERAL_DOUBLE:
        memcpy(&bits, &literal->number, sizeof(bits));
        print(to, " %016llx", (unsigned long long)bits);
        break;
    case CEL_LITERAL_STRING:
    case CEL_LITERAL_BYTES:
        print(to, " ");
        print_hex(to, literal->text);
        break;
    }
}

static void print_entries(struct printer *to, const struct cel_entries *entries)
{
    for (uint32_t i = 0; i < entries->count; i++) {
        const struct cel_entry *entry = &entries->at[i];
        begin_at(to, entry->optional ? "?entry" : "entry", entry->offset);
        if (entry->key)
            print_expr(to, entry->key);
        else
            print_name(to, entry->field);
        print_expr(to, entry->value);
        print(to, ")");
    }
}

static void print_comprehension(struct printer *to, const struct cel_comprehension *c)
{
    print_expr(to, c->range);
    print_name(to, c->first);
    print_name(to, c->second);
    print_name(to, c->accumulator);
    print_expr(to, c->initial);
    print_expr(to, c->condition);
    print_expr(to, c->step);
    print_expr(to, c->result);
}

static void print_expr(struct printer *to, const struct cel_expr *expr)
{
    switch ((enum cel_expr_kind)expr->kind) {
    case CEL_EXPR_INVALID:
        oracle_fail("a tree without errors has an invalid node");
        break;
    case CEL_EXPR_LITERAL:
        print_literal(to, expr);
        break;
    case CEL_EXPR_IDENT:
        begin(to, "ident", expr);
        print_name(to, expr->ident);
        break;
    case CEL_EXPR_SELECT:
        begin(to, expr->select.is_test ? "test" : "select", expr);
        print_expr(to, expr->select.operand);
        print_name(to, expr->select.field);
        break;
    case CEL_EXPR_CALL:
        begin(to, expr->call.target ? "method" : "call", expr);
        print_overloads(to, &expr->call);
        print_name(to, expr->call.function);
        if (expr->call.target)
            print_expr(to, expr->call.target);
        print_exprs(to, &expr->call.args);
        break;
    case CEL_EXPR_LIST:
        begin(to, "list", expr);
        for (uint32_t i = 0; i < expr->list.items.count; i++) {
            if (expr->list.optional && expr->list.optional[i])
                print(to, "?");
            print_expr(to, expr->list.items.at[i]);
        }
        break;
    case CEL_EXPR_MAP:
        begin(to, "map", expr);
        print_entries(to, &expr->entries);
        break;
    case CEL_EXPR_STRUCT:
        begin(to, "struct", expr);
        print_name(to, expr->entries.type_name);
        print_entries(to, &expr->entries);
        break;
    case CEL_EXPR_COMPREHENSION:
        begin(to, "fold", expr);
        print_comprehension(to, expr->comprehension);
        break;
    }
    print(to, ")");
}

/* -- Types -- */

/* The objects T, with a field of each type, and U, which is the type of one of them; S and R are
 * the same with sizes. */
static enum status find_field(const struct cel_object *object, struct slice name,
                              struct arena *arena, const struct cel_type **ret_type);

static const struct cel_object object_t = {.field = find_field}, object_u = {.field = find_field};
static const struct cel_object object_s = {.field = find_field}, object_r = {.field = find_field};
static const struct cel_type type_t = {.kind = CEL_TYPE_OBJECT, .name = "T", .object = &object_t};
static const struct cel_type type_u = {.kind = CEL_TYPE_OBJECT, .name = "U", .object = &object_u};

static const struct cel_type type_s = {.kind = CEL_TYPE_OBJECT, .name = "S", .object = &object_s};
static const struct cel_type type_r = {.kind = CEL_TYPE_OBJECT, .name = "R", .object = &object_r};

static const struct cel_type *read_unsized(struct arena *arena, struct slice *text);

static const struct cel_type *read_type(struct arena *arena, struct slice *text)
{
    const struct cel_type *type = read_unsized(arena, text);
    uint64_t size = 0;
    if (!text->len || text->ptr[0] != '#')
        return type;
    *text = slice_sub(*text, 1, text->len - 1);
    while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9') {
        size = size * 10 + (uint64_t)(text->ptr[0] - '0');
        *text = slice_sub(*text, 1, text->len - 1);
    }
    return cel_type_with_size(arena, type, size);
}

static const struct cel_type *read_unsized(struct arena *arena, struct slice *text)
{
    static const struct cel_type *const plain[] = {
        &cel_type_BOOL,
        &cel_type_INT,
        &cel_type_UINT,
        &cel_type_DOUBLE,
        &cel_type_STRING,
        &cel_type_BYTES,
        &cel_type_DURATION,
        &cel_type_TIMESTAMP,
        &cel_type_DYN,
        &cel_type_NULL,
        &type_t,
        &type_u,
        &type_s,
        &type_r,
        &cel_type_KUBERNETES_AUTHORIZATION_AUTHORIZER,
        &cel_type_KUBERNETES_AUTHORIZATION_RESOURCECHECK,
    };
    size_t len = 0;
    while (len < text->len && text->ptr[len] != '(' && text->ptr[len] != ')' &&
           text->ptr[len] != ',' && text->ptr[len] != '#')
        len++;
    struct slice name = slice_sub(*text, 0, len);
    *text = slice_sub(*text, len, text->len - len);
    AUTO(buf_fini) struct buf shown = {0};
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        shown.len = 0;
        if (cel_type_write(plain[i], &shown) == ST_OK && slice_equal(buf_slice(&shown), name))
            return plain[i];
    }
    const struct cel_type *params[2] = {0};
    bool has_params = text->len && text->ptr[0] == '(';
    for (size_t i = 0; i < 2 && has_params && text->len && text->ptr[0] != ')'; i++) {
        *text = slice_sub(*text, 1, text->len - 1);
        params[i] = read_type(arena, text);
    }
    if (text->len)
        *text = slice_sub(*text, 1, text->len - 1);
    if (slice_equal(name, SLICE_LITERAL("list")))
        return cel_type_new_list(arena, params[0]);
    if (slice_equal(name, SLICE_LITERAL("map")))
        return cel_type_new_map(arena, params[0], params[1]);
    if (slice_equal(name, SLICE_LITERAL("optional_type")))
        return cel_type_new_optional(arena, params[0]);
    oracle_fail("unknown type");
    return NULL;
}

static enum status find_field(const struct cel_object *object, struct slice name,
                              struct arena *arena, const struct cel_type **ret_type)
{
    static const struct field {
        const char *name, *type;
    } plain[] = {{"i", "int"},       {"s", "string"},       {"b", "bool"},
                 {"d", "dyn"},       {"l", "list(string)"}, {"m", "map(string,int)"},
                 {"t", "timestamp"}, {"u", "duration"},     {"o", "U"},
                 {"f", "double"},    {"n", "list(U)"}},
      small[] = {{"name", "string#10"},
                 {"ports", "list(int)#5"},
                 {"labels", "map(string,string#63)#8"},
                 {"any", "dyn#100"}},
      large[] = {{"name", "string#40"},
                 {"note", "string#3145726"},
                 {"items", "list(R)#20"},
                 {"names", "list(string#30)#12"},
                 {"map", "map(string,R)#7"},
                 {"matrix", "list(list(string#5)#4)#3"},
                 {"bytes", "bytes#50"},
                 {"i", "int"},
                 {"f", "double"},
                 {"ok", "bool"},
                 {"d", "duration#32"},
                 {"t", "timestamp#32"},
                 {"any", "dyn#77"},
                 {"o", "R"},
                 {"namespace", "string#20"},
                 {"__namespace__", "string#20"}};
    const struct field *fields = object == &object_s ? large : object == &object_r ? small : plain;
    size_t count = object == &object_s   ? COUNT_OF(large)
                   : object == &object_r ? COUNT_OF(small)
                   : object == &object_u ? 2
                                         : COUNT_OF(plain);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_from_text(fields[i].name))) {
            struct slice text = slice_from_text(fields[i].type);
            *ret_type = read_type(arena, &text);
        }
    return ST_OK;
}

static enum status find_object(const struct cel_objects *objects, struct slice name,
                               struct arena *arena, const struct cel_type **ret_type)
{
    static const struct cel_type *const types[] = {&type_t, &type_u, &type_s, &type_r};
    (void)objects;
    (void)arena;
    *ret_type = NULL;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (slice_equal(name, slice_from_text(types[i]->name)))
            *ret_type = types[i];
    return ST_OK;
}

enum { VARIABLES_MAX = 64 };

static struct cel_env read_env(struct arena *arena, struct slice lines)
{
    static struct cel_variable variables[VARIABLES_MAX];
    static const struct cel_objects objects = {.find = find_object};
    struct cel_env env = {.variables = variables, .objects = &objects};
    while (lines.len) {
        struct slice type = slice_cut(&lines, '\n');
        struct slice name = slice_cut(&type, ' ');
        if (env.variable_count == VARIABLES_MAX)
            oracle_fail("too many variables");
        variables[env.variable_count++] = (struct cel_variable){name, read_type(arena, &type)};
    }
    return env;
}

/* -- Values -- */

static void print_value(struct printer *to, struct cel_work *work, struct cel_value value);

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum { FIELDS_MAX = 100 };

/* "name: value", in the arena. */
static const char *print_to_text(struct cel_work *work, struct slice name, struct cel_value value)
{
    struct buf text = {0};
    struct printer entry = {.out = &text};
    struct slice kept;
    print(&entry, "%.*s: ", SLICE_ARGS(name));
    print_value(&entry, work, value);
    if (buf_append(&text, slice_of("", 1)) != ST_OK ||
        arena_dup(work->arena, buf_slice(&text), &kept) != ST_OK)
        oracle_fail("no memory");
    buf_fini(&text);
    return (const char *)kept.ptr;
}

/* Entries are sorted by their text, because Go's maps have no order. */
static void print_map(struct printer *to, struct cel_work *work, struct cel_value map)
{
    struct cel_walk walk;
    struct cel_value key, value;
    char **texts = calloc(map.count + 1, sizeof(*texts));
    size_t count = 0;
    if (!texts)
        oracle_fail("no memory");
    cel_walk_init(&walk, work, map);
    while (cel_walk_next(&walk, &key, &value)) {
        struct buf text = {0};
        struct printer entry = {.out = &text};
        print_value(&entry, work, key);
        print(&entry, ": ");
        print_value(&entry, work, value);
        if (buf_append(&text, slice_of("", 1)) != ST_OK)
            oracle_fail("no memory");
        texts[count++] = (char *)text.ptr;
    }
    qsort(texts, count, sizeof(*texts), compare_texts);
    print(to, "{");
    for (size_t i = 0; i < count; i++) {
        if (buf_append_text(to->out, i ? ", " : "") != ST_OK ||
            buf_append_text(to->out, texts[i]) != ST_OK)
            oracle_fail("no memory");
        free(texts[i]);
    }
    print(to, "}");
    free(texts);
}

/* False: it is neither an object nor an operation of a patch. */
static bool print_fields(struct printer *to, struct cel_work *work, struct cel_value value)
{
    static const char *const texts[] = {"from", "op", "path"};
    struct cel_fields fields;
    bool is_patch = cel_is_patch(value, &fields);
    if (!is_patch && !cel_is_object(value, &fields))
        return false;
    const char *shown[FIELDS_MAX];
    size_t count = 0;
    for (size_t i = 0; is_patch && i < COUNT_OF(texts); i++) {
        bool has = false;
        for (uint32_t j = 0; j < fields.count; j++)
            has |= slice_equal(fields.names[j], slice_from_text(texts[i]));
        if (!has)
            shown[count++] =
                print_to_text(work, slice_from_text(texts[i]), cel_of_string(SLICE_EMPTY));
    }
    for (uint32_t i = 0; i < fields.count && count < FIELDS_MAX; i++)
        shown[count++] = print_to_text(work, fields.names[i], fields.values[i]);
    qsort(shown, count, sizeof(*shown), compare_texts);
    print(to, "%s{", fields.type->name);
    for (size_t i = 0; i < count; i++)
        if (buf_append_text(to->out, i ? ", " : "") != ST_OK ||
            buf_append_text(to->out, shown[i]) != ST_OK)
            oracle_fail("no memory");
    print(to, "}");
    return true;
}

static void print_value(struct printer *to, struct cel_work *work, struct cel_value value)
{
    struct cel_walk walk;
    struct cel_value key, item;
    uint64_t bits;
    switch ((enum cel_value_kind)value.kind) {
    case CEL_ERROR:
        print(to, "error: %.*s", SLICE_ARGS(cel_text(value)));
        break;
    case CEL_NULL:
        print(to, "null");
        break;
    case CEL_BOOL:
        print(to, "%s", value.truth ? "true" : "false");
        break;
    case CEL_INT:
        print(to, "%lld", (long long)value.i64);
        break;
    case CEL_UINT:
        print(to, "%lluu", (unsigned long long)value.u64);
        break;
    case CEL_DOUBLE:
        if (value.number != value.number) {
            print(to, "NaN");
            break;
        }
        memcpy(&bits, &value.number, sizeof(bits));
        print(to, "d%016llx", (unsigned long long)bits);
        break;
    case CEL_STRING:
    case CEL_BYTES:
        print(to, value.kind == CEL_STRING ? "s" : "b");
        print_hex(to, cel_text(value));
        break;
    case CEL_LIST:
        print(to, "[");
        cel_walk_init(&walk, work, value);
        while (cel_walk_next(&walk, &key, &item)) {
            print(to, key.i64 ? ", " : "");
            print_value(to, work, item);
        }
        print(to, "]");
        break;
    case CEL_MAP:
        print_map(to, work, value);
        break;
    case CEL_TYPE_VALUE:
        print(to, "type %s", value.type->name);
        break;
    case CEL_OPTIONAL:
        print(to, "optional(");
        if (value.some)
            print_value(to, work, *value.some);
        print(to, ")");
        break;
    case CEL_DURATION:
        print(to, "duration %lld", (long long)value.nanoseconds);
        break;
    case CEL_TIMESTAMP:
        value = cel_time_to_string(work, value);
        print(to, "timestamp %.*s", SLICE_ARGS(cel_text(value)));
        break;
    case CEL_OPAQUE:
        if (print_fields(to, work, value))
            break;
        print(to, "a %s", cel_value_type_name(value));
        break;
    }
}

/* As in tests/kube/celoracle/permissions.go: by the verb, with the question as the reason. */
static bool decide(const struct cel_access *access, struct cel_work *work,
                   const struct cel_question *q, struct cel_answer *ret_answer)
{
    struct buf reason = {0}, error = {0};
    (void)access;
    enum status status =
        q->of_account ? buf_append_format(&reason,
                                          "system:serviceaccount:%.*s:%.*s "
                                          "system:serviceaccounts,system:serviceaccounts:%.*s",
                                          SLICE_ARGS(q->account_namespace), SLICE_ARGS(q->account),
                                          SLICE_ARGS(q->account_namespace))
                      : buf_append_text(&reason, "alice readers,system:authenticated");
    const struct slice parts[] = {q->verb,      q->group, q->resource, q->subresource,
                                  q->namespace, q->name,  q->path};
    if (buf_append_text(&reason, q->of_path ? " false" : " true") != ST_OK)
        status = ST_NOMEM;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (buf_append_text(&reason, " ") != ST_OK || buf_append(&reason, parts[i]) != ST_OK)
            status = ST_NOMEM;
    if (q->verb.len && memchr(q->verb.ptr, 'e', q->verb.len) &&
        (buf_append_text(&error, "cannot ") != ST_OK || buf_append(&error, q->verb) != ST_OK))
        status = ST_NOMEM;
    ret_answer->allowed = q->verb.len % 2 == 0;
    if (status != ST_OK ||
        arena_dup(work->arena, buf_slice(&reason), &ret_answer->reason) != ST_OK ||
        arena_dup(work->arena, buf_slice(&error), &ret_answer->error) != ST_OK)
        oracle_fail("no memory");
    buf_fini(&reason);
    buf_fini(&error);
    return true;
}

static struct cel_value authorizer_of(struct arena *arena, const struct cel_type *type)
{
    static const struct cel_access access = {.decide = decide};
    if (type == &cel_type_KUBERNETES_AUTHORIZATION_AUTHORIZER)
        return cel_authorizer_new(arena, &(struct cel_question){.access = &access});
    return cel_authorizer_new(arena,
                              &(struct cel_question){.access = &access,
                                                     .group = SLICE_LITERAL("apps"),
                                                     .resource = SLICE_LITERAL("deployments"),
                                                     .subresource = SLICE_LITERAL("scale"),
                                                     .namespace = SLICE_LITERAL("shop"),
                                                     .name = SLICE_LITERAL("web")});
}

/* The value of a variable; a double may be written without a fraction. */
static struct cel_value read_value(struct cel_work *work, const struct json_node *values,
                                   const struct cel_variable *variable)
{
    if (variable->type->kind == CEL_TYPE_OBJECT)
        return authorizer_of(work->arena, variable->type);
    const struct json_node *node = json_look_member(values, variable->name);
    struct cel_value value = node ? cel_of_json(work, node) : (struct cel_value){.kind = CEL_NULL};
    if (variable->type->kind == CEL_TYPE_DOUBLE && value.kind == CEL_INT)
        value = cel_of_double((double)value.i64);
    return value;
}

static void evaluate(struct arena *arena, const struct cel_env *env, struct slice values,
                     const struct cel_program *program, struct buf *out)
{
    struct cel_work work = {.arena = arena, .steps_left = INT64_MAX};
    struct cel_value variables[VARIABLES_MAX];
    struct cel_budget budget = {.cost_max = 1000000};
    struct json_node *root;
    struct error error;
    if (json_tree_read(arena, values, &root, &error) != ST_OK)
        oracle_fail("the values are not JSON");
    for (uint32_t i = 0; i < env->variable_count; i++)
        variables[i] = read_value(&work, root, &env->variables[i]);
    struct cel_value value = cel_eval(program, variables, arena, &budget);
    struct printer to = {.out = out};
    print_value(&to, &work, value);
    print(&to, " costs %llu", (unsigned long long)budget.cost);
}

/* The value of an expression that needs no variables. */
static struct cel_value read_expression(struct arena *arena, struct slice source)
{
    static const struct cel_env env;
    struct cel_errors errors;
    struct cel_expr *root;
    const struct cel_program *program;
    struct cel_budget budget = {.cost_max = UINT64_MAX};
    cel_errors_init(&errors, arena, source);
    if (cel_parse(&errors, &root) != ST_OK || cel_check(&env, &errors, root) != ST_OK ||
        cel_program_new(&env, &errors, root, &program) != ST_OK)
        oracle_fail("the value of a variable cannot be read");
    return cel_eval(program, NULL, arena, &budget);
}

static void evaluate_bound(struct arena *arena, const struct cel_env *env, struct slice bindings,
                           const struct cel_program *program, struct printer *to)
{
    struct cel_work work = {.arena = arena, .steps_left = INT64_MAX};
    struct cel_value variables[VARIABLES_MAX];
    struct cel_budget budget = {.cost_max = 1000000};
    for (uint32_t i = 0; i < env->variable_count; i++)
        variables[i] = cel_of_error_format(&work, "no such attribute(s): %.*s",
                                           SLICE_ARGS(env->variables[i].name));
    while (bindings.len) {
        struct slice source = slice_cut(&bindings, '\n');
        struct slice name = slice_cut(&source, ' ');
        for (uint32_t i = 0; i < env->variable_count; i++)
            if (slice_equal(env->variables[i].name, name))
                variables[i] = read_expression(arena, source);
    }
    print_value(to, &work, cel_eval(program, variables, arena, &budget));
}

static bool answer_bound(struct arena *arena, const struct cel_env *env, struct slice bindings,
                         struct slice source, struct buf *out)
{
    struct cel_errors errors;
    struct cel_expr *root;
    const struct cel_program *program;
    struct printer to = {.out = out};
    cel_errors_init(&errors, arena, source);
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(env, &errors, root);
    bool is_checked = status == ST_OK;
    if (status == ST_OK)
        status = cel_program_new(env, &errors, root, &program);
    if (status == ST_INVALID && is_checked)
        print(&to, "refused");
    else if (status == ST_INVALID)
        status = cel_errors_display(&errors, out) == ST_OK ? ST_INVALID : ST_NOMEM;
    else if (status == ST_OK)
        status = cel_type_write(root->type, out);
    if (status != ST_OK && status != ST_INVALID)
        oracle_fail("no memory");
    if (status != ST_OK)
        return false;
    print(&to, "\n");
    evaluate_bound(arena, env, bindings, program, &to);
    return true;
}

/* What the expression may cost. The sizes of all variables are those of the first. */
static bool answer_estimate(struct arena *arena, const struct cel_env *env, struct slice source,
                            struct buf *out)
{
    struct cel_errors errors;
    struct cel_expr *root;
    struct cel_range cost;
    cel_errors_init(&errors, arena, source);
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(env, &errors, root);
    if (status == ST_OK)
        status = cel_estimate(arena, env->variables[0].type, root, &cost);
    if (status == ST_OK)
        print(&(struct printer){.out = out}, "%llu %llu", (unsigned long long)cost.min,
              (unsigned long long)cost.max);
    else if (status != ST_INVALID || cel_errors_display(&errors, out) != ST_OK)
        oracle_fail("no memory");
    return status == ST_OK;
}

/* env: checks the expression; values: evaluates it; either may be NULL. */
static bool answer_expression(struct arena *arena, const struct cel_env *env,
                              const struct slice *values, struct slice source, struct buf *out)
{
    struct cel_errors errors;
    struct cel_expr *root;
    const struct cel_program *program = NULL;
    cel_errors_init(&errors, arena, source);
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK && env)
        status = cel_check(env, &errors, root);
    if (status == ST_OK && values && cel_program_new(env, &errors, root, &program) != ST_OK) {
        print(&(struct printer){.out = out}, "%.*s", SLICE_ARGS(errors.list[0].text));
        return false;
    }
    if (status == ST_OK && values)
        evaluate(arena, env, *values, program, out);
    else if (status == ST_OK)
        print_expr(&(struct printer){.source = source, .out = out}, root);
    else if (status != ST_INVALID || cel_errors_display(&errors, out) != ST_OK)
        oracle_fail("no memory");
    return status == ST_OK;
}

int main(void)
{
    int letter;
    while ((letter = getchar()) != EOF) {
        struct arena arena;
        struct buf out = {0};
        struct cel_env env;
        struct slice values;
        arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
        if (letter != 'p' && letter != 'c' && letter != 'e' && letter != 'v' && letter != 's' &&
            letter != 'o')
            oracle_fail("unknown request");
        if (letter != 'p')
            env = read_env(&arena, oracle_read(&arena));
        if (letter == 'o') {
            env.objects = &cel_mutation_objects;
            env.has_patches = true;
        }
        if (letter == 'e' || letter == 'o')
            values = oracle_read(&arena);
        if (letter == 'v')
            values = oracle_read(&arena);
        struct slice source = oracle_read(&arena);
        bool good =
            letter == 'v' ? answer_bound(&arena, &env, values, source, &out)
            : letter == 's'
                ? answer_estimate(&arena, &env, source, &out)
                : answer_expression(&arena, letter == 'p' ? NULL : &env,
                                    letter == 'e' || letter == 'o' ? &values : NULL, source, &out);
        oracle_answer(good ? '+' : '-', buf_slice(&out));
        buf_fini(&out);
        arena_fini(&arena);
    }
    return 0;
}

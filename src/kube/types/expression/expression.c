#include "kube/types/expression/expression.h"

#include "cel/library/objects.h"
#include "cel/syntax/parser.h"
#include "codec/utf8.h"

/* -- Variables of the policy -- */

static enum status find_variable(const struct cel_object *object, struct slice name,
                                 struct arena *arena, const struct cel_type **ret_type)
{
    struct kube_expression_scope *scope =
        CONTAINER_OF((struct cel_object *)(uintptr_t)object, struct kube_expression_scope, fields);
    (void)arena;
    *ret_type = NULL;
    for (size_t i = scope->count; i-- > 0;) {
        const struct kube_expression *found = &scope->variables[i].expression;
        if (!slice_equal(scope->variables[i].name, name))
            continue;
        /* One that does not compile has no type, and its error is that of the evaluation. */
        *ret_type = found->type ? found->type : &cel_type_DYN;
        if (scope->nesting < found->nesting + 1)
            scope->nesting = found->nesting + 1;
        break;
    }
    return ST_OK;
}

/* As a variable, an object or an opaque value is dyn: the types that Kubernetes keeps are scalars,
 * and lists and maps of them. NULL without memory. */
static const struct cel_type *as_variable(struct arena *arena, const struct cel_type *type)
{
    switch (type->kind) {
    case CEL_TYPE_LIST:
        return cel_type_new_list(arena, as_variable(arena, cel_type_param(type, 0)));
    case CEL_TYPE_MAP:
        return cel_type_new_map(arena, as_variable(arena, cel_type_param(type, 0)),
                                as_variable(arena, cel_type_param(type, 1)));
    case CEL_TYPE_NULL:
    case CEL_TYPE_BOOL:
    case CEL_TYPE_INT:
    case CEL_TYPE_UINT:
    case CEL_TYPE_DOUBLE:
    case CEL_TYPE_STRING:
    case CEL_TYPE_BYTES:
    case CEL_TYPE_DURATION:
    case CEL_TYPE_TIMESTAMP:
        return type;
    default:
        return &cel_type_DYN;
    }
}

/* -- Compiling -- */

/* A slot that the scope does not have gets a name that no expression can write. */
static void declare_all(const struct kube_expression_scope *scope,
                        const struct cel_type *variables_type, struct cel_variable all[KUBE_SLOTS])
{
    const struct slice none = SLICE_LITERAL("");
    const struct cel_type *object = scope->object ? scope->object : &cel_type_DYN;
    const struct cel_type *params = scope->params ? scope->params : &cel_type_DYN;
    const struct cel_variable declared[KUBE_SLOTS] = {
        [KUBE_SLOT_OBJECT] = {SLICE_LITERAL("object"), object},
        [KUBE_SLOT_OLD_OBJECT] = {SLICE_LITERAL("oldObject"), object},
        [KUBE_SLOT_NAMESPACE] = {SLICE_LITERAL("namespaceObject"), &kube_type_namespace},
        [KUBE_SLOT_REQUEST] = {SLICE_LITERAL("request"), &kube_type_request},
        [KUBE_SLOT_VARIABLES] = {SLICE_LITERAL("variables"), variables_type},
        [KUBE_SLOT_PARAMS] = {SLICE_LITERAL("params"), params},
        [KUBE_SLOT_AUTHORIZER] = {SLICE_LITERAL("authorizer"),
                                  &cel_type_KUBERNETES_AUTHORIZATION_AUTHORIZER},
        [KUBE_SLOT_REQUEST_RESOURCE] = {SLICE_LITERAL("authorizer.requestResource"),
                                        &cel_type_KUBERNETES_AUTHORIZATION_RESOURCECHECK},
    };
    memcpy(all, declared, sizeof(declared));
    if (!scope->has_variables)
        all[KUBE_SLOT_VARIABLES].name = none;
    if (!scope->has_params)
        all[KUBE_SLOT_PARAMS].name = none;
    if (!scope->has_authorizer)
        all[KUBE_SLOT_AUTHORIZER].name = all[KUBE_SLOT_REQUEST_RESOURCE].name = none;
    /* Kubernetes has forgotten it there, and warns of each use. */
    if (scope->checks_only)
        all[KUBE_SLOT_REQUEST_RESOURCE].name = none;
}

static enum status keep(struct arena *arena, const struct buf *text, struct slice *ret_text)
{
    return arena_dup(arena, buf_slice(text), ret_text);
}

static enum status describe_errors(const struct cel_errors *errors, const char *before,
                                   struct slice *ret_text)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(buf_append_text(&text, before));
    TRY(cel_errors_display(errors, &text));
    return keep(errors->arena, &text, ret_text);
}

static bool returns_right(const struct cel_type *type, enum kube_expression_returns returns)
{
    switch (returns) {
    case KUBE_RETURNS_BOOL:
        return type->kind == CEL_TYPE_BOOL;
    case KUBE_RETURNS_STRING:
        return type->kind == CEL_TYPE_STRING;
    case KUBE_RETURNS_STRING_OR_NULL:
        return type->kind == CEL_TYPE_STRING || type->kind == CEL_TYPE_NULL;
    case KUBE_RETURNS_OBJECT:
        return cel_type_equal(type, &cel_type_mutation_object);
    case KUBE_RETURNS_PATCHES:
        return type->kind == CEL_TYPE_LIST &&
               cel_type_equal(type->params[0], &cel_type_mutation_patch);
    case KUBE_RETURNS_ANY:
        break;
    }
    return true;
}

static enum status describe_type(struct arena *arena, const struct cel_type *type,
                                 enum kube_expression_returns returns, struct slice *ret_text)
{
    static const char *const wanted[] = {
        [KUBE_RETURNS_BOOL] = "bool",
        [KUBE_RETURNS_STRING] = "string",
        [KUBE_RETURNS_STRING_OR_NULL] = "one of [string null_type]",
        [KUBE_RETURNS_OBJECT] = "Object",
        [KUBE_RETURNS_PATCHES] = "list(JSONPatch)",
    };
    AUTO(buf_fini) struct buf text = {0};
    TRY(buf_append_format(&text, "must evaluate to %s but got ", wanted[returns]));
    TRY(cel_type_write(type, &text));
    return keep(arena, &text, ret_text);
}

/* An error that cel-go finds when it makes the program of an expression that is right otherwise. */
static enum status describe_program(const struct cel_errors *errors, struct slice *ret_text)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(buf_append_text(&text, "program instantiation failed: "));
    TRY(buf_append(&text, errors->list[0].text));
    return keep(errors->arena, &text, ret_text);
}

enum status kube_expression_compile(struct kube_expression_scope *scope, struct slice text,
                                    enum kube_expression_returns returns,
                                    struct kube_expression *ret_expression)
{
    struct arena *arena = scope->arena;
    struct cel_variable all[KUBE_SLOTS];
    struct cel_errors errors;
    struct cel_expr *root = NULL;
    struct cel_type *variables_type = arena_alloc(arena, sizeof(*variables_type));
    *ret_expression = (struct kube_expression){.text = text};
    if (!variables_type)
        return ST_NOMEM;
    *variables_type = (struct cel_type){.kind = CEL_TYPE_OBJECT,
                                        .name = "kubernetes.variables",
                                        .object = &scope->fields,
                                        .parts = 1};
    scope->fields.field = find_variable;
    scope->nesting = 0;
    if (!utf8_valid(text)) {
        ret_expression->error = SLICE_LITERAL("compilation failed: the text is not UTF-8");
        return ST_OK;
    }
    declare_all(scope, variables_type, all);
    const struct cel_env env = {.variables = all,
                                .variable_count = KUBE_SLOTS,
                                .objects = scope->has_patches ? &cel_mutation_objects : NULL,
                                .has_patches = scope->has_patches};
    cel_errors_init(&errors, arena, text);
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&env, &errors, root);
    if (status == ST_INVALID)
        return describe_errors(
            &errors, scope->checks_only ? "" : "compilation failed: ", &ret_expression->error);
    TRY(status);
    if (!returns_right(root->type, returns))
        return describe_type(arena, root->type, returns, &ret_expression->error);
    if (!scope->checks_only) {
        status = cel_program_new(&env, &errors, root, &ret_expression->program);
        if (status == ST_INVALID) {
            ret_expression->is_internal = true;
            return describe_program(&errors, &ret_expression->error);
        }
        TRY(status);
    }
    ret_expression->type = root->type;
    ret_expression->nesting = scope->nesting;
    return ST_OK;
}

enum status kube_expression_declare(struct kube_expression_scope *scope, struct slice name,
                                    struct slice text, struct kube_expression *ret_expression)
{
    TRY(kube_expression_compile(scope, text, KUBE_RETURNS_ANY, ret_expression));
    if (scope->count == scope->capacity) {
        size_t capacity = size_max(8, 2 * scope->capacity);
        struct kube_named_expression *more = arena_calloc(scope->arena, capacity, sizeof(*more));
        if (!more)
            return ST_NOMEM;
        if (scope->count)
            memcpy(more, scope->variables, scope->count * sizeof(*more));
        scope->variables = more;
        scope->capacity = capacity;
    }
    struct kube_named_expression *added = &scope->variables[scope->count++];
    *added = (struct kube_named_expression){name, *ret_expression};
    /* Others see it with the type that a variable can have. */
    if (added->expression.type &&
        !(added->expression.type = as_variable(scope->arena, added->expression.type)))
        return ST_NOMEM;
    return ST_OK;
}

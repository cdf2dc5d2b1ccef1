#include "cel/library/authorizer.h"

#include "codec/kube_name.h"

enum { CHECK_COST = 350000, SELECTOR_COST = 10, REQUIREMENT_COST = 50 };

/* A question while it is built. The types differ only in what may be added. */
struct builder {
    struct cel_opaque opaque;
    struct cel_question question;
};

struct decision {
    struct cel_opaque opaque;
    struct cel_answer answer;
};

static const struct cel_opaque_ops authorizer_ops = {
    .type = &cel_type_KUBERNETES_AUTHORIZATION_AUTHORIZER, .go_type = "library.authorizerVal"};
static const struct cel_opaque_ops path_ops = {.type = &cel_type_KUBERNETES_AUTHORIZATION_PATHCHECK,
                                               .go_type = "library.pathCheckVal"};
static const struct cel_opaque_ops group_ops = {
    .type = &cel_type_KUBERNETES_AUTHORIZATION_GROUPCHECK, .go_type = "library.groupCheckVal"};
static const struct cel_opaque_ops resource_ops = {
    .type = &cel_type_KUBERNETES_AUTHORIZATION_RESOURCECHECK,
    .go_type = "library.resourceCheckVal"};
static const struct cel_opaque_ops decision_ops = {
    .type = &cel_type_KUBERNETES_AUTHORIZATION_DECISION, .go_type = "library.decisionVal"};

static struct cel_value make(struct arena *arena, const struct cel_opaque_ops *ops,
                             const struct cel_question *question)
{
    struct builder *builder = arena_alloc(arena, sizeof(*builder));
    if (!builder)
        return CEL_NO_MEMORY;
    *builder = (struct builder){.opaque = {ops}, .question = *question};
    return cel_of_opaque(&builder->opaque);
}

struct cel_value cel_authorizer_new(struct arena *arena, const struct cel_question *question)
{
    return make(arena, question->resource.len ? &resource_ops : &authorizer_ops, question);
}

/* -- Building a question -- */

/* Whether a function was called with a builder of its type and texts. The question is copied. */
static bool takes(const struct cel_value *args, size_t count, const struct cel_opaque_ops *ops,
                  struct cel_question *ret_question)
{
    if (!cel_is_opaque(args[0], ops))
        return false;
    for (size_t i = 1; i < count; i++)
        if (args[i].kind != CEL_STRING)
            return false;
    *ret_question = ((const struct builder *)args[0].opaque)->question;
    return true;
}

/* strings.TrimSpace of Go leaves nothing of it. */
static bool is_blank(struct slice text)
{
    static const struct slice spaces[] = {
        SLICE_LITERAL("\t"),           SLICE_LITERAL("\n"),           SLICE_LITERAL("\v"),
        SLICE_LITERAL("\f"),           SLICE_LITERAL("\r"),           SLICE_LITERAL(" "),
        SLICE_LITERAL("\xc2\x85"),     SLICE_LITERAL("\xc2\xa0"),     SLICE_LITERAL("\xe1\x9a\x80"),
        SLICE_LITERAL("\xe2\x80\xa8"), SLICE_LITERAL("\xe2\x80\xa9"), SLICE_LITERAL("\xe2\x80\xaf"),
        SLICE_LITERAL("\xe2\x81\x9f"), SLICE_LITERAL("\xe3\x80\x80")};
    while (text.len) {
        size_t i = 0, len = cel_first_length(text);
        struct slice first = slice_sub(text, 0, len);
        while (i < COUNT_OF(spaces) && !slice_equal(first, spaces[i]))
            i++;
        /* U+2000 to U+200A */
        bool is_wide = len == 3 && memcmp(first.ptr, "\xe2\x80", 2) == 0 && first.ptr[2] >= 0x80 &&
                       first.ptr[2] <= 0x8a;
        if (i == COUNT_OF(spaces) && !is_wide)
            return false;
        text = slice_sub(text, len, text.len - len);
    }
    return true;
}

static struct cel_value add_path(struct cel_work *work, const struct cel_value *args)
{
    struct cel_question question;
    if (!takes(args, 2, &authorizer_ops, &question))
        return CEL_NO_OVERLOAD;
    question.of_path = true;
    question.path = cel_text(args[1]);
    return is_blank(question.path) ? CEL_FAIL("path must not be empty")
                                   : make(work->arena, &path_ops, &question);
}

static struct cel_value add_group(struct cel_work *work, const struct cel_value *args)
{
    struct cel_question question;
    if (!takes(args, 2, &authorizer_ops, &question))
        return CEL_NO_OVERLOAD;
    question.group = cel_text(args[1]);
    return make(work->arena, &group_ops, &question);
}

static struct cel_value add_account(struct cel_work *work, const struct cel_value *args)
{
    struct cel_question question;
    char why[NAME_ERROR_BYTES];
    if (!takes(args, 3, &authorizer_ops, &question))
        return CEL_NO_OVERLOAD;
    question.of_account = true;
    question.account_namespace = cel_text(args[1]);
    question.account = cel_text(args[2]);
    if (!subdomain_valid(question.account, why))
        return CEL_FAIL("Invalid service account name");
    if (!dns_label_valid(question.account_namespace, why))
        return CEL_FAIL("Invalid service account namespace");
    return make(work->arena, &authorizer_ops, &question);
}

static struct cel_value add_resource(struct cel_work *work, const struct cel_value *args)
{
    struct cel_question question;
    if (!takes(args, 2, &group_ops, &question))
        return CEL_NO_OVERLOAD;
    question.resource = cel_text(args[1]);
    return is_blank(question.resource) ? CEL_FAIL("resource must not be empty")
                                       : make(work->arena, &resource_ops, &question);
}

#define ADDS(field)                                                                          \
    static struct cel_value add_##field(struct cel_work *work, const struct cel_value *args) \
    {                                                                                        \
        struct cel_question question;                                                        \
        if (!takes(args, 2, &resource_ops, &question))                                       \
            return CEL_NO_OVERLOAD;                                                          \
        question.field = cel_text(args[1]);                                                  \
        return make(work->arena, &resource_ops, &question);                                  \
    }
ADDS(subresource)
ADDS(namespace)
ADDS(name)
ADDS(field_selector)
ADDS(label_selector)

/* -- Decisions -- */

static const char not_known[] = "the permission is not known yet";

static struct cel_value check(struct cel_work *work, const struct cel_value *args)
{
    struct cel_question question;
    if (!takes(args, 2, &path_ops, &question) && !takes(args, 2, &resource_ops, &question))
        return CEL_NO_OVERLOAD;
    struct decision *decision = arena_calloc(work->arena, 1, sizeof(*decision));
    if (!decision)
        return CEL_NO_MEMORY;
    decision->opaque.ops = &decision_ops;
    question.verb = cel_text(args[1]);
    if (!question.access->decide(question.access, work, &question, &decision->answer))
        return cel_of_error(slice_from_text(not_known));
    return cel_of_opaque(&decision->opaque);
}

static const struct cel_answer *as_answer(struct cel_value value)
{
    return cel_is_opaque(value, &decision_ops) ? &((const struct decision *)value.opaque)->answer
                                               : NULL;
}

static struct cel_value is_allowed(struct cel_work *work, const struct cel_value *args)
{
    const struct cel_answer *answer = as_answer(args[0]);
    (void)work;
    return answer ? cel_of_bool(answer->allowed) : CEL_NO_OVERLOAD;
}

static struct cel_value get_reason(struct cel_work *work, const struct cel_value *args)
{
    const struct cel_answer *answer = as_answer(args[0]);
    (void)work;
    return answer ? cel_of_string(answer->reason) : CEL_NO_OVERLOAD;
}

static struct cel_value is_error(struct cel_work *work, const struct cel_value *args)
{
    const struct cel_answer *answer = as_answer(args[0]);
    (void)work;
    return answer ? cel_of_bool(answer->error.len) : CEL_NO_OVERLOAD;
}

static struct cel_value get_error(struct cel_work *work, const struct cel_value *args)
{
    const struct cel_answer *answer = as_answer(args[0]);
    (void)work;
    return answer ? cel_of_string(answer->error) : CEL_NO_OVERLOAD;
}

/* Two checks fit into one expression. One whose answer is not known yet is made again. */
static uint64_t cost_of_check(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    bool is_known = !cel_is_error(call->result) || call->result.bytes != (const uint8_t *)not_known;
    return is_known ? CHECK_COST : 1;
}

/* As if each second character were a requirement, a list and a struct. */
static uint64_t cost_of_selector(struct cel_work *work, const struct cel_called *call)
{
    uint64_t size = cel_cost_size_shallow(call->args[1]);
    (void)work;
    return SELECTOR_COST + cel_cost_traversal(size) + REQUIREMENT_COST * (size / 2 + size % 2);
}

static const struct cel_builtin rows[] = {
    {"path", 2, add_path, true, 0, NULL},
    {"group", 2, add_group, true, 0, NULL},
    {"serviceAccount", 3, add_account, true, 0, NULL},
    {"resource", 2, add_resource, true, 0, NULL},
    {"subresource", 2, add_subresource, true, 0, NULL},
    {"namespace", 2, add_namespace, true, 0, NULL},
    {"name", 2, add_name, true, 0, NULL},
    {"fieldSelector", 2, add_field_selector, true, 0, cost_of_selector},
    {"labelSelector", 2, add_label_selector, true, 0, cost_of_selector},
    {"check", 2, check, true, 0, cost_of_check},
    {"allowed", 1, is_allowed, true, 0, NULL},
    {"reason", 1, get_reason, true, 0, NULL},
    {"errored", 1, is_error, true, 0, NULL},
    {"error", 1, get_error, true, 0, NULL},
};

const struct cel_library cel_authorizers = CEL_LIBRARY(rows);

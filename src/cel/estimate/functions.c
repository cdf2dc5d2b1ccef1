#include "cel/estimate/functions.h"

#include "cel/check/function.h"

/* -- Results -- */

static bool costs(struct cel_range cost, struct cel_call_cost *ret)
{
    *ret = (struct cel_call_cost){.cost = cost};
    return true;
}

static bool costs_and_returns(struct cel_range cost, struct cel_range size,
                              struct cel_call_cost *ret)
{
    *ret = (struct cel_call_cost){cost, true, size};
    return true;
}

/* -- cel-go's lists and sets -- */

/* A new list. */
static bool allocates(struct cel_range size, double factor, struct cel_call_cost *ret)
{
    return costs_and_returns(cel_range_add(cel_range_scale(size, factor), CEL_EXACTLY(11)), size,
                             ret);
}

static uint64_t int_or(const struct cel_operand *operand, uint64_t otherwise)
{
    const struct cel_expr *expr = operand->expr;
    if (expr->kind != CEL_EXPR_LITERAL || expr->literal.kind != CEL_LITERAL_INT)
        return otherwise;
    return expr->literal.i64 < 0 ? 0 : (uint64_t)expr->literal.i64;
}

static bool sort_cost(const struct cel_operand *keys, bool are_texts, struct cel_call_cost *ret)
{
    return allocates(cel_range_multiply(keys->size, keys->size), are_texts ? 2.1 : 2.0, ret);
}

static bool list_cost(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    const struct cel_operand *args = call->args, *target = call->target;
    switch (call->overload) {
    case CEL_OVERLOAD_LIST_SLICE:
        /* The difference may be less than 0, and is then a large number, as in cel-go. */
        return allocates(CEL_EXACTLY(int_or(&args[1], target->size.max) - int_or(&args[0], 0)), 1,
                         ret);
    case CEL_OVERLOAD_LIST_FLATTEN:
    case CEL_OVERLOAD_LIST_REVERSE:
        return allocates(target->size, 1, ret);
    case CEL_OVERLOAD_LIST_FLATTEN_INT:
        return allocates(target->size, (double)int_or(&args[0], UINT64_MAX), ret);
    case CEL_OVERLOAD_LISTS_RANGE:
        return allocates(CEL_EXACTLY(int_or(&args[0], UINT64_MAX)), 1, ret);
    case CEL_OVERLOAD_LIST_DISTINCT:
        return sort_cost(target, false, ret);
    case CEL_OVERLOAD_LIST_SETS_CONTAINS_LIST:
    case CEL_OVERLOAD_LIST_SETS_INTERSECTS_LIST:
    case CEL_OVERLOAD_LIST_SETS_EQUIVALENT_LIST:
        return costs(
            cel_range_add(
                cel_range_scale(cel_range_multiply(args[0].size, args[1].size),
                                call->overload == CEL_OVERLOAD_LIST_SETS_EQUIVALENT_LIST ? 2 : 1),
                CEL_EXACTLY(1)),
            ret);
    default:
        break;
    }
    if (slice_equal(call->function, SLICE_LITERAL("sort")))
        return sort_cost(target,
                         call->overload == CEL_OVERLOAD_LIST_STRING_SORT ||
                             call->overload == CEL_OVERLOAD_LIST_BYTES_SORT,
                         ret);
    if (slice_equal(call->function, SLICE_LITERAL("@sortByAssociatedKeys")))
        return sort_cost(&args[0],
                         call->overload == CEL_OVERLOAD_LIST_STRING_SORTBYASSOCIATEDKEYS ||
                             call->overload == CEL_OVERLOAD_LIST_BYTES_SORTBYASSOCIATEDKEYS,
                         ret);
    return false;
}

/* -- Kubernetes' estimator: one function for each form of cost -- */

typedef bool cost_fn(const struct cel_estimated_call *call, struct cel_call_cost *ret);

static bool nominal(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    (void)call;
    return costs(CEL_EXACTLY(1), ret);
}

static bool authorization(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    (void)call;
    return costs(CEL_EXACTLY(350000), ret);
}

/* A selector is parsed into requirements, each of which has at least two characters. */
static bool selector(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    if (call->count != 1)
        return false;
    struct cel_range size = call->args[0].size;
    struct cel_range requirements = cel_range_scale(cel_range_scale(size, 0.5), 50);
    return costs(
        cel_range_add(cel_range_add(CEL_EXACTLY(10), cel_range_traversal(size)), requirements),
        ret);
}

/* Every item is compared, or every character. */
static bool comparison(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    const struct cel_operand *target = call->target;
    if (!target)
        return false;
    const struct cel_type *item = target->expr->type->params[0];
    if (!item)
        return costs(cel_range_traversal(target->size), ret);
    struct cel_range each = CEL_EXACTLY(1);
    if (item->kind == CEL_TYPE_STRING || item->kind == CEL_TYPE_BYTES)
        each = cel_range_add(each, cel_range_traversal(target->item_size));
    return costs(cel_range_multiply(target->size, each), ret);
}

/* The argument is traversed. */
static bool parsing(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    return call->count >= 1 && costs(cel_range_traversal(call->args[0].size), ret);
}

static bool parsing_twice(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    return call->count >= 1 && costs(cel_range_scale(call->args[0].size, 0.2), ret);
}

static bool parsing_ip(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    return call->overload == CEL_OVERLOAD_CIDR_IP ? nominal(call, ret) : parsing(call, ret);
}

static bool parsing_url(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    return call->count == 1 &&
           costs_and_returns(cel_range_traversal(call->args[0].size), call->args[0].size, ret);
}

static bool validation(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    return call->count >= 1 &&
           costs(cel_range_scale(cel_range_traversal(call->args[0].size), 32), ret);
}

/* The result is at most as long as the target. */
static bool changed_text(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    if (!call->target)
        return false;
    struct cel_range size = call->target->size;
    return costs_and_returns(cel_range_traversal(size), size, ret);
}

/* As Go converts a double on x86-64, which matters for 2^64. */
static uint64_t quotient(uint64_t size, uint64_t by)
{
    double result = ceil((double)size / (double)by);
    return result >= 0x1p64 ? UINT64_C(1) << 63 : (uint64_t)result;
}

static bool replacement(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    if (!call->target || call->count < 2)
        return false;
    struct cel_range size = call->target->size, from = call->args[0].size, to = call->args[1].size;
    struct cel_range count = {0}, kept = {0};
    /* An empty text is found around every character. */
    if (from.min == 0) {
        count.max = cel_saturated_sum(size.max, 1);
        kept.max = size.max;
    } else if (to.max <= from.min) {
        kept.max = size.max;
    } else {
        count.max = quotient(size.max, from.min);
    }
    if (from.max == 0) {
        count.min = cel_saturated_sum(size.min, 1);
        kept.min = size.min;
    } else if (from.max <= to.min) {
        kept.min = size.min;
    } else {
        count.min = quotient(size.min, from.max);
    }
    return costs_and_returns(cel_range_scale(size, 0.2),
                             cel_range_add(cel_range_multiply(count, to), kept), ret);
}

static bool splitting(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    if (!call->target)
        return false;
    struct cel_range size = call->target->size, parts = {0, size.max};
    const struct cel_expr *limit = call->count > 1 ? call->args[1].expr : NULL;
    if (limit && limit->kind == CEL_EXPR_LITERAL && limit->literal.kind == CEL_LITERAL_INT)
        parts.max = (uint64_t)limit->literal.i64;
    return costs_and_returns(cel_range_scale(size, 0.2), parts, ret);
}

static bool joining(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    const struct cel_operand *list = call->target;
    struct cel_range size = {0};
    if (!list)
        return false;
    if (list->expr->type->params[0])
        size = cel_range_multiply(list->size, list->item_size);
    if (call->count > 0) {
        struct cel_range gaps = {list->size.min - (list->size.min > 0),
                                 list->size.max - (list->size.max > 0)};
        size = cel_range_add(size, cel_range_multiply(call->args[0].size, gaps));
    }
    return costs_and_returns(cel_range_traversal(size), size, ret);
}

static bool finding(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    if (!call->target || call->count < 1)
        return false;
    struct cel_range size = call->target->size;
    struct cel_range text = cel_range_traversal(cel_range_add(size, CEL_EXACTLY(1)));
    struct cel_range regex = cel_range_scale(call->args[0].size, 0.25);
    return costs_and_returns(cel_range_multiply(text, regex), (struct cel_range){0, size.max}, ret);
}

/* Addresses have 4 or 16 bytes, which are compared; one of a network is also masked. */
static bool containment(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    struct cel_range bytes = {4, 16};
    struct cel_range cost = cel_range_traversal(cel_range_add(bytes, bytes));
    if (call->count < 1)
        return false;
    if (slice_equal(call->function, SLICE_LITERAL("containsCIDR")))
        cost = cel_range_add(cel_range_add(cost, cel_range_traversal(bytes)), CEL_EXACTLY(1));
    if (call->overload == CEL_OVERLOAD_CIDR_CONTAINS_IP_STRING ||
        call->overload == CEL_OVERLOAD_CIDR_CONTAINS_CIDR_STRING)
        cost = cel_range_add(cost, cel_range_traversal(call->args[0].size));
    return costs(cost, ret);
}

/* Values of Kubernetes' own types are compared in one step. */
static bool equality(const struct cel_estimated_call *call, struct cel_call_cost *ret)
{
    static const char *const simple[] = {
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck",
        "kubernetes.authorization.Decision",
    };
    const struct cel_type *type = call->args[0].expr->type;
    if ((type->kind != CEL_TYPE_OPAQUE && type->kind != CEL_TYPE_OBJECT) ||
        !cel_type_equal(type, call->args[1].expr->type))
        return false;
    for (size_t i = 0; i < COUNT_OF(simple); i++)
        if (strcmp(type->name, simple[i]) == 0)
            return nominal(call, ret);
    if (strcmp(type->name, "kubernetes.NamedFormat") == 0)
        return costs(cel_range_traversal((struct cel_range){1, 64}), ret);
    if (strcmp(type->name, "kubernetes.URL") != 0)
        return false;
    struct cel_range size = {1, call->args[1].known ? call->args[1].size.max : 1};
    return costs(cel_range_traversal(size), ret);
}

static const struct {
    const char *name;
    cost_fn *fn;
} rows[] = {
    {"_==_", equality},
    {"add", nominal},
    {"allowed", nominal},
    {"asApproximateFloat", nominal},
    {"asInteger", nominal},
    {"check", authorization},
    {"cidr", parsing},
    {"compareTo", nominal},
    {"containsCIDR", containment},
    {"containsIP", containment},
    {"error", nominal},
    {"errored", nominal},
    {"family", nominal},
    {"fieldSelector", selector},
    {"find", finding},
    {"findAll", finding},
    {"format.named", nominal},
    {"getEscapedPath", nominal},
    {"getHost", nominal},
    {"getHostname", nominal},
    {"getPort", nominal},
    {"getQuery", nominal},
    {"getScheme", nominal},
    {"group", nominal},
    {"indexOf", comparison},
    {"ip", parsing_ip},
    {"ip.isCanonical", parsing_twice},
    {"isCIDR", parsing},
    {"isGlobalUnicast", nominal},
    {"isGreaterThan", nominal},
    {"isIP", parsing},
    {"isInteger", nominal},
    {"isLessThan", nominal},
    {"isLinkLocalMulticast", nominal},
    {"isLinkLocalUnicast", nominal},
    {"isLoopback", nominal},
    {"isQuantity", parsing},
    {"isSemver", parsing},
    {"isSorted", comparison},
    {"isUnspecified", nominal},
    {"join", joining},
    {"jsonpatch.escapeKey", parsing_url},
    {"labelSelector", selector},
    {"lastIndexOf", comparison},
    {"lowerAscii", changed_text},
    {"major", nominal},
    {"masked", nominal},
    {"max", comparison},
    {"min", comparison},
    {"minor", nominal},
    {"name", nominal},
    {"namespace", nominal},
    {"patch", nominal},
    {"path", nominal},
    {"prefixLength", nominal},
    {"quantity", parsing},
    {"reason", nominal},
    {"replace", replacement},
    {"resource", nominal},
    {"semver", parsing},
    {"serviceAccount", nominal},
    {"sign", nominal},
    {"split", splitting},
    {"sub", nominal},
    {"subresource", nominal},
    {"substring", changed_text},
    {"sum", comparison},
    {"trim", changed_text},
    {"upperAscii", changed_text},
    {"url", parsing_url},
    {"validate", validation},
};

bool cel_function_cost(const struct cel_estimated_call *call, struct cel_call_cost *ret_cost)
{
    if (list_cost(call, ret_cost))
        return true;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (slice_equal(call->function, slice_from_text(rows[i].name)))
            return rows[i].fn(call, ret_cost);
    return false;
}

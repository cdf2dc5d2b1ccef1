#include "kube/policy/admission/amounts/limit_range.h"

#include "base/buf.h"
#include "kube/policy/admission/amounts/pod_amounts.h"
#include "kube/types/validate/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ANNOTATION "kubernetes.io/limit-ranger"

/* -- Size -- */

static const char *const item_lists[] = {"min", "max", "default", "defaultRequest",
                                         "maxLimitRequestRatio"};

bool kube_limit_range_is_sound(const struct json_node *range)
{
    const struct json_node *items = json_node_path(range, "spec.limits");
    if (items && items->count > KUBE_LIMIT_RANGE_ITEMS_MAX)
        return false;
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        for (size_t i = 0; i < COUNT_OF(item_lists); i++) {
            const struct json_node *list = json_node_named(item, item_lists[i]);
            if (list && list->count > KUBE_LIMIT_RANGE_AMOUNTS_MAX)
                return false;
        }
    }
    return true;
}

/* -- Defaults -- */

/* Texts of the annotation. */
struct note {
    struct buf text;
    struct slice names[KUBE_LIMIT_RANGE_ITEMS_MAX * KUBE_LIMIT_RANGE_AMOUNTS_MAX];
    size_t count; /* number of names that were set in the current list */
};

static void note_freep(struct note **note)
{
    if (*note)
        buf_fini(&(*note)->text);
    free(*note);
}

static int by_text(const void *a, const void *b)
{
    const struct slice *one = a, *other = b;
    return slice_compare(*one, *other);
}

/* "cpu, memory request for container a" */
static enum status note_list(struct note *note, const char *what, const char *of,
                             const struct json_node *name)
{
    if (!note->count)
        return ST_OK;
    qsort(note->names, note->count, sizeof(note->names[0]), by_text);
    TRY(buf_append_text(&note->text, note->text.len ? "; " : "LimitRanger plugin set: "));
    for (size_t i = 0; i < note->count; i++) {
        TRY(buf_append_text(&note->text, i ? ", " : ""));
        TRY(buf_append(&note->text, note->names[i]));
    }
    TRY(buf_append_format(&note->text, " %s for %s ", what, of));
    return buf_append(&note->text, name ? name->text : SLICE_EMPTY);
}

static enum status member_object(struct arena *arena, struct json_node *in, const char *name,
                                 struct json_node **ret_object)
{
    struct json_node *object = json_node_named(in, name);
    if (!object || object->type != JSON_TYPE_OBJECT) {
        object = json_node_new(arena, JSON_TYPE_OBJECT);
        if (!object)
            return ST_NOMEM;
        TRY(json_node_set(arena, in, slice_from_text(name), object));
    }
    *ret_object = object;
    return ST_OK;
}

/* Sets one resource of a container unless it is there; the path is made when it is needed. */
static enum status set_one(struct arena *arena, struct json_node *container, const char *list,
                           const struct json_node *amount, struct note *note)
{
    struct json_node *resources, *amounts;
    const struct json_node *given = json_node_named(json_node_named(container, "resources"), list);
    if (json_look_member(given, amount->key))
        return ST_OK;
    TRY(member_object(arena, container, "resources", &resources));
    TRY(member_object(arena, resources, list, &amounts));
    struct json_node *copy = json_node_copy(arena, amount);
    if (!copy)
        return ST_NOMEM;
    note->names[note->count++] = amount->key;
    return json_node_set(arena, amounts, amount->key, copy);
}

/* If there are several items for containers, the last one counts. */
static const struct json_node *last_amount(const struct json_node *items, const char *list,
                                           const struct json_node *amount)
{
    const struct json_node *found = amount;
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        const struct json_node *other = json_look_member(json_node_named(item, list), amount->key);
        if (other && json_node_text_is(item, "type", "Container"))
            found = other;
    }
    return found;
}

static enum status set_list(struct arena *arena, const struct json_node *items, const char *from,
                            struct json_node *container, const char *to, struct note *note)
{
    note->count = 0;
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        const struct json_node *amounts = json_node_named(item, from);
        for (const struct json_node *one = rule_first(amounts); one; one = one->next) {
            if (json_node_text_is(item, "type", "Container"))
                TRY(set_one(arena, container, to, last_amount(items, from, one), note));
        }
    }
    return ST_OK;
}

static enum status set_containers(struct arena *arena, const struct json_node *items,
                                  struct json_node *list, const char *of, struct note *note)
{
    if (!list)
        return ST_OK;
    for (struct json_node *item = json_node_first(list); item; item = json_node_next(item)) {
        if (item->type == JSON_TYPE_OBJECT) {
            /* Limits are set first, but the annotation names the requests first. */
            const struct json_node *name = json_node_named(item, "name");
            TRY(set_list(arena, items, "defaultRequest", item, "requests", note));
            TRY(note_list(note, "request", of, name));
            TRY(set_list(arena, items, "default", item, "limits", note));
            TRY(note_list(note, "limit", of, name));
        }
    }
    return ST_OK;
}

static enum status annotate(struct arena *arena, struct json_node *pod, struct slice text)
{
    struct json_node *metadata, *annotations;
    struct json_node *value = json_node_new_text(arena, text);
    if (!value)
        return ST_NOMEM;
    TRY(member_object(arena, pod, "metadata", &metadata));
    TRY(member_object(arena, metadata, "annotations", &annotations));
    return json_node_set(arena, annotations, SLICE_LITERAL(ANNOTATION), value);
}

static bool has_defaults(const struct json_node *items)
{
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        if (json_node_text_is(item, "type", "Container") &&
            (rule_first(json_node_named(item, "default")) ||
             rule_first(json_node_named(item, "defaultRequest"))))
            return true;
    }
    return false;
}

enum status kube_limit_range_default(struct arena *arena, const struct json_node *range,
                                     struct json_node *pod)
{
    const struct json_node *items = json_node_path(range, "spec.limits");
    struct json_node *spec = json_node_named(pod, "spec");
    if (!spec || !has_defaults(items))
        return ST_OK;
    AUTO(note_freep) struct note *note = calloc(1, sizeof(*note));
    if (!note)
        return ST_NOMEM;
    TRY(set_containers(arena, items, json_node_named(spec, "containers"), "container", note));
    TRY(set_containers(arena, items, json_node_named(spec, "initContainers"), "init container",
                       note));
    return note->text.len ? annotate(arena, pod, buf_slice(&note->text)) : ST_OK;
}

/* -- Checks -- */

/* An amount that is checked: of a container, or a sum. */
struct given {
    bool known;
    struct quantity value;
    struct slice text;
    char room[QUANTITY_BYTES];
};

/* Different texts are shown once each, as Kubernetes does. */
struct errors {
    struct arena *arena;
    struct slice texts[KUBE_LIMIT_RANGE_ERRORS_MAX];
    size_t count;
    size_t found; /* including repeated ones */
    enum status status;
};

/* A pod with very many containers is not examined further than this. */
enum { FOUND_MAX = 4096 };

static bool is_full(const struct errors *errors)
{
    return errors->status != ST_OK || errors->count == COUNT_OF(errors->texts) ||
           errors->found == FOUND_MAX;
}

static void add_error(struct errors *errors, const char *format, ...) PRINTF_LIKE(2, 3);
static void add_error(struct errors *errors, const char *format, ...)
{
    char text[768];
    va_list args;
    if (is_full(errors))
        return;
    errors->found++;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct slice error = slice_of(text, size_min((size_t)len, sizeof(text) - 1));
    for (size_t i = 0; i < errors->count; i++) {
        if (slice_equal(errors->texts[i], error))
            return;
    }
    errors->status = arena_dup(errors->arena, error, &errors->texts[errors->count]);
    errors->count += errors->status == ST_OK;
}

/* "[a, b]", or the only one as it is. */
static enum status join(const struct errors *errors, struct slice *ret_why)
{
    AUTO(buf_fini) struct buf text = {0};
    bool several = errors->count > 1;
    *ret_why = SLICE_EMPTY;
    if (errors->status != ST_OK || !errors->count)
        return errors->status;
    TRY(buf_append_text(&text, several ? "[" : ""));
    for (size_t i = 0; i < errors->count; i++) {
        TRY(buf_append_text(&text, i ? ", " : ""));
        TRY(buf_append(&text, errors->texts[i]));
    }
    TRY(buf_append_text(&text, several ? "]" : ""));
    return arena_dup(errors->arena, buf_slice(&text), ret_why);
}

static void give_node(struct given *given, const struct json_node *list, struct slice name)
{
    const struct json_node *node = json_look_member(list, name);
    *given = (struct given){.known = node};
    if (!node)
        return;
    given->value = kube_amount_read(node);
    given->text = kube_amount_text(node, given->room);
}

static void give_sum(struct given *given, const struct kube_amounts *sums, struct slice name)
{
    const struct kube_amount *sum = kube_amounts_find(sums, name);
    *given = (struct given){.known = sum && sum->known};
    if (!given->known)
        return;
    given->value = sum->value;
    given->text = quantity_write(&given->value, given->room);
}

/* -- Values with a common precision -- */

static int64_t rounded(const struct quantity *quantity, int scale)
{
    struct quantity value = *quantity;
    quantity_round_up(&value, scale);
    for (; value.scale > scale && value.amount <= INT64_MAX && value.amount; value.scale--)
        value.amount *= 10;
    int64_t number = value.amount > INT64_MAX ? INT64_MAX : (int64_t)value.amount;
    return value.negative ? -number : number;
}

static const int64_t milli_max = INT64_MAX / 1000;

static bool has_milli(const struct quantity *quantity)
{
    return rounded(quantity, 0) <= milli_max;
}

struct values {
    int64_t request, limit, enforced;
};

/* -- Rules -- */

/* What is checked: a container, a pod or a claim. */
struct subject {
    const char *type;
    const struct json_node *requests, *limits;            /* amounts of a container or claim */
    const struct kube_amounts *request_sums, *limit_sums; /* sums of a pod; otherwise NULL */
    bool is_claim;                                        /* which has only requests */
};

struct rule {
    struct errors *errors;
    const char *type;
    struct slice name; /* name of the resource */
    struct given enforced, request, limit;
    struct values values;
};

static void rule_init(struct rule *rule, struct errors *errors, const struct subject *subject,
                      const struct json_node *enforced)
{
    rule->errors = errors;
    rule->type = subject->type;
    rule->name = enforced->key;
    rule->enforced.value = kube_amount_read(enforced);
    rule->enforced.text = kube_amount_text(enforced, rule->enforced.room);
    if (subject->request_sums) {
        give_sum(&rule->request, subject->request_sums, rule->name);
        give_sum(&rule->limit, subject->limit_sums, rule->name);
    } else {
        give_node(&rule->request, subject->requests, rule->name);
        give_node(&rule->limit, subject->limits, rule->name);
    }
    bool milli = has_milli(&rule->request.value) && has_milli(&rule->limit.value) &&
                 has_milli(&rule->enforced.value);
    int scale = milli ? -3 : 0;
    rule->values = (struct values){.request = rounded(&rule->request.value, scale),
                                   .limit = rounded(&rule->limit.value, scale),
                                   .enforced = rounded(&rule->enforced.value, scale)};
}

static void bad_bound(const struct rule *rule, const char *bound, const char *what,
                      const struct given *given)
{
    add_error(rule->errors, "%s %.*s usage per %s is %.*s, but %s is %.*s", bound,
              SLICE_ARGS(rule->name), rule->type, SLICE_ARGS(rule->enforced.text), what,
              SLICE_ARGS(given->text));
}

static void bad_absent(const struct rule *rule, const char *bound, const char *what)
{
    add_error(rule->errors, "%s %.*s usage per %s is %.*s.  No %s is specified", bound,
              SLICE_ARGS(rule->name), rule->type, SLICE_ARGS(rule->enforced.text), what);
}

static void check_min(const struct rule *rule)
{
    const struct values *v = &rule->values;
    if (!rule->request.known)
        bad_absent(rule, "minimum", "request");
    else if (v->request < v->enforced)
        bad_bound(rule, "minimum", "request", &rule->request);
    else if (rule->limit.known && v->limit < v->enforced)
        bad_bound(rule, "minimum", "limit", &rule->limit);
}

static void check_max(const struct rule *rule)
{
    const struct values *v = &rule->values;
    if (!rule->limit.known)
        bad_absent(rule, "maximum", "limit");
    else if (v->limit > v->enforced)
        bad_bound(rule, "maximum", "limit", &rule->limit);
    else if (rule->request.known && v->request > v->enforced)
        bad_bound(rule, "maximum", "request", &rule->request);
}

static void check_max_request(const struct rule *rule)
{
    if (!rule->request.known)
        bad_absent(rule, "maximum", "request");
    else if (rule->values.request > rule->values.enforced)
        bad_bound(rule, "maximum", "request", &rule->request);
}

static void bad_ratio(const struct rule *rule, const char *why)
{
    add_error(rule->errors, "%.*s max limit to request ratio per %s is %.*s, but %s",
              SLICE_ARGS(rule->name), rule->type, SLICE_ARGS(rule->enforced.text), why);
}

static void check_ratio(const struct rule *rule)
{
    const struct values *v = &rule->values;
    char why[400];
    if (!rule->request.known || !v->request) {
        bad_ratio(rule, "no request is specified or request is 0");
        return;
    }
    if (!rule->limit.known || !v->limit) {
        bad_ratio(rule, "no limit is specified or limit is 0");
        return;
    }
    bool milli = has_milli(&rule->enforced.value);
    double ratio = (double)v->limit / (double)v->request;
    double most = (double)rounded(&rule->enforced.value, milli ? -3 : 0);
    if ((milli ? ratio * 1000 : ratio) <= most)
        return;
    snprintf(why, sizeof(why), "provided ratio is %f", ratio);
    bad_ratio(rule, why);
}

static void check_list(struct errors *errors, const struct subject *subject,
                       const struct json_node *list, void (*check)(const struct rule *rule))
{
    struct rule rule;
    for (const struct json_node *one = rule_first(list); one && !is_full(errors); one = one->next) {
        rule_init(&rule, errors, subject, one);
        check(&rule);
    }
}

static void check_item(struct errors *errors, const struct subject *subject,
                       const struct json_node *item)
{
    check_list(errors, subject, json_node_named(item, "min"), check_min);
    check_list(errors, subject, json_node_named(item, "max"),
               subject->is_claim ? check_max_request : check_max);
    if (!subject->is_claim)
        check_list(errors, subject, json_node_named(item, "maxLimitRequestRatio"), check_ratio);
}

/* -- Pods and claims -- */

static void rule_containers(struct errors *errors, const struct json_node *item,
                            const struct json_node *containers)
{
    const struct json_node *one = rule_first(containers);
    for (; one && !is_full(errors); one = one->next) {
        const struct json_node *resources = json_node_named(one, "resources");
        const struct subject container = {.type = "Container",
                                          .requests = json_node_named(resources, "requests"),
                                          .limits = json_node_named(resources, "limits")};
        check_item(errors, &container, item);
    }
}

/* A place for every resource that an item names. */
static enum status places_of(struct arena *arena, const struct json_node *item,
                             struct kube_amounts *ret_amounts)
{
    struct slice names[COUNT_OF(item_lists) * KUBE_LIMIT_RANGE_AMOUNTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(item_lists); i++) {
        const struct json_node *one = rule_first(json_node_named(item, item_lists[i]));
        for (; one && count < COUNT_OF(names); one = one->next)
            names[count++] = one->key;
    }
    return kube_amounts_init(ret_amounts, arena, names, count);
}

static enum status check_whole_pod(struct errors *errors, const struct json_node *item,
                                   const struct json_node *pod)
{
    struct kube_amounts requests, limits;
    TRY(places_of(errors->arena, item, &requests));
    TRY(kube_amounts_same(&limits, errors->arena, &requests));
    TRY(kube_pod_amounts(pod, KUBE_POD_REQUESTS, KUBE_POD_WITHOUT_OVERHEAD, errors->arena,
                         &requests));
    TRY(kube_pod_amounts(pod, KUBE_POD_LIMITS, KUBE_POD_WITHOUT_OVERHEAD, errors->arena, &limits));
    const struct subject subject = {
        .type = "Pod", .request_sums = &requests, .limit_sums = &limits};
    check_item(errors, &subject, item);
    return ST_OK;
}

enum status kube_limit_range_check_pod(struct arena *arena, const struct json_node *range,
                                       const struct json_node *pod, struct slice *ret_why)
{
    struct errors errors = {.arena = arena};
    const struct json_node *spec = json_node_named(pod, "spec");
    const struct json_node *items = json_node_path(range, "spec.limits");
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        if (json_node_text_is(item, "type", "Container")) {
            rule_containers(&errors, item, json_node_named(spec, "containers"));
            rule_containers(&errors, item, json_node_named(spec, "initContainers"));
        } else if (json_node_text_is(item, "type", "Pod")) {
            TRY(check_whole_pod(&errors, item, pod));
        }
    }
    return join(&errors, ret_why);
}

enum status kube_limit_range_check_claim(struct arena *arena, const struct json_node *range,
                                         const struct json_node *claim, struct slice *ret_why)
{
    struct errors errors = {.arena = arena};
    const struct subject subject = {.type = "PersistentVolumeClaim",
                                    .requests = json_node_path(claim, "spec.resources.requests"),
                                    .is_claim = true};
    const struct json_node *items = json_node_path(range, "spec.limits");
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        if (json_node_text_is(item, "type", "PersistentVolumeClaim"))
            check_item(&errors, &subject, item);
    }
    return join(&errors, ret_why);
}

/* -- The plugin -- */

/* Only the limits of a limit range are kept. */
static const void *read_range(struct arena *arena, const struct json_node *object)
{
    const struct json_node *spec = json_node_named(object, "spec");
    struct json_node *range = json_node_new(arena, JSON_TYPE_OBJECT);
    struct json_node *copy = spec ? json_node_copy(arena, spec) : NULL;
    if (!range || !copy || json_node_set(arena, range, SLICE_LITERAL("spec"), copy) != ST_OK)
        return NULL;
    return range;
}

const struct kube_fact_row kube_limit_ranges = {
    .kind = {.prefix = "/registry/limitranges/", .namespaced = true, .read = read_range},
    .all = true,
};

/* Whether the object is to be looked at, and all limit ranges are known. */
static bool applies(const struct kube_admission_write *write)
{
    return !kube_kind_is(write->kind, "", "limitranges") &&
           !json_node_path(write->old, "metadata.deletionTimestamp");
}

static bool can_apply(const struct kube_admission_write *write, const struct kube_fact_objects *in)
{
    if (in->incomplete || in->count > KUBE_LIMIT_RANGES_MAX)
        return kube_admission_forbid(write, "there are more limit ranges than can be applied");
    for (size_t i = 0; i < in->count; i++) {
        if (!kube_limit_range_is_sound(in->all[i]->data))
            return kube_admission_forbid(write, "limit range %.*s is too large to be applied",
                                         SLICE_ARGS(in->all[i]->name));
    }
    return true;
}

static bool admit(struct kube_admission_write *write)
{
    const struct kube_fact_objects *in = &write->facts->of[KUBE_FACT_LIMIT_RANGES];
    if (!applies(write))
        return true;
    if (!can_apply(write, in))
        return false;
    for (size_t i = 0; i < in->count && kube_kind_is(write->kind, "", "pods"); i++) {
        if (kube_limit_range_default(write->arena, in->all[i]->data, write->object) != ST_OK)
            return kube_fail_engine(write->status, ST_NOMEM);
    }
    return true;
}

/* A limit range that could not be kept in memory could not be applied. */
static bool check_size(const struct kube_admission_write *write)
{
    AUTO(buf_fini) struct buf text = {0};
    if (json_tree_write(write->object, &text) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (!kube_limit_range_is_sound(write->object) || text.len > KUBE_LOOKUP_OBJECT_BYTES_MAX / 2)
        return kube_admission_forbid(write,
                                     "at most %d limits with %d resources each, and %d KiB in "
                                     "total, can be applied",
                                     KUBE_LIMIT_RANGE_ITEMS_MAX, KUBE_LIMIT_RANGE_AMOUNTS_MAX,
                                     KUBE_LOOKUP_OBJECT_BYTES_MAX / 2 / 1024);
    return true;
}

static bool check_one(const struct kube_admission_write *write, const struct json_node *range)
{
    struct slice why;
    enum status status =
        kube_kind_is(write->kind, "", "pods")
            ? kube_limit_range_check_pod(write->arena, range, write->object, &why)
            : kube_limit_range_check_claim(write->arena, range, write->object, &why);
    if (status != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    return !why.len || kube_admission_forbid(write, "%.*s", SLICE_ARGS(why));
}

static bool check(struct kube_admission_write *write)
{
    const struct kube_fact_objects *in = &write->facts->of[KUBE_FACT_LIMIT_RANGES];
    if (kube_kind_is(write->kind, "", "limitranges"))
        return check_size(write);
    if (!applies(write))
        return true;
    if (!can_apply(write, in))
        return false;
    for (size_t i = 0; i < in->count; i++) {
        if (!check_one(write, in->all[i]->data))
            return false;
    }
    return true;
}

const struct kube_admission_plugin kube_limit_ranger = {
    .name = "LimitRanger",
    .needs = 1u << KUBE_FACT_LIMIT_RANGES,
    /* The containers of a pod cannot be changed afterwards, except their amounts by a resize. */
    .rules = {{"", "pods", "", KUBE_ON_CREATE},
              {"", "pods", "resize", KUBE_ON_UPDATE},
              {"", "persistentvolumeclaims", "", KUBE_ON_CREATE | KUBE_ON_UPDATE},
              {"", "limitranges", "", KUBE_ON_CREATE | KUBE_ON_UPDATE}},
    .admit = admit,
    .check = check,
};

#include "kube/access/rbac.h"

#include "base/xalloc.h"
#include "codec/json/field_fault.h"
#include "engine/engine.h"
#include "kube/access/binding.h"
#include "kube/selector/label.h"

#include <stdio.h>

enum kind { ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, KINDS };

struct kube_rbac {
    struct kube_lookup *lookups[KINDS];
    struct kube_binding_index bindings[KINDS]; /* of the two kinds of bindings */
};

/* -- What is kept of objects -- */

struct role {
    struct kube_rules rules;
    struct slice labels; /* JSON; empty: none */
    bool aggregates;     /* it has an aggregationRule: */
    const struct label_selector **selectors;
    size_t selector_count;
};

/* One matchExpressions entry as a selector's text; false: it is not valid. */
static bool append_expression(struct arena *arena, const struct json_node *node, struct buf *to)
{
    struct slice key = kube_text_copy(arena, node, "key"),
                 op = kube_text_copy(arena, node, "operator");
    struct kube_texts values;
    bool in = slice_equal(op, SLICE_LITERAL("In")),
         not_in = slice_equal(op, SLICE_LITERAL("NotIn"));
    bool exists = slice_equal(op, SLICE_LITERAL("Exists"));
    bool absent = slice_equal(op, SLICE_LITERAL("DoesNotExist"));
    if (!kube_texts_read(arena, json_node_named(node, "values"), LABEL_VALUES_MAX, &values) ||
        !(in || not_in || exists || absent))
        return false;
    if (exists || absent)
        return buf_append_format(to, "%s%.*s,", absent ? "!" : "", SLICE_ARGS(key)) == ST_OK;
    if (buf_append_format(to, "%.*s %s (", SLICE_ARGS(key), in ? "in" : "notin") != ST_OK)
        return false;
    for (size_t i = 0; i < values.count; i++)
        if (buf_append_format(to, "%s%.*s", i ? "," : "", SLICE_ARGS(values.items[i])) != ST_OK)
            return false;
    return buf_append_text(to, "),") == ST_OK;
}

static bool append_labels(struct arena *arena, const struct json_node *labels, struct buf *to)
{
    for (const struct json_node *label = labels ? labels->first : NULL; label;
         label = label->next) {
        struct slice value;
        if (json_node_text(label, arena, &value) != ST_OK ||
            buf_append_format(to, "%.*s=%.*s,", SLICE_ARGS(label->key), SLICE_ARGS(value)) != ST_OK)
            return false;
    }
    return true;
}

/* A LabelSelector as the text of one. NULL: it is not valid, and selects nothing. */
static const struct label_selector *read_selector(struct arena *arena, const struct json_node *node)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct json_node *expressions = json_node_named(node, "matchExpressions");
    const struct label_selector *selector;
    struct error ignored;
    struct slice copy;
    if (!append_labels(arena, json_node_named(node, "matchLabels"), &text))
        return NULL;
    for (const struct json_node *e = expressions ? expressions->first : NULL; e; e = e->next)
        if (!append_expression(arena, e, &text))
            return NULL;
    struct slice whole = slice_sub(buf_slice(&text), 0, text.len ? text.len - 1 : 0);
    if (arena_dup(arena, whole, &copy) != ST_OK ||
        label_selector_parse(arena, copy, &selector, &ignored) != ST_OK)
        return NULL;
    return selector;
}

static bool read_aggregation(struct arena *arena, const struct json_node *object, struct role *role)
{
    const struct json_node *list = json_node_path(object, "aggregationRule.clusterRoleSelectors");
    if (!list || list->type != JSON_TYPE_ARRAY || !list->count)
        return true;
    if (list->count > KUBE_RBAC_SELECTORS_MAX)
        return false;
    role->aggregates = true;
    role->selectors = arena_calloc(arena, list->count, sizeof(*role->selectors));
    for (const struct json_node *item = list->first; role->selectors && item; item = item->next) {
        const struct label_selector *selector = read_selector(arena, item);
        if (selector)
            role->selectors[role->selector_count++] = selector;
    }
    return true;
}

static bool read_labels(struct arena *arena, const struct json_node *object, struct role *role)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct json_node *labels = json_node_path(object, "metadata.labels");
    if (!labels || labels->type != JSON_TYPE_OBJECT)
        return true;
    return json_tree_write(labels, &text) == ST_OK &&
           arena_dup(arena, buf_slice(&text), &role->labels) == ST_OK;
}

static const void *read_role(struct arena *arena, const struct json_node *object)
{
    struct role *role = arena_calloc(arena, 1, sizeof(*role));
    bool fine = role && kube_rules_read(arena, json_node_named(object, "rules"), &role->rules) &&
                read_aggregation(arena, object, role) && read_labels(arena, object, role);
    return fine ? role : NULL;
}

/* -- Life -- */

struct kube_rbac *kube_rbac_new(struct engine_shard *shard, struct loop *loop, size_t *under_way,
                                uint64_t seed)
{
    static const struct {
        const char *prefix;
        bool namespaced, binding;
    } rows[KINDS] = {
        [ROLES] = {"/registry/roles/", true, false},
        [ROLE_BINDINGS] = {"/registry/rolebindings/", true, true},
        [CLUSTER_ROLES] = {"/registry/clusterroles/", false, false},
        [CLUSTER_ROLE_BINDINGS] = {"/registry/clusterrolebindings/", false, true},
    };
    struct kube_rbac *rbac = xcalloc(1, sizeof(*rbac));
    for (size_t i = 0; i < KINDS; i++) {
        kube_binding_index_init(&rbac->bindings[i], seed);
        rbac->lookups[i] = kube_lookup_new(&(struct kube_lookup_options){
            .shard = shard,
            .loop = loop,
            .under_way = under_way,
            .prefix = rows[i].prefix,
            .namespaced = rows[i].namespaced,
            .read = rows[i].binding ? kube_binding_read : read_role,
            .objects_max = rows[i].binding ? KUBE_RBAC_BINDINGS_MAX : 0,
            .added = rows[i].binding ? kube_binding_index_add : NULL,
            .removed = rows[i].binding ? kube_binding_index_remove : NULL,
            .index = &rbac->bindings[i],
        });
    }
    return rbac;
}

void kube_rbac_stop(struct kube_rbac *rbac)
{
    for (size_t i = 0; rbac && i < KINDS; i++)
        kube_lookup_stop(rbac->lookups[i]);
}

void kube_rbac_free(struct kube_rbac *rbac)
{
    if (!rbac)
        return;
    for (size_t i = 0; i < KINDS; i++) {
        kube_lookup_free(rbac->lookups[i]);
        kube_binding_index_fini(&rbac->bindings[i]);
    }
    free(rbac);
}

bool kube_rbac_ready(const struct kube_rbac *rbac)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!kube_lookup_ready(rbac->lookups[i]))
            return false;
    return true;
}

int64_t kube_rbac_revision(const struct kube_rbac *rbac)
{
    int64_t revision = INT64_MAX;
    for (size_t i = 0; i < KINDS; i++) {
        int64_t known = kube_lookup_revision(rbac->lookups[i]);
        revision = known < revision ? known : revision;
    }
    return revision;
}

/* Each in turn; one that was ready may have to be read again meanwhile. */
static void on_lookup(struct kube_lookup_wait *lookup)
{
    struct kube_rbac_wait *wait = CONTAINER_OF(lookup, struct kube_rbac_wait, lookup);
    struct kube_rbac *rbac = wait->rbac;
    wait->status = lookup->status;
    if (wait->status == ST_OK && kube_rbac_ready(rbac)) {
        wait->go(wait);
        return;
    }
    if (wait->status != ST_OK || wait->next == 4 * KINDS) {
        wait->status = wait->status == ST_OK ? ST_TIMEOUT : wait->status;
        wait->go(wait);
        return;
    }
    kube_lookup_wait(rbac->lookups[wait->next++ % KINDS], lookup);
}

void kube_rbac_wait(struct kube_rbac *rbac, struct kube_rbac_wait *wait)
{
    wait->rbac = rbac;
    wait->lookup.go = on_lookup;
    wait->next = 1;
    kube_lookup_wait(rbac->lookups[0], &wait->lookup);
}

/* -- Visiting the rules of a user -- */

struct visit {
    const struct kube_rbac *rbac;
    const struct kube_user_info *user;
    struct slice namespace; /* of the binding; empty: a cluster role binding */
    size_t steps;
    bool exhausted; /* too many steps */
    bool ended;     /* fn has returned false */
    bool (*fn)(struct visit *visit, const struct kube_rule *rule);
    struct kube_bound bound; /* the binding whose rules are visited */
    /* Roles that are missing. */
    struct buf missing;
    unsigned missing_count;
    /* For fn. */
    const struct kube_attributes *attributes;
    struct arena *arena;
    struct kube_rule *rules;
    size_t count, capacity;
};

static bool charge(struct visit *v, size_t steps)
{
    v->steps += steps;
    v->exhausted = v->exhausted || v->steps > KUBE_RULE_STEPS_MAX;
    return !v->exhausted && !v->ended;
}

static void visit_rules(struct visit *v, const struct kube_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (!charge(v, kube_rule_cost(&rules->items[i])))
            return;
        if (!v->fn(v, &rules->items[i])) {
            v->ended = true;
            return;
        }
    }
}

/* Roles that an aggregated role selects. */
struct gather {
    struct visit *visit;
    const struct role *path[KUBE_RBAC_AGGREGATION_DEPTH];
    size_t depth;
};

static void visit_cluster_role(struct gather *g, const struct role *role);

static bool gather_one(void *ctx, const struct kube_lookup_object *object)
{
    struct gather *g = ctx;
    const struct role *role = object->data, *of = g->path[g->depth - 1];
    for (size_t i = 0; i < of->selector_count; i++) {
        if (!charge(g->visit, 4))
            return false;
        if (!label_selector_matches(of->selectors[i], role->labels))
            continue;
        visit_cluster_role(g, role);
        break;
    }
    return charge(g->visit, 1);
}

static void visit_cluster_role(struct gather *g, const struct role *role)
{
    if (!role->aggregates) {
        visit_rules(g->visit, &role->rules);
        return;
    }
    for (size_t i = 0; i < g->depth; i++)
        if (g->path[i] == role)
            return; /* it selects itself */
    if (g->depth == KUBE_RBAC_AGGREGATION_DEPTH)
        return;
    g->path[g->depth++] = role;
    kube_lookup_each(g->visit->rbac->lookups[CLUSTER_ROLES], SLICE_EMPTY, gather_one, g);
    g->depth--;
}

/* Whether one of the texts, which have commas between them, is this one. */
static bool has_text(const struct buf *in, struct slice text)
{
    for (size_t at = 0; at + text.len <= in->len; at++) {
        bool begins = at == 0 || in->ptr[at - 1] == ' ';
        bool ends = at + text.len == in->len || in->ptr[at + text.len] == ',';
        if (begins && ends && memcmp(in->ptr + at, text.ptr, text.len) == 0)
            return true;
    }
    return false;
}

/* Without memory the reason is shorter. */
static void note_missing(struct visit *v, const char *format, struct slice name)
{
    AUTO(buf_fini) struct buf text = {0}, quoted = {0};
    if (go_escape(name, &quoted) != ST_OK ||
        buf_append_format(&text, format, SLICE_ARGS(buf_slice(&quoted))) != ST_OK ||
        has_text(&v->missing, buf_slice(&text)) ||
        v->missing.len + text.len > KUBE_RBAC_REASON_BYTES)
        return;
    if (v->missing_count++)
        (void)!buf_append_text(&v->missing, ", ");
    (void)!buf_append(&v->missing, buf_slice(&text));
}

static void visit_role(struct visit *v, struct slice kind, struct slice name)
{
    bool cluster = slice_equal(kind, SLICE_LITERAL("ClusterRole"));
    if (!cluster && !slice_equal(kind, SLICE_LITERAL("Role"))) {
        note_missing(v, "unsupported role reference kind: \"%.*s\"", kind);
        return;
    }
    const struct kube_lookup_object *object =
        cluster ? kube_lookup_get(v->rbac->lookups[CLUSTER_ROLES], SLICE_EMPTY, name)
                : kube_lookup_get(v->rbac->lookups[ROLES], v->namespace, name);
    if (!object && cluster)
        note_missing(v, "clusterrole.rbac.authorization.k8s.io \"%.*s\" not found", name);
    else if (!object)
        note_missing(v, "role.rbac.authorization.k8s.io \"%.*s\" not found", name);
    else if (cluster)
        visit_cluster_role(&(struct gather){.visit = v}, object->data);
    else
        visit_rules(v, &((const struct role *)object->data)->rules);
}

static bool visit_binding(void *ctx, const struct kube_bound *bound)
{
    struct visit *v = ctx;
    const struct kube_binding *b = bound->object->data;
    v->bound = *bound;
    if (charge(v, 1))
        visit_role(v, b->ref_kind, b->ref_name);
    return !v->exhausted && !v->ended;
}

static void visit_bindings(struct visit *v, enum kind kind, struct slice namespace)
{
    v->namespace = namespace;
    if (charge(v, 1 + v->user->groups.count))
        kube_binding_index_each(&v->rbac->bindings[kind], v->user, namespace, visit_binding, v);
}

static void visit_user(struct visit *v, struct slice namespace)
{
    assert(kube_rbac_ready(v->rbac));
    visit_bindings(v, CLUSTER_ROLE_BINDINGS, SLICE_EMPTY);
    if (namespace.len && !v->ended && !v->exhausted)
        visit_bindings(v, ROLE_BINDINGS, namespace);
}

/* -- Reasons -- */

static void set_reason(const struct visit *v, const char *before, char *ret_reason)
{
    int count = (int)size_min(v->missing.len, KUBE_RBAC_REASON_BYTES - 32);
    bool many = v->missing_count > 1;
    *ret_reason = 0;
    if (v->exhausted)
        snprintf(ret_reason, KUBE_RBAC_REASON_BYTES,
                 "%sthe user has too many bindings and rules to examine", before);
    else if (count)
        snprintf(ret_reason, KUBE_RBAC_REASON_BYTES, "%s%s%.*s%s", before, many ? "[" : "", count,
                 (const char *)v->missing.ptr, many ? "]" : "");
}

static enum status append_name(struct buf *to, struct slice a, struct slice b)
{
    TRY(buf_append_text(to, " \""));
    TRY(go_escape(a, to));
    if (b.len) {
        TRY(buf_append_text(to, "/"));
        TRY(go_escape(b, to));
    }
    return buf_append_text(to, "\"");
}

/* RoleBinding "name/namespace" of Role "x" to ServiceAccount "name/namespace" */
static enum status describe(const struct visit *v, struct buf *to)
{
    static const char *const kinds[] = {
        [SUBJECT_USER] = "User", [SUBJECT_GROUP] = "Group", [SUBJECT_ACCOUNT] = "ServiceAccount"};
    const struct kube_lookup_object *binding = v->bound.object;
    const struct kube_binding *b = binding->data;
    const struct kube_subject *subject = v->bound.subject;
    bool account = subject->kind == SUBJECT_ACCOUNT;
    struct slice of = subject->namespace.len ? subject->namespace : binding->namespace;
    TRY(buf_append_text(to, binding->namespace.len ? "RBAC: allowed by RoleBinding"
                                                   : "RBAC: allowed by ClusterRoleBinding"));
    TRY(append_name(to, binding->name, binding->namespace));
    TRY(buf_append_format(to, " of %.*s", SLICE_ARGS(b->ref_kind)));
    TRY(append_name(to, b->ref_name, SLICE_EMPTY));
    TRY(buf_append_format(to, " to %s", kinds[subject->kind]));
    return append_name(to, subject->name, account ? of : SLICE_EMPTY);
}

static void set_allowed(const struct visit *v, char *ret_reason)
{
    AUTO(buf_fini) struct buf text = {0};
    *ret_reason = 0;
    if (describe(v, &text) == ST_OK)
        snprintf(ret_reason, KUBE_RBAC_REASON_BYTES, "%.*s", SLICE_ARGS(buf_slice(&text)));
}

/* -- Decisions -- */

static bool goes_on(struct visit *v, const struct kube_rule *rule)
{
    return !kube_rule_allows(rule, v->attributes);
}

bool kube_rbac_allows(const struct kube_rbac *rbac, const struct kube_user_info *user,
                      const struct kube_attributes *attributes,
                      char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct visit v = {.rbac = rbac, .user = user, .fn = goes_on, .attributes = attributes};
    *ret_reason = 0;
    if (kube_texts_have(&user->groups, KUBE_GROUP_MASTERS))
        return true;
    visit_user(&v, attributes->of_resource ? attributes->namespace : SLICE_EMPTY);
    if (v.ended)
        set_allowed(&v, ret_reason);
    else
        set_reason(&v, "RBAC: ", ret_reason);
    buf_fini(&v.missing);
    return v.ended;
}

static bool collect(struct visit *v, const struct kube_rule *rule)
{
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? v->capacity * 2 : 16;
        struct kube_rule *more = arena_calloc(v->arena, capacity, sizeof(*more));
        if (!more)
            return false;
        if (v->count)
            memcpy(more, v->rules, v->count * sizeof(*more));
        v->rules = more;
        v->capacity = capacity;
    }
    v->rules[v->count++] = *rule;
    return true;
}

static bool finish(struct visit *v, struct kube_rules *ret_rules, char *ret_reason)
{
    *ret_rules = (struct kube_rules){v->rules, v->count};
    set_reason(v, "", ret_reason);
    buf_fini(&v->missing);
    return !v->exhausted && !v->ended;
}

bool kube_rbac_rules(const struct kube_rbac *rbac, struct arena *arena,
                     const struct kube_user_info *user, struct slice namespace,
                     struct kube_rules *ret_rules, char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct visit v = {.rbac = rbac, .user = user, .fn = collect, .arena = arena};
    visit_user(&v, namespace);
    return finish(&v, ret_rules, ret_reason);
}

bool kube_rbac_role_rules(const struct kube_rbac *rbac, struct arena *arena, struct slice ref_kind,
                          struct slice ref_name, struct slice namespace,
                          struct kube_rules *ret_rules, char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct visit v = {.rbac = rbac, .fn = collect, .arena = arena, .namespace = namespace};
    assert(kube_rbac_ready(rbac));
    visit_role(&v, ref_kind, ref_name);
    bool found = !v.missing_count;
    return finish(&v, ret_rules, ret_reason) && found;
}
